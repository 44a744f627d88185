"""One live server for all tests of a worker; a configuration folder and inboxes for each."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postroom_client import profiles
from postroom_client.results import Inbox
from tests.client.live import API_KEY, LiveServer, Shell, running_server

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with running_server(tmp_path_factory.mktemp("live")) as server:
        yield server


@pytest.fixture
def shell(live: LiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Where the server has left its profile, as after `make run`."""
    folder = tmp_path / "config"
    for name in ("API_KEY", "BASE_URL", "INBOX_ID", "PROFILE", "WEBHOOK_SECRET"):
        monkeypatch.delenv(f"POSTROOM_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    profiles.save_local(live.base_url, API_KEY)
    return Shell(live, folder)


@pytest.fixture
def new_inbox(live: LiveServer) -> Callable[[], Inbox]:
    def create() -> Inbox:
        with live.client() as client:
            return client.create_inbox(f"inbox-{next(_numbers)}")

    return create


@pytest.fixture
def inbox(new_inbox: Callable[[], Inbox]) -> Inbox:
    return new_inbox()
