"""A changed email never has `dkim: pass`, unless dkimpy says so too and the text is the author's."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import dkim as dkimpy
import pytest

from postroom.net.dns import Resolver
from postroom_mail.authentication import dkim
from tests.adversary.hostile import FIELDS, NOT_FIELDS, hostile
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.doubles_dns import DnsServer
from tests.mail.keys import private_key, signing_key
from tests.outbound import PATIENCE_SECONDS

MESSAGES = int(os.environ.get("POSTROOM_TEST_HOSTILE", "60"))
FIRST = int(os.environ.get("POSTROOM_TEST_HOSTILE_FIRST", "0"))
FORGED = b"Dear customer, pay 500 to the new account"
RECORD = dkim.public_record(signing_key())
ZONE = {
    ("s1._domainkey.outside.example", "TXT"): [RECORD],
    ("_dmarc.outside.example", "TXT"): ["v=DMARC1; p=reject"],
}
pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with DnsServer(dict(ZONE)) as dns:
        resolver = Resolver([dns.address], deadline_seconds=PATIENCE_SECONDS)
        config = settings(tmp_path, DATABASE_URL=database_url)
        async with running_server(config, clock, resolver) as running:
            yield running


def signed(number: int, random: Random) -> bytes | None:
    """A hostile email, signed by its author as it is; None where its header is too odd for dkimpy to sign."""
    raw = hostile(number).raw
    forms = [
        (b"relaxed", b"relaxed"),
        (b"simple", b"simple"),
        (b"relaxed", b"simple"),
        (b"simple", b"relaxed"),
    ]
    how = {"canonicalize": random.choice(forms), "include_headers": INCLUDED}
    try:
        field: bytes = dkimpy.sign(raw, b"s1", b"outside.example", pem(), **how)
    except dkimpy.DKIMException:
        return None
    return field + raw


INCLUDED = [b"from", b"to", b"subject", b"date"]


def pem() -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return private_key().private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def changed(raw: bytes, random: Random) -> bytes:
    """Somebody on the way adds a line, a field or words."""
    head, gap, body = raw.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    kind = random.choice(("line", "line", "line", "field", "append", "nothing"))
    if kind == "line":
        place = random.choice((len(lines), len(lines), random.randrange(1, len(lines) + 1)))
        lines.insert(place, random.choice((FORGED, *NOT_FIELDS)))
        return b"\r\n".join(lines) + gap + body
    if kind == "field":
        lines.insert(random.randrange(1, len(lines) + 1), random.choice(FIELDS))
        return b"\r\n".join(lines) + gap + body
    return raw + FORGED + b"\r\n" if kind == "append" else raw


def is_genuine(raw: bytes) -> bool:
    def find_record(name: bytes, timeout: float = 5) -> bytes | None:
        return RECORD.encode() if name == b"s1._domainkey.outside.example." else None

    try:
        verified: bool = dkimpy.verify(raw, dnsfunc=find_record)
    except dkimpy.DKIMException:
        return False
    return verified


async def test_no_changed_email_passes(server: Server) -> None:
    await server.new_inbox("agent")
    passed, wrong, after = 0, {}, None
    for number in range(FIRST, FIRST + MESSAGES):
        random = Random(number)
        original = signed(number, random) if hostile(number).is_plain else None
        if original is None:
            continue
        raw = changed(original, random)
        await server.deliver(raw, "agent", sender="eve@outside.example")
        event = await server.next_event(after)
        after = event["event_id"]
        message = (await server.api.get(f"/v1/messages/{event['message']['id']}")).json()
        if message["auth"]["dkim"] == "pass":
            passed += 1
            if not await asyncio.to_thread(is_genuine, raw):
                wrong[number] = hostile(number).tricks
            elif FORGED.decode() in message["bodyText"]:
                wrong[number] = ("the forged line is in the text",)
    assert passed, "an unchanged email passes"
    assert not wrong
