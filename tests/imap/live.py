"""A running server with IMAP, and the standard library's client for it."""

import asyncio
import contextlib
import imaplib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock

T = TypeVar("T")


@contextlib.asynccontextmanager
async def running_imap(folder: Path, clock: FakeClock, database_url: str) -> AsyncIterator[Server]:
    config = settings(folder, DATABASE_URL=database_url, IMAP="127.0.0.1:0")
    async with running_server(config, clock) as server:
        yield server


class HasImap(Protocol):
    """A server in this process, or one of its own."""

    @property
    def imap_port(self) -> int | None: ...
    @property
    def token(self) -> str: ...


def log_in(server: HasImap, name: str, token: str | None = None) -> imaplib.IMAP4:
    assert server.imap_port is not None
    client = imaplib.IMAP4("127.0.0.1", server.imap_port, timeout=120)
    try:
        client.login(f"{name}@postroom.localhost", token or server.token)
    except imaplib.IMAP4.error:
        client.shutdown()
        raise
    return client


async def aside(work: Callable[[], T]) -> T:
    """A client that blocks, while the server goes on in this loop."""
    return await asyncio.to_thread(work)


def ok(answer: tuple[str, Any]) -> Any:
    word, data = answer
    assert word == "OK", answer
    return data
