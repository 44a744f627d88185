"""One address, asked for on two nodes at once: as that of a person, and as that of a mailbox to pull."""

import asyncio

from tests.connections.test_people_and_inboxes import mailbox, with_reviewer
from tests.nodes.test_people import Nodes, nodes

__all__ = ["nodes"]


async def test_of_a_person_and_an_inbox_with_one_address_only_one_is_made(nodes: Nodes) -> None:
    api, inbox_id = nodes.server.api, await nodes.server.new_inbox("agent")
    for number in range(12):
        address = f"ann{number}@corp.example"
        person = api.post("/v1/users", json={"email": address, "role": "viewer"})
        inbox = api.post(f"{nodes.other}/v1/connections", json=mailbox(address, inbox_id))
        answers = await asyncio.gather(*((person, inbox) if number % 2 else (inbox, person)))
        assert sorted(answer.status_code for answer in answers) == [201, 409]


async def test_of_a_reviewer_and_an_inbox_with_one_address_only_one_is_made(nodes: Nodes) -> None:
    api = nodes.server.api
    for number in range(12):
        reviewer = api.patch("/v1/account", json=with_reviewer(f"boss{number}@postroom.localhost"))
        inbox = api.post(f"{nodes.other}/v1/inboxes", json={"mailboxName": f"boss{number}"})
        answers = await asyncio.gather(*((reviewer, inbox) if number % 2 else (inbox, reviewer)))
        assert sorted(answer.status_code for answer in answers) in ([200, 409], [201, 409])
