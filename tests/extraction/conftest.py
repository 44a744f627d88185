"""Readers are started here as users start them."""

import pytest

from postroom.processes import child_processes
from tests import warm_reader


@pytest.fixture(autouse=True)
def whole_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_processes, "start_python", warm_reader.start_python)
