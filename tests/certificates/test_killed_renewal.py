"""kill -9 in the middle of a renewal: the old certificate stays, and the next start renews it."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography import x509

from postroom.certificates import certificates
from postroom.certificates.certificates import StoredCertificate
from postroom.clock import DAY, SECOND
from postroom.smtp.tls import make_certificate as make_files
from postroom.storage.opening import open_database
from tests.certificates.test_acme import shown
from tests.conftest import settings
from tests.couriers.certificates import make_certificate, server_context
from tests.end_to_end.process import serving_process
from tests.ports import free_port
from tests.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.sqlite_alone
HOST, TOKEN = "mail.example.com", "token-of-the-challenge"


@dataclass
class Stalling:
    """An authority that takes an order and then says nothing more."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    stalled: asyncio.Queue[None] = field(default_factory=asyncio.Queue)

    def answer_to(self, path: str) -> object:
        challenge = {"type": "http-01", "url": f"{self.url}/challenge", "token": TOKEN}
        return {
            "/dir": {name: f"{self.url}/{name}" for name in ("newNonce", "newAccount", "newOrder")},
            "/newNonce": {},
            "/newAccount": {"status": "valid"},
            "/newOrder": {
                "status": "pending",
                "authorizations": [f"{self.url}/authorization"],
                "finalize": f"{self.url}/finalize",
            },
            "/authorization": {
                "status": "pending",
                "identifier": {"type": "dns", "value": HOST},
                "challenges": [challenge],
            },
        }[path]

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split()[1]
            self.asked.append(path)
            if path == "/challenge":
                self.stalled.put_nowait(None)
                await reader.read()  # until the server is killed
            else:
                body = json.dumps(self.answer_to(path)).encode()
                told = f"Replay-Nonce: n\r\nLocation: {self.url}/made\r\nContent-Length: {len(body)}\r\n"
                writer.write(f"HTTP/1.1 200 OK\r\n{told}Connection: close\r\n\r\n".encode() + body)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def stalling(pem: Path) -> AsyncIterator[Stalling]:
    authority = Stalling()
    server = await asyncio.start_server(authority.talk, "127.0.0.1", 0, ssl=server_context(pem))
    authority.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield authority
    server.close()


async def stored(folder: Path, chain: str = "", key: str = "") -> StoredCertificate:
    """What is stored; with a chain, that is stored as due for renewal."""
    db = await open_database(settings(folder), int(time.time()) * SECOND)
    try:
        if chain:
            now = int(time.time()) * SECOND
            await db.write(certificates.set_wanted, [(HOST,)], now)
            await db.write(certificates.record_issued, HOST, chain, key, now + 20 * DAY, now, now)
        (found,) = await db.read(certificates.list_all)
        return found
    finally:
        await db.close()


async def test_a_renewal_that_is_killed_keeps_the_certificate_and_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem, folder = make_certificate(tmp_path, "127.0.0.1"), tmp_path / "data"
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    make_files(tmp_path / "chain", tmp_path / "key", HOST)
    folder.mkdir()
    before = await stored(folder, (tmp_path / "chain").read_text(), (tmp_path / "key").read_text())
    own = x509.load_pem_x509_certificate((tmp_path / "chain").read_bytes())
    async with stalling(pem) as authority:
        more = {"DOMAIN": HOST, "ACME": f"{authority.url}/dir", "MTA_STS": "none"}
        for _ in range(2):
            more["ACME_HTTP"] = f"127.0.0.1:{free_port()}"
            with serving_process(folder, workers=0, more=more) as server:
                await asyncio.wait_for(authority.stalled.get(), LIMIT_SECONDS)
                assert (await shown(server.http_port, HOST)).serial_number == own.serial_number
                server.kill()
            assert await stored(folder) == before
    assert authority.asked.count("/newOrder") == 2
    assert authority.asked.count("/newAccount") == 1, "its key was stored before"
