"""Which emails of a mailbox elsewhere come: UIDs decide, whatever the clocks of both servers say."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import DAY, HOUR
from tests.conftest import Server
from tests.connections.test_people_and_inboxes import OFFICE, coming, mailbox, plain, servers, subjects
from tests.doubles import START, FakeClock


async def connect(here: Server, office: Server, **more: Any) -> tuple[str, str]:
    """To the mailbox of `desk`. Returns the inbox, and the connection once it is read."""
    inbox_id = await here.new_inbox("agent")
    body = mailbox(f"desk@{OFFICE}", inbox_id, password=office.token, port=office.imap_port)
    made = await here.api.post("/v1/connections", json=body | more)
    assert made.status_code == 201, made.text
    await until_live(here, made.json()["id"])
    return inbox_id, made.json()["id"]


async def until_live(here: Server, connection_id: str) -> None:
    async with asyncio.timeout(120):
        while (await here.api.get(f"/v1/connections/{connection_id}")).json()["state"] != "live":
            await asyncio.sleep(0.02)


async def put(office: Server, *names: str) -> None:
    for name in names:
        await office.deliver_to(plain(name), f"desk@{OFFICE}")
        async with asyncio.timeout(120):
            found = (await office.api.get("/v1/inboxes")).json()["data"]
            desk = next(each["id"] for each in found if each["address"].startswith("desk@"))
            while name not in await subjects(office, desk):
                await asyncio.sleep(0.02)


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("hours", [-72.0, -0.0001, 0.0, 72.0])
async def test_the_first_email_into_an_empty_mailbox_comes(
    database_url: str, tmp_path: Path, clock: FakeClock, hours: float
) -> None:
    """The clock of the mailbox's server may be behind, or ahead."""
    other = FakeClock(START + 999 + int(hours * HOUR))
    clock.turn(999)  # of this second: dates of IMAP are whole ones
    async with servers(tmp_path, clock, database_url, other) as (here, office):
        await office.new_inbox("desk")
        inbox_id, _ = await connect(here, office)
        await put(office, "first", "second")
        for name in ("first", "second"):
            await coming(here, inbox_id, name)
        assert await subjects(here, inbox_id) == ["first", "second"]


@pytest.mark.parametrize("hours", [-72, -1])
async def test_what_was_there_before_stays_there_also_after_all_uids_changed(
    database_url: str, tmp_path: Path, clock: FakeClock, hours: int
) -> None:
    other = FakeClock(START + hours * HOUR)
    async with servers(tmp_path, clock, database_url, other) as (here, office):
        await office.new_inbox("desk")
        await put(office, "old")
        other.turn(2000)
        await put(office, "edge")
        inbox_id, connection_id = await connect(here, office)
        other.turn(1000)
        await put(office, "new")
        await coming(here, inbox_id, "new")
        assert await subjects(here, inbox_id) == ["new"]
        await here.resources.db.write(lambda tx: tx.run("update connections set uid_validity = 1"))
        path = f"/v1/connections/{connection_id}"
        assert (await here.api.patch(path, json={"after": "seen"})).status_code == 200
        await until_live(here, connection_id)
        await put(office, "last")
        await coming(here, inbox_id, "last")
        found = await subjects(here, inbox_id)  # the second of the last one may be that of a new one
        assert [each for each in found if each != "edge"] == ["last", "new"]


@pytest.mark.sqlite_alone
async def test_a_date_to_begin_with_is_asked_of_old_email_alone(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    other = FakeClock(START)
    async with servers(tmp_path, clock, database_url, other) as (here, office):
        await office.new_inbox("desk")
        await put(office, "old")
        other.turn(10 * DAY)
        await put(office, "wanted")
        inbox_id, _ = await connect(here, office, since="2026-11-20")
        await coming(here, inbox_id, "wanted")
        other.turn(-10 * DAY)
        await put(office, "late")
        await coming(here, inbox_id, "late")
        assert await subjects(here, inbox_id) == ["late", "wanted"]
