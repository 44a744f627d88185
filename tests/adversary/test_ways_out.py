"""Nothing leaves that the approver did not see: rules, hash, page, REST and wire read the same email."""

import hashlib
import html
import os
import re
from collections.abc import AsyncIterator
from email import message_from_bytes
from email.utils import getaddresses
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from postroom_client import AsyncClient
from postroom_client.mcp.api_caller import Caller
from postroom_client.mcp.approval_card import card_of
from postroom_client.results import Message
from postroom_mail.writing.content_hash import read_content
from tests.adversary import second_reading, ways_out
from tests.adversary.ways_out import NAME, WayOut
from tests.api.test_dashboard import signed_in
from tests.conftest import Server, running_server, settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.outbound import relay_to, settled
from tests.outward.test_holds import EVERYTHING, add_key, decide
from tests.waiting import until

PARTS = 3  # fewer messages than in a third may all be refused
MESSAGES = int(os.environ.get("POSTROOM_TEST_HOSTILE_SENDS", "12"))  # by each way, a third in each part
A_PART = -(-MESSAGES // PARTS)
FIRST = int(os.environ.get("POSTROOM_TEST_HOSTILE_FIRST", "0"))
REVIEWER = "boss@office.example"
RULES = {"when": ["always", "links", "attachments"]}
FREE = dict.fromkeys(("SENDS_PER_MINUTE", "SENDS_PER_DAY", "COLD_PER_DAY"), "0")
pytestmark = pytest.mark.sqlite_alone

QUOTING = (
    ways_out.by_forward,
    ways_out.by_answer,
    ways_out.by_rule,
)  # links of the automatic quote do not count


@pytest.fixture
async def peer() -> AsyncIterator[SmtpPeer]:
    async with SmtpPeer() as peer:
        yield peer


@pytest.fixture
async def server(
    database_url: str, tmp_path: Path, clock: FakeClock, peer: SmtpPeer
) -> AsyncIterator[Server]:
    doors = {"IMAP": "127.0.0.1:0", "SUBMISSION": "127.0.0.1:0", "OUTBOUND": relay_to(peer)}
    config = settings(tmp_path, DATABASE_URL=database_url, PLAN="developer", **doors, **FREE)
    async with running_server(config, clock) as running:
        yield running


def words_of(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text) if word.isascii()}


def unseen(page: str, content: dict[str, Any]) -> set[str]:
    """Words of the email that the page does not show."""
    texts = [content["subject"], content["bodyText"], content["bodyHtml"], *content["to"], *content["cc"]]
    texts += [*content["bcc"], *content["headers"].values(), *content["references"]]
    texts += [word for file in content["attachments"] for word in (file["filename"], file["sha256"])]
    return words_of(" ".join(texts)) - words_of(page)


