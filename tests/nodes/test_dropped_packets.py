"""A network that drops every packet on its way to the database, without a word to anybody."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from postroom.accounts import accounts
from postroom.errors import Unavailable
from postroom.storage.database import Database
from postroom.storage.engines.postgres import open_postgres
from tests import programs
from tests.doubles import START

PORT = 5432
PATIENCE_SECONDS = 60

pytestmark = pytest.mark.needs("network namespaces")


@dataclass(frozen=True, slots=True)
class Network:
    """A namespace at the other end of a cable that can be cut."""

    name: str
    host: str

    def cut(self) -> None:
        self.inside("ip", "link", "set", f"{self.name}b", "down")

    def mend(self) -> None:
        self.inside("ip", "link", "set", f"{self.name}b", "up")

    def inside(self, *command: str) -> None:
        run("netns", "exec", self.name, *command)


def run(*arguments: str) -> None:
    subprocess.run([programs.path_of("ip"), *arguments], check=True, capture_output=True)


@pytest.fixture
def network() -> Iterator[Network]:
    """Names and addresses of this process, so that two runs do not meet."""
    number = os.getpid() % 16_384
    name, base = f"pr{number}", f"10.{213 + number // 4_096}.{number // 16 % 256}"
    first = number % 16 * 4
    run("netns", "add", name)
    try:
        run("link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b", "netns", name)
        run("addr", "add", f"{base}.{first + 1}/30", "dev", f"{name}a")
        run("link", "set", f"{name}a", "up")
        found = Network(name, f"{base}.{first + 2}")
        found.inside("ip", "addr", "add", f"{found.host}/30", "dev", f"{name}b")
        found.mend()
        yield found
    finally:
        run("netns", "del", name)


@pytest.fixture
def far_url(network: Network, postgres_url: str) -> Iterator[str]:
    """The database, seen through the cable."""
    name, _, folder = postgres_url.rpartition("/test_")[2].partition("?host=")
    relay = [sys.executable, "-m", "tests.nodes.relay", network.host, str(PORT), f"{folder}/.s.PGSQL.{PORT}"]
    command = [programs.path_of("ip"), "netns", "exec", network.name, *relay]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        try:
            yield f"postgresql://postroom@{network.host}:{PORT}/test_{name}"
        finally:
            process.kill()


async def write(db: Database, name: str) -> str:
    return (await db.write(accounts.add, name, "free", START)).name


async def test_dropped_packets_are_unavailable_soon_and_all_goes_on_when_they_pass_again(
    network: Network, far_url: str
) -> None:
    db = await open_postgres(far_url, START)
    assert await write(db, "before") == "before"
    network.cut()
    async with asyncio.timeout(PATIENCE_SECONDS):
        outcomes = await asyncio.gather(
            write(db, "never"), *(db.read(accounts.is_any) for _ in range(10)), return_exceptions=True
        )
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 11
    network.mend()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with contextlib.suppress(Unavailable):
                assert await write(db, "after") == "after"
                break
            await asyncio.sleep(0.05)
        assert [account.name for account in await db.read(accounts.list_all)] == ["before", "after"]
    await db.close()
