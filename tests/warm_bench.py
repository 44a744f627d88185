"""Measurements with servers that begin where their imports end, for tests of whether one runs."""

import contextlib
import multiprocessing
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import IO, Any

import pytest

from bench import load_client, processes
from postroom.storage.engines import sqlite
from postroom.storage.engines.sqlite import SqliteDatabase
from tests import warm_start
from tests.migrated import put_migrated_sqlite


@pytest.fixture
def warm_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = processes.started

    @contextlib.contextmanager
    def started(
        module: str,
        arguments: list[str],
        settings: Mapping[str, str] | None = None,
        log: IO[str] | None = None,
    ) -> Iterator[Any]:
        if module != "postroom" or settings is None:
            with whole(module, arguments, settings, log) as process:
                yield process
            return
        plain = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")}
        with open(os.devnull, "w") as nowhere:
            forked = warm_start.start({**plain, "POSTROOM_WORKERS": "1", **settings}, log or nowhere)
        assert forked.stdout is not None
        with forked.stdout:
            try:
                yield forked
            finally:
                forked.terminate()
                forked.wait()

    monkeypatch.setattr(processes, "started", started)


@pytest.fixture(scope="module")
def one_client() -> Iterator[None]:
    """One process that applies the load of all measurements of a module, one after the other."""
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as client,
        pytest.MonkeyPatch.context() as patch,
    ):

        def run(module: str, load: bytes) -> bytes:
            return client.submit(load_client.apply, module, load).result()

        patch.setattr(load_client, "run", run)
        yield


@pytest.fixture
def migrated_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sqlite.open_sqlite

    def open_sqlite(path: Path, now: int, may_create: bool = True) -> SqliteDatabase:
        if not path.exists():
            put_migrated_sqlite(path.parent)
        return whole(path, now, may_create)

    monkeypatch.setattr(sqlite, "open_sqlite", open_sqlite)
