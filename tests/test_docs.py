"""The documents, held to the code: their examples run, and their tables are complete.

A block marked `sh` is run against a server of its own, in one shell a document; `console` blocks are not.
"""

import functools
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import IO, Any

import pytest

from bench import catalogue
from postroom import errors
from postroom.config import SETTINGS
from postroom.web.routes import ROUTES
from postroom.web.routing import ACCOUNT
from postroom_client.cli import app
from postroom_client.cli.command import in_order
from tests import warm_start
from tests.command_tree import command_tree
from tests.warm_start import Process

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "postroom"
RECORDS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
PAGES = sorted({*(ROOT / "docs").rglob("*.md")} - {*RECORDS})
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
TOKEN = "pr_the_key_that_make_run_printed"  # as the documents write it
Start = Callable[[Path, dict[str, str], IO[str]], Process]
WRITTEN_PORTS = {"http": "8025", "smtp": "2525", "endpoint": "8026"}


def named(document: Path) -> str:
    return str(document.relative_to(ROOT))


def read(name: str) -> str:
    return (ROOT / name).read_text()


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Desk:
    """Where a reader works: a folder with the command in it, and a server that runs in the same folder."""

    folder: Path
    environment: dict[str, str]
    ports: dict[str, str]
    welcome: str  # what the start printed, up to the first command

    def run(self, script: str) -> "subprocess.CompletedProcess[str]":
        for name, written in WRITTEN_PORTS.items():
            script = re.sub(rf"\b{written}\b", self.ports[name], script)
        return subprocess.run(
            ["sh", "-eu", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )


class Endpoint(BaseHTTPRequestHandler):
    """A customer's webhook that is content with everything."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *values: object) -> None:
        """Tests are silent."""


@contextmanager
def listening_endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield str(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def put_command(path: Path, *command: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
    path.chmod(0o755)


def lay_out_commands(folder: Path, with_curl: bool, *postroom: str) -> None:
    put_command(folder / ".venv/bin/postroom", sys.executable, *postroom)
    put_command(folder / ".venv/bin/python", sys.executable)
    bare = (python_of_the_system(), "-I", "-S")  # a reader's python3 has the standard library alone
    put_command(folder / "bin/python3", *bare)
    if not with_curl:
        put_command(folder / "bin/curl", *bare, str(ROOT / "tests" / "curl_stand_in.py"))


def python_of_the_system() -> str:
    """Debian's, where it is there: nothing can be installed into it (PEP 668)."""
    found = shutil.which("python3", path="/usr/bin")
    is_new = found and subprocess.run([found, "-c", "import tomllib"], capture_output=True).returncode == 0
    return found if found and is_new else sys.executable


def read_welcome(printed: IO[str]) -> str:
    lines = [printed.readline()]
    while lines[-1] and not lines[-1].startswith("    -d "):
        lines.append(printed.readline())
    return "".join(lines)


def ports_in(welcome: str) -> dict[str, str]:
    http = re.search(r"API +http://127\.0\.0\.1:(\d+)", welcome)
    smtp = re.search(r"SMTP +127\.0\.0\.1:(\d+)", welcome)
    assert http is not None
    assert smtp is not None
    return {"http": http[1], "smtp": smtp[1]}


def start_whole(folder: Path, environment: dict[str, str], log: IO[str]) -> Process:
    return subprocess.Popen(
        [".venv/bin/postroom", "serve"],
        cwd=folder,
        env={**environment, "POSTROOM_WORKERS": "1"},
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )


def start_forked(folder: Path, environment: dict[str, str], log: IO[str]) -> Process:
    settings = {"POSTROOM_DATA_DIR": "data", "POSTROOM_WORKERS": "0"}
    with chdir(folder):
        return warm_start.start({**environment, **settings}, log)


@contextmanager
def desk(folder: Path, with_curl: bool, is_whole: bool = False) -> Iterator[Desk]:
    """Its reader sees no difference where all is forked and no worker runs; a newcomer starts it whole."""
    with ExitStack() as stack:
        command = warm_start.WHOLE if is_whole else stack.enter_context(warm_start.commands_at_a_door())
        lay_out_commands(folder, with_curl, *command)
        yield stack.enter_context(desk_beside(folder, start_whole if is_whole else start_forked))


@contextmanager
def desk_beside(folder: Path, start: Start) -> Iterator[Desk]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")} | {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": str(folder),  # profiles of the command are kept below it
        "XDG_CONFIG_HOME": str(folder / ".config"),
        "POSTROOM_HTTP": "127.0.0.1:0",
        "POSTROOM_SMTP": "127.0.0.1:0",
        "POSTROOM_API_KEY": TOKEN,
    }
    with listening_endpoint() as endpoint, open(folder / "log.txt", "w") as log:
        process = start(folder, environment, log)
        assert process.stdout is not None
        with process.stdout:
            try:
                welcome = read_welcome(process.stdout)
                assert welcome, (folder / "log.txt").read_text()
                yield Desk(folder, environment, {**ports_in(welcome), "endpoint": endpoint}, welcome)
            finally:
                process.terminate()
                process.wait()