@pytest.mark.share(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("way", ways_out.ALL, ids=lambda way: way.__name__)
async def test_what_leaves_is_what_the_approver_saw(
    server: Server, peer: SmtpPeer, way: WayOut, part: int
) -> None:
    inbox_id = await server.new_inbox(NAME)
    changed = await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": RULES})
    assert changed.status_code == 200, changed.text
    person = await server.resources.db.write(add_key, server, None, EVERYTHING)
    faults: dict[int, list[str]] = {}
    accepted = 0
    async with signed_in(server) as page:
        for number in range(FIRST + A_PART * part, FIRST + A_PART * (part + 1)):
            message_id = await way(server, inbox_id, number)
            if message_id is not None:
                accepted += 1
                if found := await faults_of(server, peer, page, person, way, message_id):
                    faults[number] = found
    assert accepted
    assert not faults, "\n".join(f"{number}: {found}" for number, found in faults.items())


def faults_of_redirect(message: dict[str, Any], page: str, raw: bytes, wire: bytes) -> list[str]:
    """A redirect keeps the author's bytes: the hash covers them all, and the page shows them."""
    faults = []
    if not wire.endswith(raw) or second_reading.unexpected_fields(_without_seal(wire[: -len(raw)])):
        faults.append("other bytes leave than those that were approved")
    if hashlib.sha256(raw).hexdigest() not in page:
        faults.append("the page does not show the hash of the source")
    if words := words_of(second_reading.plain_text_of(raw)) - words_of(page):
        faults.append(f"the page does not show {sorted(words)[:5]}")
    if second_reading.urls_of(wire) and "links" not in message["hold"]["reasons"]:
        faults.append("it holds a link, and the rule does not say so")
    return faults


def _without_seal(head: bytes) -> bytes:
    return re.sub(rb"(?mi)^arc-[a-z-]+:(?:[^\r\n]|\r\n[ \t])*\r\n", b"", head) + b"\r\n"


async def test_a_notice_shows_the_reviewer_what_will_leave(server: Server, peer: SmtpPeer) -> None:
    """The email attached to it has the hash that the reviewer approves; nothing in it steers the notice."""
    inbox_id = await server.new_inbox(NAME)
    rules = {"when": ["always"], "reviewers": [REVIEWER]}
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": rules})
    faults = {}
    for number in range(FIRST, FIRST + MESSAGES):
        way = ways_out.by_submission if number % 2 else ways_out.by_rest
        before = len(peer.mails)
        message_id = await way(server, inbox_id, number)
        if message_id is not None:
            message = (await server.api.get(f"/v1/messages/{message_id}")).json()
            await until(lambda: len(peer.mails) > before, "the reviewer is told")  # noqa: B023
            if found := faults_of_notice(peer.mails[before].raw, message):
                faults[number] = found
    assert not faults, "\n".join(f"{number}: {found}" for number, found in faults.items())


def faults_of_notice(wire: bytes, message: dict[str, Any]) -> list[str]:
    notice = message_from_bytes(wire)
    attached = [part for part in notice.walk() if part.get_filename("").endswith(".eml")]
    names = [file["filename"] for file in message["attachments"]]
    content = second_reading.content_of(second_reading.bytes_of(attached[0]), message["bcc"], names)
    faults = []
    if second_reading.hash_of(content) != message["hold"]["contentHash"]:
        faults.append("the attached email is another one")
    if getaddresses(notice.get_all("To", [])) != [("", REVIEWER)] or notice.get("Cc") or notice.get("Bcc"):
        faults.append(f"it goes to {notice.get_all('To')}, {notice.get_all('Cc')}")
    return faults


async def differing(server: Server, message: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    """Which fields the second reader sees otherwise, for the message of a failed test."""
    raw = (await server.api.get(f"/v1/messages/{message['id']}/raw")).content
    own = msgspec.to_builtins(read_content(raw, message["bcc"]))
    return {name: (value, own[name]) for name, value in content.items() if value != own[name]}


def unseen_on_card(told: bytes, content: dict[str, Any]) -> set[str]:
    """Words of the email that its card in a host of MCP does not show; it says that there is HTML."""
    card = card_of(msgspec.json.decode(told, type=Message), Caller(AsyncClient("pr_1")))
    shown = [card["to"], card["bcc"], card["subject"], card["text"], *card["headers"]]
    shown += [file["name"] for file in card["files"]]
    texts = [content["subject"], *content["to"], *content["cc"], *content["bcc"]]
    texts += [*content["headers"].values(), *(file["filename"] for file in content["attachments"])]
    texts += [] if card["isCut"] else [content["bodyText"]]
    missing = words_of(" ".join(texts)) - words_of(" ".join(shown))
    return missing | ({"HTML"} if content["bodyHtml"] and not card["hasHtml"] else set())


async def faults_of(
    server: Server, peer: SmtpPeer, page: httpx2.AsyncClient, person: str, way: WayOut, message_id: str
) -> list[str]:
    told = (await server.api.get(f"/v1/messages/{message_id}")).content
    message = msgspec.json.decode(told)
    if message["hold"] is None:
        return ["it is not held"]
    shown = html.unescape((await page.get("/app/approvals", params={"message": message_id})).text)
    before = len(peer.mails)
    answer = await decide(server, message, person)
    if answer.status_code != 200:
        return [f"it cannot be approved: {answer.text}"]
    await settled(server, message_id)  # all its copies: a late one would be taken for the next email
    await until(lambda: len(peer.mails) > before, "it leaves")
    wire = peer.mails[before].raw
    if way in (ways_out.by_redirect, ways_out.by_redirecting_rule):
        raw = (await server.api.get(f"/v1/messages/{message_id}/raw")).content
        return faults_of_redirect(message, shown, raw, wire)
    names = [file["filename"] for file in message["attachments"]]
    content = second_reading.content_of(wire, message["bcc"], names)
    faults = [f"nobody sees the field {name}" for name in second_reading.unexpected_fields(wire)]
    if second_reading.hash_of(content) != message["hold"]["contentHash"]:
        faults.append(f"the second reader sees {await differing(server, message, content)}")
    if words := unseen(shown, content):
        faults.append(f"the page does not show {sorted(words)[:5]}")
    if words := unseen_on_card(told, content):
        faults.append(f"the card does not show {sorted(words)[:5]}")
    if way not in QUOTING and second_reading.urls_of(wire) and "links" not in message["hold"]["reasons"]:
        faults.append("it holds a link, and the rule does not say so")
    if content["attachments"] and "attachments" not in message["hold"]["reasons"]:
        faults.append("it holds a file, and the rule does not say so")
    if message["subject"].strip() != content["subject"]:
        faults.append(f"REST shows another subject than {content['subject']!r}")
    if message_from_bytes(wire)["Message-ID"] != message["rfcMessageId"]:
        faults.append("REST shows another Message-ID")
    return faults
