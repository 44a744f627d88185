"""Debian's clamd in a folder of its own, with a database of one signature; and others that misbehave."""

import asyncio
import contextlib
import getpass
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from tests import programs
from tests.waiting import until

# The file of the industry that every scanner knows; in two halves, so that none finds it here.
EICAR = rb"X5O!P%@AP[4\PZX54(P^)7CC)7}$" + rb"EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"
SIGNATURE = "Test.Eicar"
NAME = f"{SIGNATURE}.UNOFFICIAL"  # as clamd calls what is in no database of its makers
CONFIGURATION = """
LocalSocket {socket}
DatabaseDirectory {folder}/signatures
TemporaryDirectory {folder}
Foreground yes
User {user}
MaxThreads 4
StreamMaxLength 4M
"""


@contextlib.asynccontextmanager
async def running_clamd(folder: Path) -> AsyncIterator[str]:
    """Gives its address. The path of a socket has at most 107 bytes, and the folder of a test is deep."""
    (folder / "signatures").mkdir()
    (folder / "signatures" / "test.ndb").write_text(f"{SIGNATURE}:0:*:{EICAR.hex()}\n")
    configuration = folder / "clamd.conf"
    short = tempfile.mkdtemp()
    door = Path(short, "clamd.ctl")
    configuration.write_text(CONFIGURATION.format(folder=folder, socket=door, user=getpass.getuser()))
    command = [programs.path_of("clamd"), "--config-file", str(configuration)]
    log = (folder / "log").open("wb")
    clamd = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
    try:
        await until(lambda: clamd.returncode is not None or listens(door), "it listens")
        assert clamd.returncode is None, (folder / "log").read_text()
        yield f"unix:{door}"
    finally:
        if clamd.returncode is None:
            clamd.terminate()
        await clamd.wait()
        log.close()
        shutil.rmtree(short)


def listens(door: Path) -> bool:
    """Its file is there a moment before it listens."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(door)) == 0


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def odd_clamd(talk: Talk) -> AsyncIterator[str]:
    """One that behaves as `talk` says; gives its address."""
    open_ones: set[asyncio.StreamWriter] = set()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.add(writer)
        with contextlib.suppress(OSError):
            await talk(reader, writer)

    listening = await asyncio.start_server(meet, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()
        for writer in open_ones:
            writer.transport.abort()
