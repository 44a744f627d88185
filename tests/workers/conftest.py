"""Servers whose mail comes in through workers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Server, running_server, settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.outbound import relay_to, running


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    config = settings(tmp_path, DATABASE_URL=database_url, WORKERS="2")
    async with running_server(config, clock) as server:
        yield server


@pytest.fixture
async def peer() -> AsyncIterator[SmtpPeer]:
    async with SmtpPeer() as peer:
        yield peer


@pytest.fixture
async def sender(
    database_url: str, tmp_path: Path, clock: FakeClock, peer: SmtpPeer
) -> AsyncIterator[Server]:
    async with running(tmp_path, database_url, clock, relay_to(peer), workers=1) as server:
        yield server
