"""Builds and wires every part, top to bottom. Read this first."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import replace

from postroom import accounts, keys
from postroom.accounts import Account
from postroom.clock import Clock, SystemClock
from postroom.config import Config, ConfigError, Endpoint
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import Database, Tx
from postroom.storage.folder import FolderLock, make_folder
from postroom.web.door import Door
from postroom.web.server import HttpServer

FIRST_ACCOUNT = "default"
KEY_USE_SECONDS = 5.0


class Postroom:
    """A running server."""

    def __init__(self, resources: Resources, first_token: str | None) -> None:
        self.resources = resources
        self.first_token = first_token  # set once: when this start made the first account


@contextlib.asynccontextmanager
async def serving(config: Config, clock: Clock | None = None) -> AsyncIterator[Postroom]:
    """Everything is up inside the block, and has finished its work after it."""
    async with contextlib.AsyncExitStack() as stack:
        lock = FolderLock(config.data_dir)
        stack.callback(lock.release)
        listener = listen("POSTROOM_HTTP", config.http)
        stack.callback(listener.close)
        config = with_base_url(config, listener)

        clock = clock or SystemClock()
        db = await open_database(config, clock.now())
        stack.push_async_callback(db.close)
        resources = Resources(config, db, LocalBlobs(config.data_dir / "blobs"), clock)
        first_token = await db.write(make_first_account, config, clock.now())

        door = Door(resources)
        stack.push_async_callback(door.key_use.save)
        stack.push_async_callback(stop, asyncio.create_task(save_key_use_now_and_then(door)))
        http = HttpServer(door, listener)
        await http.start()
        stack.push_async_callback(http.stop)

        yield Postroom(resources, first_token)


async def open_database(config: Config, now: int) -> Database:
    if config.database_url:
        from postroom.storage.postgres import open_postgres

        return await open_postgres(config.database_url, now)
    from postroom.storage.sqlite import open_sqlite

    make_folder(config.data_dir)
    return open_sqlite(config.data_dir / "postroom.db", now)


def make_first_account(tx: Tx, config: Config, now: int) -> str | None:
    """On an empty database: an account and its key. The token is returned this once."""
    if accounts.is_any(tx):
        return None
    account: Account = accounts.add(tx, FIRST_ACCOUNT, config.plan, now)
    token = config.api_key or keys.new_token()
    keys.add(tx, account.id, None, "first key", token, now)
    return token


async def save_key_use_now_and_then(door: Door) -> None:
    while True:
        await asyncio.sleep(KEY_USE_SECONDS)
        await door.key_use.save()


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def listen(setting: str, endpoint: Endpoint) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
        return socket.create_server((endpoint.host, endpoint.port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        raise ConfigError(setting, f"cannot listen on {endpoint}: {error}") from error


def with_base_url(config: Config, listener: socket.socket) -> Config:
    http = Endpoint(config.http.host, listener.getsockname()[1])
    return replace(config, http=http, base_url=config.base_url or f"http://{http}")