def run_examples(document: Path, reader: Desk) -> str:
    done = reader.run("\n".join(blocks(document, "sh")))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


FOR_NEWCOMERS = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("quickstart", "mcp", "http", "dns")),
]
# The pages of the API are run in tests/test_generated.py, which keeps what they were answered.
API = [ROOT / "docs" / name for name in ["api.md", *re.findall(r"\]\((api/\w+\.md)\)", read("docs/api.md"))]]
RUN_ELSEWHERE = [*FOR_NEWCOMERS, *API]
FOR_ITSELF = [path for path in DOCUMENTS if blocks(path, "sh") and path not in RUN_ELSEWHERE]


@pytest.mark.share
@pytest.mark.parametrize("document", FOR_ITSELF, ids=named)
def test_the_examples_of_a_document_run_from_top_to_bottom_and_again(document: Path, tmp_path: Path) -> None:
    with desk(tmp_path, has_curl()) as reader:
        for _ in range(2):
            run_examples(document, reader)


@pytest.mark.share(2, turn=1)
def test_what_a_newcomer_reads_can_be_followed_one_after_the_other_and_again(tmp_path: Path) -> None:
    """The server is a whole one, and so are the commands of the first page; the others are forked."""
    with (
        desk(tmp_path, has_curl(), is_whole=True) as reader,
        warm_start.commands_at_a_door() as forked,
    ):
        for document in (*FOR_NEWCOMERS, *FOR_NEWCOMERS[:2]):
            shown = run_examples(document, reader)
            put_command(tmp_path / ".venv/bin/postroom", sys.executable, *forked)
            if document.name == "README.md":
                assert "someone@example.com wrote: Are you there? Your code is 482913. ['482913']" in shown
            if document.name == "quickstart.md":
                assert shown.count("answered Broken lamp") == 1
        assert words_of(first_command()) == words_of(reader.welcome.partition("curl ")[2])


@pytest.mark.share(2, turn=0)
def test_the_quickstart_can_be_followed_first(tmp_path: Path) -> None:
    """The stand-in for curl takes its turn on every machine, so that it is fit where it is needed."""
    with desk(tmp_path, with_curl=False) as reader:
        assert run_examples(ROOT / "docs" / "quickstart.md", reader).count("answered Broken lamp") == 1


def test_the_first_page_is_short() -> None:
    assert len(read("README.md").splitlines()) < 120


def test_the_page_of_the_sdk_of_vercel_shows_its_example() -> None:
    [shown] = blocks(ROOT / "docs" / "vercel-ai-sdk.md", "ts")
    assert shown.strip() in read("examples/frameworks/with_vercel_ai.ts")


@pytest.mark.parametrize("name", ["mcp", "claude"])
def test_the_configuration_of_an_mcp_client_is_json_that_leads_here(name: str) -> None:
    for block in blocks(ROOT / "docs" / f"{name}.md", "json"):
        server = json.loads(block)["mcpServers"]["postroom"]
        if server.get("type") == "http":
            assert server["url"] == "http://127.0.0.1:8025/mcp"
            assert server["headers"]["Authorization"].startswith("Bearer ")
        else:
            assert (server["command"], server["args"]) == ("postroom", ["mcp"])
            assert set(server["env"]) == {"POSTROOM_BASE_URL", "POSTROOM_API_KEY"}


