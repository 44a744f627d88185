"""What every worker would make for itself from the source when it starts, made once before they do.

In a new checkout that is most of a worker's start: test modules with their asserts rewritten, and the modules
beside them compiled.
"""

import compileall
import contextlib
import importlib
import multiprocessing
from pathlib import Path

import pytest
from _pytest.assertion import rewrite
from hypothesis.internal.charmap import charmap

from postroom.inward import receive
from postroom.net.certificate import trusted_authorities
from postroom.web.dashboard.display.rendering import Renderer
from postroom_client.transport import wire
from postroom_mail.languages.patterns import compile_one
from tests.plain_transport import trusting

ROOT = Path(__file__).parent.parent
LATE = ("httpcore2", "jsonschema", "mcp.server", "webauthn", "websockets.client")
REWRITTEN = ("test_*.py", "conftest.py")


def prepare(config: pytest.Config, processes: int) -> None:
    """By processes that are copies of this one, side by side."""
    modules = sorted((ROOT / "tests").rglob("*.py"))
    tests = [path for path in modules if any(path.match(pattern) for pattern in REWRITTEN)]
    missing = [path for path in tests if not is_rewritten(path)]
    if not missing:
        return
    others = sorted({*modules} - {*tests})
    copies = multiprocessing.get_context("fork")
    children = [
        copies.Process(target=work, args=(config, missing[at::processes], others[at::processes]))
        for at in range(processes)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()


def work(config: pytest.Config, tests: list[Path], others: list[Path]) -> None:
    for path in tests:
        with contextlib.suppress(SyntaxError):  # the worker that imports it tells
            write_rewritten(config, path)
    for path in others:
        compileall.compile_file(path, quiet=2)


def load_what_comes_late() -> None:
    """What the program makes or loads at its first use: copies of this process have it already."""
    for name in LATE:
        importlib.import_module(name)
    trusting()
    wire.trusted()
    trusted_authorities()
    charmap()
    receive.warm_up()
    while compile_one():
        pass
    templates = Renderer("")._environment
    for name in templates.list_templates(filter_func=lambda name: name.endswith(".html") and "/" not in name):
        templates.get_template(name)


def is_rewritten(path: Path) -> bool:
    return rewrite._read_pyc(path, place_of(path)) is not None


def write_rewritten(config: pytest.Config, path: Path) -> None:
    place = place_of(path)
    source_hash, code = rewrite._rewrite_test(path, config)
    rewrite.try_makedirs(place.parent)
    rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, place)


def place_of(path: Path) -> Path:
    return rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)
