"""The server process, from its start to its end."""

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from postroom.commands.database import run_in_loop
from postroom.config import Config, load, unknown_settings

if TYPE_CHECKING:
    from postroom.assembly import Postroom
    from postroom.resources import Resources
    from postroom_client.profiles import SavedProfile

# With Python's usual 5 ms, a busy event loop would delay the writer at each of an email's dozen statements.
SWITCH_SECONDS = 0.0005


def run(environment: Mapping[str, str]) -> None:
    config = load(environment)
    if unknown := unknown_settings(os.environ):
        print(f"postroom: no such setting: {', '.join(unknown)}", file=sys.stderr)
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.disable()  # while everything is loaded: there is nothing to collect
    run_in_loop(_serve(config))


async def _serve(config: Config) -> None:
    from postroom.assembly import serving
    from postroom.processes import loading
    from postroom.welcome import welcome

    stopping, hurry = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, lambda: (hurry if stopping.is_set() else stopping).set())
    async with serving(config) as postroom:
        if not sys.stdin.isatty():  # else the signal says that the terminal was closed
            loop.add_signal_handler(signal.SIGHUP, postroom.reload_certificate)
        print(welcome(postroom), flush=True)
        await _record_key(postroom)
        loading.finish()
        await stopping.wait()
        await _drain_unless_stopped_twice(postroom, hurry)
    _say_goodbye()


def _say_goodbye() -> None:
    """Say goodbye, on a terminal below the ^C that it shows."""
    start = "\n" if sys.stdout.isatty() else ""
    with contextlib.suppress(OSError):  # nobody reads any more
        print(f"{start}Postroom has stopped. No data is lost. Start it again: postroom serve", flush=True)


async def _drain_unless_stopped_twice(postroom: "Postroom", hurry: asyncio.Event) -> None:
    tasks = asyncio.create_task(postroom.drain()), asyncio.create_task(hurry.wait())
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _record_key(postroom: "Postroom") -> None:
    """Saves the first key as a profile, so that the next command here works without settings."""
    from postroom_client import profiles

    config = postroom.resources.config
    if postroom.first_token is not None:
        try:
            saved = profiles.save_local(config.base_url, postroom.first_token)
        except OSError as error:
            print(f"postroom: no profile was saved: {error}", file=sys.stderr)
        else:
            _say_which_profile(saved)
    elif config.api_key:
        await _say_if_it_is_no_key(postroom.resources, config.api_key)


async def _say_if_it_is_no_key(resources: "Resources", api_key: str) -> None:
    """Warn if it is no key. If the database fails at this moment, the server starts anyway."""
    from postroom.accounts import keys
    from postroom.errors import Unavailable

    with contextlib.suppress(Unavailable):
        if await resources.db.read(keys.find_caller, api_key, resources.now()) is None:
            print(
                "postroom: POSTROOM_API_KEY is not a key of this server: only the first start uses it",
                file=sys.stderr,
            )


def _say_which_profile(saved: "SavedProfile") -> None:
    from postroom_client import profiles

    if saved.name == profiles.LOCAL:
        print(f"The API key is saved in {profiles.file_path()}. Commands on this machine use it.", flush=True)
        return
    use = "now in use" if saved.is_current else f"to use it: postroom profiles use {saved.name}"
    print(
        f"postroom: the profile '{profiles.LOCAL}' of another server is kept;"
        f" the key is saved as profile '{saved.name}' ({use}), in {profiles.file_path()}",
        file=sys.stderr,
    )
