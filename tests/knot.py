"""A name server of others (Knot DNS) that holds zones and takes signed updates."""

import asyncio
import contextlib
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from tests.ports import free_port
from tests.programs import path_of
from tests.waiting import until

ZONE = "@ 60 IN SOA ns hostmaster 1 60 60 60 1\n@ 60 IN NS ns.nowhere.invalid.\n"
CONFIG = """\
server:
    listen: {listen}
    rundir: "{short}"
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: "{folder}"
    journal-db-max-size: 8M
    kasp-db-max-size: 8M
    timer-db-max-size: 8M
    catalog-db-max-size: 8M
control:
    listen: "{short}/knot.sock"
key:
  - id: {name}
    algorithm: {algorithm}
    secret: {secret}
acl:
  - id: updates
    key: {name}
    action: update
template:
  - id: default
    storage: "{folder}"
    file: "%s.zone"
    acl: updates
    journal-max-usage: 2M
    semantic-checks: off
zone:
{zones}"""


@contextlib.asynccontextmanager
async def running(folder: Path, zones: Mapping[str, Sequence[str]], key: str) -> AsyncIterator[int]:
    """Gives its port. The key is `algorithm:name:secret`."""
    port = free_port()
    short = tempfile.mkdtemp()  # the path of a socket has at most 107 bytes
    write(folder, f"127.0.0.1@{port}", zones, key, short)
    with (folder / "knot.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            path_of("knotd"), "-c", str(folder / "knot.conf"), stdout=log, stderr=log
        )
    try:
        await until(lambda: _answers(port))
        yield port
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        shutil.rmtree(short)


def write(folder: Path, listen: str, zones: Mapping[str, Sequence[str]], key: str, short: str = "") -> None:
    """Writes its settings and zones into the folder."""
    algorithm, name, secret = key.split(":")
    for zone, lines in zones.items():
        (folder / f"{zone}.zone").write_text(ZONE + "\n".join([*lines, ""]))
    named = "".join(f"  - domain: {zone}\n" for zone in zones)
    (folder / "knot.conf").write_text(
        CONFIG.format(
            listen=listen,
            folder=folder,
            short=short or folder,
            name=name,
            algorithm=algorithm,
            secret=secret,
            zones=named,
        )
    )


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False
