"""Upkeep: what has expired goes, what is needed stays."""

import os
from pathlib import Path

from postroom.clock import DAY
from postroom.upkeep import one_round, sweep_orphans
from tests.api.test_stream import mail
from tests.conftest import Server


def age(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (0, 0))


async def test_a_blob_that_no_mail_names_is_removed_after_a_while_and_no_other(
    server: Server, tmp_path: Path
) -> None:
    await server.new_inbox("hello")
    await server.deliver(mail(1) + b"x" * 300_000, "hello")
    event = await server.next_event()
    orphan = server.resources.blobs.put(b"nobody names me")
    await sweep_orphans(server.resources)
    assert server.resources.blobs.get(orphan) == b"nobody names me"
    age(tmp_path / "blobs")
    await sweep_orphans(server.resources)
    assert len(list(server.resources.blobs.names(0))) == 1
    raw = await server.api.get(f"/v1/messages/{event['message']['id']}/raw")
    assert raw.content.endswith(b"x" * 1000 + b"\r\n")


async def test_events_are_kept_for_thirty_days(server: Server) -> None:
    await server.new_inbox("hello")
    await server.deliver(mail(1), "hello")
    event_id = (await server.next_event())["event_id"]
    server.clock.turn(29 * DAY)
    await one_round(server.resources)
    assert (await server.api.get("/v1/events")).json()["next"] == event_id
    server.clock.turn(2 * DAY)
    await one_round(server.resources)
    assert (await server.api.get("/v1/events")).json() == {"data": [], "next": None}
