"""The seam: what a domain function sees of a database (Tx), and what the doors see of it (Database)."""

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Row(Protocol):
    def __getitem__(self, column: str, /) -> Any: ...


class Tx(Protocol):
    """One transaction. SQL is the subset that SQLite and PostgreSQL share, with :name parameters."""

    def one(self, sql: str, **params: object) -> Row | None: ...
    def all(self, sql: str, **params: object) -> list[Row]: ...
    def run(self, sql: str, **params: object) -> int:
        """Runs a change and tells how many rows it changed."""
        ...


class Ear(Protocol):
    """Hears every ring of its bell since it began to listen or last heard one."""

    async def wait(self, timeout: float) -> bool: ...
    def hear(self) -> None: ...
    def close(self) -> None: ...


class Database(Protocol):
    async def read(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def write(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One transaction, durable on return. `fn` may run again if the first run was rolled back."""
        ...

    def ring(self, *bells: str) -> None: ...
    def listen(self, bell: str) -> Ear: ...
    async def close(self) -> None: ...


class StorageError(Exception):
    """The storage cannot be used as it is; the message tells the operator what to do."""
