"""The page of what came and went: by hour and day, of one inbox or all, within what the session reaches."""

import csv
import io

import pytest

from postroom.clock import DAY, HOUR
from postroom.queue.providers import counts
from postroom.queue.providers.counts import CountedHour, ProviderCount
from tests.api.test_dashboard import signed_in
from tests.api.test_pods import inbox_in, new_pod, pod_client
from tests.api.test_stream import mail
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone


async def receive(server: Server, name: str, number: int, after: str | None = None) -> str:
    await server.deliver(mail(number, name), name)
    event_id: str = (await server.next_event(after))["event_id"]
    return event_id


def read(text: str) -> dict[tuple[str, str], int]:
    """Mails that came in, by what the line is about."""
    rows = list(csv.reader(io.StringIO(text)))
    at = rows[0].index("received")
    return {(row[0], row[1]): int(row[at]) for row in rows[1:]}


async def test_mails_are_counted_by_hour_day_and_inbox(server: Server) -> None:
    bob, carol = await server.new_inbox("bob"), await server.new_inbox("carol")
    server.clock.moment = server.clock.now() // DAY * DAY + 12 * HOUR
    first = await receive(server, "bob", 1)
    server.clock.turn(2 * HOUR)
    second = await receive(server, "bob", 2, first)
    await receive(server, "carol", 3, second)
    async with signed_in(server) as page:
        shown = (await page.get("/app/activity?span=24h")).text
        assert "Emails received: 3 in total, at most 2" in shown
        hours = read((await page.get("/app/activity.csv?span=24h")).text)
        assert (hours["time", "12:00"], hours["time", "13:00"], hours["time", "14:00"]) == (1, 0, 2)
        assert (hours["inbox", "bob@postroom.localhost"], hours["inbox", "carol@postroom.localhost"]) == (
            2,
            1,
        )
        one = read((await page.get(f"/app/activity.csv?span=24h&inboxId={carol}")).text)
        assert (one["time", "12:00"], one["time", "14:00"]) == (0, 1)
        for span, days in (("7d", 7), ("30d", 30)):
            found = read((await page.get(f"/app/activity.csv?span={span}&inboxId={bob}")).text)
            assert (len([by for by, _ in found if by == "time"]), sum(found.values())) == (days, 2 * 2)


async def test_latency_is_shown_by_hour_and_day(server: Server) -> None:
    account_id = (await server.api.get("/v1/me")).json()["accountId"]
    pod_id = (await server.api.get("/v1/pods")).json()["data"][0]["id"]
    server.clock.moment = server.clock.now() // DAY * DAY + 12 * HOUR
    now = server.clock.now()
    counted = [
        (
            CountedHour.of(account_id, pod_id, "there.example", now),
            ProviderCount(accepted=2, milliseconds=500),
        ),
        (
            CountedHour.of(account_id, pod_id, "else.example", now),
            ProviderCount(accepted=2, milliseconds=700),
        ),
        (CountedHour.of(account_id, pod_id, "there.example", now - HOUR), ProviderCount(deferred=3)),
    ]
    await server.resources.db.write(counts.add_all, counted)
    async with signed_in(server) as page:
        for span in ("24h", "7d", "30d"):
            assert "Time to acceptance: at most 300 ms" in (await page.get(f"/app/activity?span={span}")).text
            rows = list(csv.DictReader(io.StringIO((await page.get(f"/app/activity.csv?span={span}")).text)))
            assert [row["milliseconds"] for row in rows if row["milliseconds"] != "0"] == ["300"]


async def test_a_pod_sees_its_own_inboxes_alone(server: Server) -> None:
    await new_pod(server, clientId="seven")
    outside = await server.new_inbox("outside")
    inside = await inbox_in(server.api, "inside", podId="seven")
    first = await receive(server, "outside", 1)
    await receive(server, "inside", 2, first)
    async with await pod_client(server, "seven") as tenant:
        token = tenant.headers["Authorization"].removeprefix("Bearer ")
    async with signed_in(server, token) as page:
        for span in ("24h", "7d"):
            found = read((await page.get(f"/app/activity.csv?span={span}")).text)
            assert {what for by, what in found if by == "inbox"} == {"inside@postroom.localhost"}
            assert (await page.get(f"/app/activity?span={span}&inboxId={outside}")).status_code == 404
            assert (await page.get(f"/app/activity?span={span}&inboxId={inside}")).status_code == 200
