"""Run by any Python, without a package: compiles the sources, and looks up what they take from its library.

    python3.13 -W error tests/stdlib_names.py src

Prints what is not there, a line each. So a name that a later Python dropped, or a text that it warns of, is
found without the packages that the server needs there.
"""

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

Name = tuple[str, str]  # of a module, and of what is taken from it; "" for the module itself


def main() -> None:
    taken: set[Name] = set()
    for path in Path(sys.argv[1]).rglob("*.py"):
        tree = ast.parse(path.read_text(), str(path))
        compile(tree, str(path), "exec")
        taken.update(names_of(tree))
    print(*sorted(missing(taken)), sep="\n", end="")


def names_of(tree: ast.AST) -> Iterator[Name]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from ((node.module, each.name) for each in node.names)


def missing(taken: set[Name]) -> Iterator[str]:
    known = sys.stdlib_module_names | OF_EARLIER_PYTHONS
    for module, name in taken:
        if module.split(".")[0] in known and not is_there(module, name):
            yield f"{module} {name}".rstrip()


def is_there(module: str, name: str) -> bool:
    try:
        found = importlib.import_module(module)
        return not name or hasattr(found, name) or bool(importlib.import_module(f"{module}.{name}"))
    except ImportError:
        return False


# Dropped from the library since 3.11: a later Python does not know that they were part of it.
OF_EARLIER_PYTHONS = frozenset(
    [
        "aifc",
        "asynchat",
        "asyncore",
        "audioop",
        "cgi",
        "cgitb",
        "chunk",
        "crypt",
        "distutils",
        "imghdr",
        "imp",
        "mailcap",
        "msilib",
        "nis",
        "nntplib",
        "ossaudiodev",
        "pipes",
        "smtpd",
        "sndhdr",
        "spwd",
        "sunau",
        "telnetlib",
        "uu",
        "xdrlib",
    ]
)

if __name__ == "__main__":
    main()
