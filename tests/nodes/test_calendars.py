"""Two agents on two nodes of one PostgreSQL that take a time at once, by REST and by a calendar client."""

import asyncio

from tests.api.test_calendars import MEETING, agenda
from tests.caldav.client import event, signed_in
from tests.nodes.test_people import Nodes, nodes

__all__ = ["nodes"]
ROUNDS = 4
MONTH = ("2026-11-01T00:00:00Z", "2026-12-30T00:00:00Z")


async def test_of_two_nodes_that_take_a_slot_at_once_one_gets_it_whoever_else_takes_part(
    nodes: Nodes,
) -> None:
    api = nodes.server.api
    shared = await nodes.server.new_inbox("shared")
    others = [await nodes.server.new_inbox(name) for name in ("one", "two")]
    attendees = [{"address": "shared@postroom.localhost"}]
    for number in range(ROUNDS):
        day = f"2026-11-{number + 20}"
        asked = {**MEETING, "start": f"{day}T15:00:00", "end": f"{day}T16:00:00", "attendees": attendees}
        answers = await asyncio.gather(
            *(
                api.post(
                    f"{node}/v1/calendar-events",
                    json={**asked, "inboxId": inbox_id},
                    headers={"Idempotency-Key": f"{inbox_id}-{number}"},
                )
                for node, inbox_id in zip(("", nodes.other), others, strict=True)
            )
        )
        assert sorted(each.status_code for each in answers) == [201, 409], [each.text for each in answers]
        refused = next(each.json() for each in answers if each.status_code == 409)
        assert (refused["error"], refused["inbox"]) == ("slot_taken", shared)
    made = [len(await agenda(nodes.server, inbox_id, *MONTH)) for inbox_id in others]
    assert sum(made) == ROUNDS


async def test_of_two_files_with_one_uid_that_are_stored_on_two_nodes_at_once_one_is_kept(
    nodes: Nodes,
) -> None:
    inbox_id = await nodes.server.new_inbox("bob")
    async with signed_in(nodes.server, "bob@postroom.localhost", nodes.server.token) as dav:
        for number in range(ROUNDS):
            stored = await asyncio.gather(
                *(
                    dav.ask("PUT", f"{node}{dav.calendar}{number}-{place}.ics", event(f"uid-{number}", place))
                    for node, place in (("", "here"), (nodes.other, "there"))
                )
            )
            codes = sorted(each.status_code for each in stored)
            assert codes[0] == 201, [each.text for each in stored]
            assert codes[1] in (403, 412), [each.text for each in stored]
        token, listed = await dav.sync()
        assert len(listed) == ROUNDS
        gone = [
            dav.ask("DELETE", f"{node}{dav.calendar}{name}") for name in listed for node in ("", nodes.other)
        ]
        assert {each.status_code for each in await asyncio.gather(*gone)} <= {204, 404, 412}
        assert (await dav.sync(token))[1] == dict.fromkeys(listed, 404)
    assert await agenda(nodes.server, inbox_id, *MONTH) == []
