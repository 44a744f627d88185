"""Measurements with servers that begin where their imports end: for tests of whether one runs."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pytest

from bench import processes
from tests import warm_start


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
        if module == "postroom" and settings is not None:
            with Path(os.devnull).open("w") as nowhere, warm(settings, log or nowhere) as forked:
                yield forked
        else:
            with whole(module, arguments, settings, log) as process:
                yield process

    monkeypatch.setattr(processes, "started", started)


@contextlib.contextmanager
def warm(settings: Mapping[str, str], log: IO[str]) -> Iterator[warm_start.Process]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")}
    assert Path.cwd() == processes.CHECKOUT
    process = warm_start.start(plain | dict(settings), log)
    assert process.stdout is not None
    with process.stdout:
        try:
            yield process
        finally:
            process.terminate()
            process.wait()
