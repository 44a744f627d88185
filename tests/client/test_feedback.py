"""Feedback from the command and from both clients."""

from postroom_client import AsyncClient, Client
from tests.client.live import API_KEY, Shell


async def test_feedback_is_given_by_the_command_and_by_both_clients(shell: Shell) -> None:
    told = shell.json("feedback", "bug", "It fails", "--context", '{"tries": [1, 2]}')
    assert told["id"].startswith("fbk_")
    refused = shell.run("feedback", "bug", "It fails", "--context", "[1]")
    assert refused.exit_code == 2
    with Client(API_KEY, shell.server.base_url) as client:
        first = client.give_feedback("friction", "It is slow.", context={"seconds": 3, "where": None})
    async with AsyncClient(API_KEY, shell.server.base_url) as client:
        second = await client.give_feedback("feature_request", "Make it faster.")
    assert len({told["id"], first.id, second.id}) == 3