def has_curl() -> bool:
    return shutil.which("curl") is not None


def first_command() -> str:
    commands = [block for block in blocks(ROOT / "README.md", "sh") if block.startswith("curl ")]
    return commands[0].removeprefix("curl ")


def words_of(command: str) -> list[str]:
    """As the shell reads them; the key and the port may differ."""
    joined = command.replace("\\\n", " ")
    words = shlex.split(joined.replace("$POSTROOM_API_KEY", TOKEN).replace("$KEY", TOKEN))
    return [re.sub(r"(?<=127.0.0.1:)\d+", "", word) for word in words]


def sections_of_the_api() -> dict[str, str]:
    """What stands below each heading of the third level, on all its pages."""
    _, *parts = re.split(r"^### ", "".join(page.read_text() for page in API), flags=re.MULTILINE)
    return {part.partition("\n")[0]: re.split(r"^##? ", part, flags=re.MULTILINE)[0] for part in parts}


def test_every_route_is_documented_with_an_example_and_no_other() -> None:
    documented = {name: text for name, text in sections_of_the_api().items() if re.match(r"[A-Z]+ /", name)}
    assert set(documented) == {f"{route.method} {route.path}" for route in ROUTES}
    assert [name for name, text in documented.items() if "```sh\n" not in text] == []


def test_the_routes_that_need_an_accounts_key_say_so() -> None:
    documented = sections_of_the_api()
    marked = {name for name, text in documented.items() if "Account key only" in " ".join(text.split())}
    assert marked == {f"{route.method} {route.path}" for route in ROUTES if route.scope == ACCOUNT}


def test_every_error_is_documented_and_no_other() -> None:
    documented = re.findall(r"^\| (\d{3}) \| `(\w+)` \|", read("docs/reference.md"), re.MULTILINE)
    kinds = errors.ApiError.__subclasses__()
    assert sorted(documented) == sorted((str(kind.status), kind.code) for kind in kinds)


def test_every_setting_is_documented_with_its_flag_and_default() -> None:
    rows = re.findall(
        r"^\| `(POSTROOM_\w+)` \| `(--[a-z-]+)` \| (\S+) \|",
        read("docs/settings.md"),
        re.MULTILINE,
    )
    assert {name: default for name, _, default in rows} == {
        name: f"`{default}`" if default else "none" for name, _, default, *_ in SETTINGS
    }
    assert {name: flag for name, flag, _ in rows} == flags_of_serve()


def flags_of_serve() -> dict[str, str]:
    """By the setting that the flag's own help names."""
    options = [option for option in commands()["serve"].params if option.name != "help"]
    found = {}
    for option in options:
        setting = re.search(r"\[(POSTROOM_\w+), default: ", getattr(option, "help", ""))
        assert setting is not None
        found[setting[1]] = option.opts[0]
    return found


@functools.cache
def commands() -> dict[str, Any]:
    """Every command by the words that call it."""
    return dict(commands_below("", command_tree()))


def commands_below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for word, child in getattr(command, "commands", {}).items():
        yield from commands_below(f"{name} {word}".strip(), child)


PIP_COMMAND = re.compile(r"(\S*)\b(?:pip|pip3) install ")


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_whatever_is_installed_goes_into_an_environment(document: Path) -> None:
    """Debian's Python refuses anything else (PEP 668)."""
    shown = "\n".join(blocks(document, "(?:sh|console)"))
    assert [place for place in PIP_COMMAND.findall(shown) if not place.endswith("/bin/")] == []


