"""Servers whose mail leaves through a peer."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Server
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.outbound import relay_to, running


@pytest.fixture
async def peer() -> AsyncIterator[SmtpPeer]:
    async with SmtpPeer() as peer:
        yield peer


@pytest.fixture
async def sender(
    database_url: str, tmp_path: Path, clock: FakeClock, peer: SmtpPeer
) -> AsyncIterator[Server]:
    async with running(tmp_path, database_url, clock, relay_to(peer)) as server:
        yield server
