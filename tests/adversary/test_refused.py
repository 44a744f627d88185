"""Whatever a stranger sends where email may be refused: it is refused and nowhere, or there once."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.storage.database import Tx
from tests.adversary.hostile import Hostile, hostile
from tests.adversary.test_ways_in import FIRST, MESSAGES, number_of
from tests.api.test_junk import an_inbox, messages_of
from tests.conftest import Server
from tests.doubles import FakeClock
from tests.inward.proxied import hand_over
from tests.inward.test_refusals import HERE, refusing
from tests.waiting import until

ASKING = {("_dmarc.outside.example", "TXT"): ["v=DMARC1; p=reject"]}
JUNK = {"action": "reject", "threshold": 0.02, "rejectThreshold": 0.22}
pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with refusing(tmp_path, database_url, clock, DMARC="reject") as (running, names):
        names.records.update(ASKING)
        yield running


def stored(tx: Tx) -> int:
    return int(tx.tuples("select count(*) from messages")[0][0])


async def events_of(server: Server) -> list[dict[str, Any]]:
    page = (await server.api.get("/v1/events", params={"limit": "100"})).json()
    return [each for each in page["data"] if each["event"] in {"message.received", "message.junk"}]


def sent_as(mail: Hostile) -> bytes:
    """Every second one is from a domain that asks nobody to refuse anything."""
    return mail.raw if mail.number % 2 else mail.raw.replace(b"eve@outside.example", b"eve@there.example")


async def test_a_refused_email_is_nowhere_and_a_taken_one_is_there_once(server: Server) -> None:
    inbox_id = await an_inbox(server, "hello", **JUNK)
    mails: dict[int, Hostile] = {number: hostile(number) for number in range(FIRST, FIRST + MESSAGES)}
    answers = {
        number: await hand_over(server.smtp_port, sent_as(mail), HERE) for number, mail in mails.items()
    }
    taken = {number for number, answer in answers.items() if answer.startswith("250 ")}
    kinds = {answer.split(":")[0] for number, answer in answers.items() if number not in taken}
    assert kinds == {"550 5.7.1 Refused as junk", "550 5.7.26 Refused"}, "both refuse some, in words of ours"

    async def told() -> list[dict[str, Any]]:
        found = await events_of(server)
        return found if len(found) >= len(taken) else []

    events = await until(told)
    shown = await messages_of(server, inbox_id, include="junk", limit="100")
    raws = [(await server.api.get(f"/v1/messages/{each['id']}/raw")).content for each in shown]
    assert sorted(number_of(raw, mails) for raw in raws) == sorted(taken)
    assert sorted(each["message"]["id"] for each in events) == sorted(each["id"] for each in shown)
    folders = {each["id"]: each["folder"] for each in shown}
    assert set(folders.values()) == {"inbox", "junk"}
    for each in events:
        assert (each["event"] == "message.junk") == (folders[each["message"]["id"]] == "junk")
    assert await server.resources.db.read(stored) == len(taken)
