"""Setup says why there is no certificate, after an order of its own."""

import asyncio
from pathlib import Path

import pytest

from postroom.certificates import certificates
from postroom.certificates.keep_certificates import BELL
from postroom.clock import SystemClock
from postroom.commands import setup_server
from postroom.commands.setup_server import SetupServer
from postroom.host_setup import settings_file
from postroom.host_setup.systemd import Service
from postroom.net.dns import Resolver
from tests.conftest import running_server, settings
from tests.doubles import FakeClock
from tests.ports import free_port
from tests.waiting import PAUSE_SECONDS, until

pytestmark = pytest.mark.sqlite_alone
CLOSED = "https://127.0.0.1:1/dir"


@pytest.mark.share(3, turn=1)
async def test_a_failed_order_is_tried_again_and_its_reason_told(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup_server, "PAUSE_SECONDS", 0.05)
    port, data = free_port(), tmp_path / "data"
    given = {"DOMAIN": "mail.example.com", "HTTP": f"127.0.0.1:{port}", "ACME": CLOSED, "ACME_HTTP": "off"}
    given["MTA_STS"] = "none"
    file = tmp_path / "postroom.env"
    lines = {f"POSTROOM_{name}": value for name, value in {**given, "DATA_DIR": str(data)}.items()}
    settings_file.write(file, lines, None)
    service = Service("", file, data, None, "")
    clock.moment = SystemClock().now()
    async with running_server(settings(data, **given), clock, Resolver([])) as server:
        db = server.resources.db

        async def failures() -> int:
            return sum(each.failures for each in await db.read(certificates.list_all))

        await until(failures)
        waiting = asyncio.ensure_future(
            asyncio.to_thread(SetupServer(service, server.resources.config).wait_for_certificate)
        )
        while not waiting.done():
            clock.moment = SystemClock().now()  # the one of the commands
            db.ring(BELL)
            await asyncio.sleep(PAUSE_SECONDS)
        assert "cannot be asked" in waiting.result()
        assert await failures() == 2
