"""Run by any Python, without a package: compiles the sources, and looks up what they take from its library.

    python3.13 -W error tests/stdlib_names.py copy-of-src

Prints what is not there, a line each. So a name that a later Python dropped, or a text that it warns of, is
found without the packages that the server needs there. Warnings come of what is not compiled yet.
"""

import importlib
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from opcode import opmap
from pathlib import Path
from types import CodeType

IMPORT_NAME, IMPORT_FROM, EXTENDED_ARG = opmap["IMPORT_NAME"], opmap["IMPORT_FROM"], opmap["EXTENDED_ARG"]

Name = tuple[str, str]  # of a module, and of what is taken from it; "" for the module itself


def main() -> None:
    taken: set[Name] = set()
    for path in Path(sys.argv[1]).rglob("*.py"):
        code = SourceFileLoader("source", str(path)).get_code("source")  # keeps what it compiles
        assert code is not None
        taken.update(names_of(code))
    print(*sorted(missing(taken)), sep="\n", end="")


def names_of(code: CodeType) -> Iterator[Name]:
    """From what it was compiled to: to look through the syntax tree takes four times as long."""
    module, argument = "", 0
    steps = code.co_code if IMPORT_NAME in code.co_code else b""
    for operation, low in zip(steps[::2], steps[1::2], strict=True):
        argument = argument << 8 | low
        if operation == IMPORT_NAME:
            module = code.co_names[argument]
            yield module, ""
        elif operation == IMPORT_FROM:
            yield module, code.co_names[argument]
        if operation != EXTENDED_ARG:
            argument = 0
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_of(constant)


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
