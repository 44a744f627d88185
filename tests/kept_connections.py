"""Connections to PostgreSQL that a test has closed, for the next test of this process on the same database.

Each is a process of PostgreSQL that knows the tables and has its plans.
A server that is a process of its own opens and closes its own.
"""

import contextlib
import os
import select
from collections import defaultdict
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from postroom.storage.engines import postgres_connections

AS_NEW = "reset all; unlisten *; select pg_advisory_unlock_all()"

Raw = psycopg.Connection[dict[str, Any]]

_open_new = postgres_connections.connect
_shelves: dict[tuple[int, str], defaultdict[str, list[Raw]]] = {}  # of a process and a database, by URL


class Lent:
    """A connection until it is closed by whoever has it now."""

    def __init__(self, raw: Raw, shelf: list[Raw]) -> None:
        self._raw, self._shelf = raw, shelf
        self._is_back = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    @property
    def closed(self) -> bool:
        return self._is_back or self._raw.closed

    def close(self) -> None:
        if not self._is_back:
            self._is_back = True
            keep(self._raw, self._shelf)


def connect(url: str) -> Any:
    shelves = _shelves.get(name_of(str(conninfo_to_dict(url).get("dbname"))))
    if shelves is None:
        return _open_new(url)
    shelf = shelves[url]
    while shelf:
        raw = shelf.pop(0)
        if is_silent(raw):
            return Lent(raw, shelf)
        raw.close()
    return Lent(_open_new(url), shelf)


def keep(raw: Raw, shelf: list[Raw]) -> None:
    if not raw.closed and raw.info.transaction_status == TransactionStatus.IDLE:
        with contextlib.suppress(psycopg.Error):
            raw.execute(AS_NEW, prepare=False)
            shelf.append(raw)
            return
    raw.close()


def is_silent(raw: Raw) -> bool:
    """One that was sent away has something to read: the reason, and its end."""
    ready = select.poll()
    ready.register(raw.fileno(), select.POLLIN)
    return not ready.poll(0)


def name_of(database: str) -> tuple[int, str]:
    return os.getpid(), database


def begin(database: str) -> None:
    _shelves[name_of(database)] = defaultdict(list)


def end(database: str) -> None:
    close_all(database)
    del _shelves[name_of(database)]


def processes_of(database: str) -> list[int]:
    """Of PostgreSQL."""
    return [raw.info.backend_pid for shelf in _shelves[name_of(database)].values() for raw in shelf]


def close_all(database: str) -> None:
    for shelf in _shelves[name_of(database)].values():
        while shelf:
            shelf.pop().close()
