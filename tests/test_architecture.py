"""Arrows between rooms point one way; pure parts lie below everything."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

from tests.samples import samples

SOURCE = Path(__file__).parent.parent / "src" / "postroom"
CLIENT = SOURCE.parent / "postroom_client"
LIBRARY = SOURCE.parent / "postroom_mail"
FOLDERS = sorted({path.parent for room in (SOURCE, CLIENT, LIBRARY) for path in room.rglob("*.py")})

# A room may import the rooms and files of the lines above it, and those before it in its own line.
LAYERS: list[list[str]] = [
    ["limits"],
    [
        "value_errors",
        "ids",
        "random_bytes",
        "clock",
        "errors",
        "calendar_errors",
        "holding_errors",
        "setting_values",
        "setting_meanings",
        "settings",
        "config",
        "log",
        "traces",
        "tracing",
        "fields",
        "processes",
    ],
    ["net"],
    ["storage"],
    ["resources"],
    ["accounts", "mailbox", "queue", "events", "inward", "external_mailboxes", "outward"],
    ["deliverability", "dns_providers", "certificates"],
    ["upkeep", "first_start"],
    ["transfer"],
    ["operations"],
    ["smtp", "imap", "caldav", "web", "couriers"],
    ["llm_judge", "workers"],
    ["mail_server", "operator_services", "background_loops", "host_setup"],
    ["assembly", "welcome"],
    ["commands"],
    ["__main__"],
]
LINES_OF_A_MODULE = 400
# Each has its reason; what it does is done by verbs.
TRANSACTIONS_OF_DOORS = {
    "commands/database.py:_carry_out": "runs a verb of the operator's, for the account that a command names",
    "imap/appending.py:file": "an upload: called in the transaction that stores the mail",
    "web/operations.py:_try_verb": "runs a verb to see what it would answer, and is always rolled back",
}
DOORS = {"smtp", "imap", "caldav", "web", "couriers"}
PURE = {
    "limits",
    "errors",
    "calendar_errors",
    "holding_errors",
    "setting_values",
    "setting_meanings",
    "settings",
    "config",
}
WORDS_OF_THREADS = {"to_thread", "run_in_executor", "ThreadPoolExecutor"}
DOCSTRING = re.compile(r'(?:#.*\n|\n)*r?"""[^"]')
COMMENT = re.compile(r"#.*")
IMPORT = re.compile(r"^ *(?:from (\S+) )?import (\([^)]*\)|[^(\n]*)", re.MULTILINE)
TYPE = re.compile(r"^class (\w+)", re.MULTILINE)
TRANSACTION = re.compile(r"^ +def (\w+)\(\s*tx\b|\b(lambda) tx\b", re.MULTILINE)
FUNCTION = re.compile(r"^( *)def (\w+)\(", re.MULTILINE)
GIVEN_TO_DATABASE = re.compile(r"\.(write|decide|read|read_long)\(\s*(?:partial\(\s*)?(lambda\b|\w+(?=[,)]))")
OF_THREADS = re.compile(rf"\.({'|'.join(WORDS_OF_THREADS)})\b")
IMPURE_MODULES = {"asyncio", "socket", "subprocess", "threading", "sqlite3", "psycopg"}
# The command is the client's with the operator's commands added; /mcp serves the client's tools.
USERS_OF_THE_CLIENT = {
    SOURCE / "__init__.py",  # the version of both
    SOURCE / "__main__.py",
    *(SOURCE / "commands").glob("*.py"),
    SOURCE / "web" / "mcp.py",
}
VAGUE_NAMES = {
    "utils",
    "helpers",
    "common",
    "base",
    "core",
    "manager",
    "service",
    "processor",
    "impl",
    "misc",
}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def house() -> list[Path]:
    """The modules of the server and of the library."""
    return sorted((*SOURCE.rglob("*.py"), *LIBRARY.rglob("*.py")))


def part_of(path: Path) -> str:
    """The file or folder directly below src/postroom that a module belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@dataclass(frozen=True, slots=True)
class Contents:
    """What is asked of a module, by its text as the formatter writes it: a tree takes five times as long."""

    lines: int
    has_docstring: bool
    imports: list[str]
    types: list[str]
    transactions: set[str]  # names of functions that are one
    of_threads: set[str]  # words


@functools.cache
def contents_of(path: Path) -> Contents:
    text = path.read_text()
    return Contents(
        len(text.splitlines()),
        DOCSTRING.match(text) is not None,
        list(imported_by(COMMENT.sub("", text))),
        TYPE.findall(text),
        set(transactions_in(text)),
        set(OF_THREADS.findall(text)),
    )


def transactions_in(text: str) -> Iterator[str]:
    """Functions inside functions and lambdas that take a transaction or are handed to the database, and those
    of the module itself that write."""
    functions = FUNCTION.findall(text)
    inner = {name for indent, name in functions if indent}
    outer = {name for indent, name in functions if not indent}
    yield from ("".join(found) for found in TRANSACTION.findall(text))
    for way, name in GIVEN_TO_DATABASE.findall(text):
        if name == "lambda" or name in inner or (name in outer and way in ("write", "decide")):
            yield name


def imported_by(text: str) -> Iterator[str]:
    for module, written in IMPORT.findall(text):
        assert not module.startswith("."), "relative imports hide where a name comes from"
        names = [each.split()[0] for each in written.strip("()").split(",") if each.strip()]
        yield from (module, *(f"{module}.{name}" for name in names)) if module else names


def imports_of(path: Path) -> list[str]:
    return contents_of(path).imports


def postroom_parts_imported_by(path: Path) -> set[str]:
    names = {name.split(".")[1] for name in imports_of(path) if name.startswith("postroom.")}
    return {name for name in names if (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").exists()}


def place(part: str) -> tuple[int, int]:
    for level, names in enumerate(LAYERS):
        if part in names:
            return level, names.index(part)
    raise AssertionError(f"{part} has no place in LAYERS: say where it belongs")


def test_a_module_imports_only_what_lies_below_it() -> None:
    assert postroom_parts_imported_by(SOURCE / "__init__.py") == set()
    for path in set(modules()) - {SOURCE / "__init__.py"}:
        here = part_of(path)
        for other in postroom_parts_imported_by(path) - {here}:
            assert place(other) < place(here), f"{path} must not import {other}"
            assert not (here in DOORS and other in DOORS), f"{path} must not import the door {other}"
            assert not (here in DOORS and other == "storage"), f"{path} must go through nouns and verbs"


def holdings(room: Path) -> dict[str, list[Path]]:
    """The files and the rooms inside a room, each with all its modules."""
    files = {path.stem: [path] for path in room.glob("*.py") if path.name != "__init__.py"}
    inner = {path.parent.name: sorted(path.parent.rglob("*.py")) for path in room.glob("*/__init__.py")}
    return files | inner


def imports_inside(room: Path) -> dict[str, set[str]]:
    """For all that a room holds, what else of the same room it imports."""
    prefix, held = ".".join(room.relative_to(SOURCE.parent).parts), holdings(room)
    return {
        name: {
            imported.removeprefix(f"{prefix}.").split(".")[0]
            for path in paths
            for imported in imports_of(path)
            if imported.startswith(f"{prefix}.")
        }
        & held.keys() - {name}
        for name, paths in held.items()
    }


@samples("room", FOLDERS)
def test_inside_a_room_there_is_no_circle(room: Path) -> None:
    TopologicalSorter(imports_inside(room)).prepare()


def test_pure_parts_touch_no_thread_socket_or_database() -> None:
    pure = [path for path in modules() if part_of(path) in PURE]
    pure += [
        path for path in LIBRARY.rglob("*.py") if path.parent.relative_to(LIBRARY).parts[:1] != ("files",)
    ]
    for path in pure:
        assert not {name.split(".")[0] for name in imports_of(path)} & IMPURE_MODULES, path


def test_the_library_imports_nothing_of_the_server_or_the_client() -> None:
    for path in LIBRARY.rglob("*.py"):
        imported = {name.split(".")[0] for name in imports_of(path)}
        assert not imported & {"postroom", "postroom_client"}, path


def test_the_client_imports_nothing_of_the_server() -> None:
    for path in CLIENT.rglob("*.py"):
        assert "postroom" not in {name.split(".")[0] for name in imports_of(path)}, path


def test_only_the_command_and_the_mcp_door_use_the_client() -> None:
    users = {
        path for path in modules() if any(name.startswith("postroom_client") for name in imports_of(path))
    }
    assert users <= USERS_OF_THE_CLIENT


def test_names_say_what_they_hold() -> None:
    for path in house():
        words = set(path.stem.split("_")) | set(path.parent.name.split("_"))
        assert not words & VAGUE_NAMES, path


def test_a_module_fits_in_one_sitting() -> None:
    for path in house():
        assert contents_of(path).lines <= LINES_OF_A_MODULE, path
        if path.name != "__init__.py":
            assert contents_of(path).has_docstring, f"{path} needs a docstring of one to three lines"


def test_only_the_pools_run_threads_for_the_loop() -> None:
    """The loop's own pool would let what waits for one purpose delay every other."""
    for path in set(modules()) - {SOURCE / "processes" / "pools.py"}:
        imported = {name.rpartition(".")[2] for name in imports_of(path)}
        assert not (contents_of(path).of_threads | imported) & WORDS_OF_THREADS, path


def types_by_name() -> dict[str, list[str]]:
    """Of the server, but for those that carry the names of the interface."""
    places: dict[str, list[str]] = {}
    for path in house():
        if not path.stem.endswith("shapes") and "operations" not in path.parts:
            for name in contents_of(path).types:
                places.setdefault(name, []).append(str(path.relative_to(SOURCE.parent)))
    return places


def test_no_two_types_of_the_server_have_one_name() -> None:
    assert {name: places for name, places in types_by_name().items() if len(places) > 1} == {}


def test_doors_ring_no_bells() -> None:
    """A verb rings by its transaction: after the commit, and never without one."""
    ringing = [
        path for part in DOORS for path in (SOURCE / part).rglob("*.py") if ".ring(" in path.read_text()
    ]
    assert ringing == []


def test_doors_hold_no_transactions_of_their_own() -> None:
    """Checks, audit, event and bells belong to the verb that changes the rows, so that no door skips them."""
    transactions = {
        f"{path.relative_to(SOURCE)}:{name}"
        for part in (*DOORS, "commands")
        for path in (SOURCE / part).rglob("*.py")
        for name in contents_of(path).transactions
    }
    assert transactions == TRANSACTIONS_OF_DOORS.keys()
