"""Opens the configured database for one command. Only `serve` and `migrate --create` make a new one."""

import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from postroom.config import Config, load

if TYPE_CHECKING:
    from postroom.accounts.accounts import Account
    from postroom.storage.database import Database, Tx

P = ParamSpec("P")
T = TypeVar("T")


def require_account(tx: "Tx", id_or_name: str) -> "Account":
    from postroom.accounts import accounts
    from postroom.errors import NotFound

    account = accounts.find(tx, id_or_name)
    if account is None:
        raise NotFound(f"There is not exactly one account called '{id_or_name}'. See: postroom accounts list")
    return account


def read(fn: "Callable[Concatenate[Tx, P], T]", *args: P.args, **kwargs: P.kwargs) -> T:
    async def work(db: "Database", config: Config) -> T:
        return await db.read(fn, *args, **kwargs)

    return with_database(work)


def decide(verb: "Callable[..., T]", *arguments: Any, account: str | None = None) -> T:
    """Runs an operation of the operator, on the account if one is named."""
    from postroom.clock import SystemClock

    async def work(db: "Database", config: Config) -> T:
        return await db.write(_carry_out, verb, account, arguments, SystemClock().now())

    return with_database(work)


def _carry_out(
    tx: "Tx", verb: "Callable[..., T]", account: str | None, arguments: tuple[Any, ...], now: int
) -> T:
    from postroom.operations.operator import by_command

    named = () if account is None else (require_account(tx, account).id,)
    return verb(tx, by_command(tx), *named, *arguments, now)


def with_database(
    work: "Callable[[Database, Config], Awaitable[T]]", of: Config | None = None, may_create: bool = False
) -> T:
    from postroom.clock import SystemClock
    from postroom.storage.opening import open_database

    async def main() -> T:
        config = of or load(os.environ)
        db = await open_database(config, SystemClock().now(), may_create)
        try:
            return await work(db, config)
        finally:
            await db.close()

    return run_in_loop(main())


def run_in_loop(main: Coroutine[Any, Any, T]) -> T:
    import asyncio

    import uvloop

    from postroom.processes import struct_types

    struct_types.prepare()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