SHOWN_COMMAND = re.compile(
    r"(?:`(?:\S*/)?postroom ([a-z][^`\n]*)`|^(?:[A-Z_]+=\S+ )*(?:\S*/)?postroom ([a-z][^\n|#]*))",
    re.MULTILINE,
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_command_that_is_named_exists_with_its_options(document: Path) -> None:
    for in_text, in_block in SHOWN_COMMAND.findall(document.read_text()):
        line = (in_text or in_block).replace("import imap://", "import imap imap://")  # the URL says it
        words = in_order(app, line.split())
        count = max(size for size in (1, 2, 3, 0) if " ".join(words[:size]) in commands())
        assert count, f"postroom {line}: no such command"
        command = commands()[" ".join(words[:count])]
        known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        assert set(re.findall(r"(?<!\S)--[a-z-]+", line)) <= known | {"--help"}, f"postroom {line}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_target_of_make_that_is_named_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", document.read_text(), re.MULTILINE)) <= targets


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_measurement_that_is_named_exists(document: Path) -> None:
    arguments = re.findall(r"BENCH_ARGS=\"?([a-z_ ]+)", document.read_text())
    assert {name for names in arguments for name in names.split()} <= set(catalogue.names())


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    follow_links(document)


def test_every_link_of_a_decision_leads_to_a_file_and_a_heading() -> None:
    for document in RECORDS:
        follow_links(document)


def follow_links(document: Path) -> None:
    for target, _, heading in (link.partition("#") for link in links(document)):
        led_to = document.parent / target if target else document
        assert led_to.is_file(), f"{document.name}: {target} is missing"
        assert not heading or heading in anchors(led_to), f"{target} has no heading #{heading}"


def links(document: Path) -> list[str]:
    found = re.findall(r"\]\(([^)\s]+)\)", document.read_text())
    return [link for link in found if not link.startswith("https://")]


@functools.cache
def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_the_flow_names_files_and_functions_that_exist() -> None:
    pages = ("architecture", "flow", "flow-out", "flow-more")
    quoted = re.findall(r"`([^`\s]+)`", "".join(read(f"docs/{page}.md") for page in pages))
    files = [name for name in quoted if name.endswith(".py")]
    functions = [name for name in quoted if name.endswith("()")]
    classes = [name for name in quoted if re.fullmatch(r"[a-z_.]+\.[A-Z]\w+", name)]
    assert [
        name
        for name in files
        if not any((folder / name).is_file() for folder in (SOURCE, SOURCE.parent, ROOT))
    ] == []
    assert [name for name in functions if not is_callable(name.removesuffix("()"))] == []
    assert [name for name in classes if not is_callable(name)] == []
    assert len(files) > 30
    assert len(functions) > 30


def is_callable(dotted: str) -> bool:
    """`module.function` or `module.Class.method`, below the package."""
    module, _, name = dotted.rpartition(".")
    class_name = module.rpartition(".")[2]
    if class_name[:1].isupper():
        return is_callable(module) and callable(getattr(find(module), name, None))
    return callable(find(dotted))


def find(dotted: str) -> object:
    module, _, name = dotted.rpartition(".")
    package = "" if module.startswith("postroom_") else "postroom."
    return getattr(importlib.import_module(package + module), name, None)


def test_every_page_is_in_the_table_of_the_site() -> None:
    pages = {str(path.relative_to(ROOT / "docs")) for path in PAGES}
    assert set(re.findall(r"[\w/-]+\.md", read("mkdocs.yml").partition("nav:\n  -")[2])) == pages
    assert {page for page in pages if "/" not in page} - {"index.md"} == set(
        re.findall(r"\((\S+\.md)\)", read("docs/index.md"))
    )


def test_a_decision_is_a_record_of_its_own_with_title_and_date_and_is_short() -> None:
    head = re.compile(r"# [^\n]+\n\n(\d{4}-\d\d-\d\d)(?: · superseded by \[[^\]]+\]\(\S+\.md\))?\n\n")
    wrong = {
        path.name
        for path in RECORDS
        if not (found := head.match(path.read_text())) or path.name[:10] != found[1]
    }
    assert wrong == set(), "docs/decisions.md says what a record looks like"
    assert {path.name: words for path in RECORDS if (words := len(path.read_text().split())) > 250} == {}
