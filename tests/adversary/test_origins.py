"""An agent that obeys every email carries nothing on unseen, and a reviewer decides about it by chance."""

import random

import pytest

from tests.conftest import Server
from tests.outward.origin_attacks import ATTACKS
from tests.outward.origin_figures import stopped
from tests.outward.test_holds import EVERYTHING, add_key

OWN_WORDS = "a summary in words of its own"
DECIDED = 8


@pytest.mark.sqlite_alone
async def test_what_an_obedient_agent_carries_waits_and_leaves_only_if_a_person_lets_it(
    server: Server,
) -> None:
    chance = random.Random(7)
    left = [attack.name for attack in ATTACKS if not await stopped(server, attack)]
    assert left == [OWN_WORDS]
    person = await server.resources.db.write(add_key, server, None, EVERYTHING)
    held = (await server.api.get("/v1/approvals?limit=100")).json()["data"]
    async with server.client(person) as api:
        for each in chance.sample(held, DECIDED):
            word = chance.choice(["approve", "reject"])
            given = {"contentHash": each["hold"]["contentHash"]} if word == "approve" else {}
            answer = await api.post(f"/v1/messages/{each['message']['id']}/{word}", json=given)
            assert answer.status_code == 200, answer.text
    actions = (await server.api.get("/v1/audit?limit=100")).json()["data"]
    assert {each["action"] for each in actions} >= {"origin.found", "message.approved", "message.rejected"}
