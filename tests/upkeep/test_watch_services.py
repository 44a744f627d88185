"""A service that stops answering, and answers again: one event for each change, whichever nodes see it."""

from pathlib import Path

import pytest

from postroom.clock import MINUTE, SECOND
from postroom.config import load
from postroom.resources import ServiceFaults
from postroom.storage.database import Database, Tx
from postroom.upkeep.watch_services import look, names_asked, record
from tests.adversary.test_infected import Moods
from tests.conftest import running_server, settings
from tests.doubles import FakeClock
from tests.inward.clamav import odd_clamd
from tests.inward.test_clamd import finds, leave
from tests.raw_mails import raw_mail
from tests.stored import make_inbox
from tests.waiting import until

AWAY = "It does not answer."


def told(tx: Tx) -> list[str]:
    rows = tx.all("select kind from events where kind like 'service.%' order by position")
    return [row["kind"].removeprefix("service.") for row in rows]


class Node:
    """What one node finds."""

    def __init__(self, db: Database, name: str) -> None:
        self.db, self.name, self.faults = db, name, ServiceFaults()

    async def finds(self, *, away: bool, now: int) -> list[str]:
        """Return all that was told so far."""
        if away:
            self.faults.record("clamd", AWAY, "refused", now)
        else:
            self.faults.clear("clamd", now)
        await self.db.write(record, self.name, self.faults, ["clamd"], now)
        return await self.db.read(told)


async def test_each_change_is_told_once_by_one_of_two_nodes(db: Database) -> None:
    await db.write(make_inbox)
    one, two, now = Node(db, "one"), Node(db, "two"), 10 * MINUTE
    assert await one.finds(away=True, now=now) == [], "it may be back in a moment"
    assert await two.finds(away=True, now=now) == []
    now += MINUTE
    assert await one.finds(away=True, now=now) == ["failed"]
    assert await two.finds(away=True, now=now) == ["failed"]
    now += MINUTE
    assert await two.finds(away=False, now=now) == ["failed"], "the other does not reach it yet"
    assert await one.finds(away=True, now=now) == ["failed"]
    assert await one.finds(away=False, now=now + SECOND) == ["failed", "mended"]
    assert await two.finds(away=False, now=now + SECOND) == ["failed", "mended"]
    assert await two.finds(away=True, now=now + MINUTE) == ["failed", "mended"]
    assert await two.finds(away=True, now=now + 2 * MINUTE) == ["failed", "mended", "failed"]
    started_again = Node(db, "two, started again")
    assert await started_again.finds(away=False, now=now + 3 * MINUTE) == ["failed", "mended", "failed"]
    assert (await started_again.finds(away=False, now=now + 9 * MINUTE))[3:] == ["mended"]


def test_a_question_that_fails_late_says_nothing_of_a_service_that_has_answered_a_newer_one() -> None:
    faults = ServiceFaults()
    faults.clear("clamd", 2 * SECOND)
    faults.record("clamd", AWAY, "no answer in time", SECOND)
    assert faults.found == {}
    faults.record("clamd", AWAY, "refused", 3 * SECOND)
    assert faults.found.keys() == {"clamd"}


async def test_what_the_settings_no_longer_name_is_forgotten(db: Database) -> None:
    await db.write(make_inbox)
    one = Node(db, "one")
    await one.finds(away=True, now=0)
    assert await one.finds(away=True, now=MINUTE) == ["failed"]
    await db.write(record, "one", ServiceFaults(), [], 2 * MINUTE)
    assert await one.finds(away=False, now=3 * MINUTE) == ["failed"]
    config = load(
        {"POSTROOM_CLAMD": "127.0.0.1:3310", "POSTROOM_SPAMD": "127.0.0.1:783", "POSTROOM_DNSBL": "a.example"}
    )
    assert names_asked(config) == ["clamd", "spamassassin", "list a.example"]


@pytest.mark.sqlite_alone
async def test_the_operator_hears_of_clamd_by_event_metric_page_and_ready(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    moods = Moods()
    moods.now = leave
    async with (
        odd_clamd(moods.talk) as address,
        running_server(settings(tmp_path, DATABASE_URL=database_url, CLAMD=address), clock) as server,
    ):
        await server.new_inbox("hello")
        await server.deliver(raw_mail(message_id="<1@x>"), "hello")
        await until(lambda: server.resources.services.found)
        first = await server.next_event()
        await look(server.resources, "one")
        clock.turn(MINUTE)
        await look(server.resources, "one")
        event = await server.next_event(after=first["event_id"])
        assert (event["event"], event["service"]["name"]) == ("service.failed", "clamd")
        assert event["service"]["error"] == "The malware scanner does not answer."
        assert 'postroom_service_down{service="clamd"} 1.0' in (await server.api.get("/metrics")).text
        assert len((await server.api.get("/ready")).json()["warnings"]) == 1
        moods.now = finds
        await server.deliver(raw_mail(message_id="<2@x>"), "hello")
        second = await server.next_event(after=event["event_id"])
        await look(server.resources, "one")
        event = await server.next_event(after=second["event_id"])
        assert (event["event"], event["service"]) == ("service.mended", {"name": "clamd", "error": None})
        assert "postroom_service_down{" not in (await server.api.get("/metrics")).text
        assert (await server.api.get("/ready")).json()["warnings"] == []
