"""An internal note leaves by no way: mail, mail client, event, webhook, stream, MCP, search, export."""

import re
from pathlib import Path

import pytest

import postroom
from tests.adversary import ways_out
from tests.adversary.test_ways_out import peer, server  # noqa: F401
from tests.adversary.ways_out import NAME
from tests.client.live import LiveServer
from tests.client.test_mcp import http_agent
from tests.conftest import Server, api_client
from tests.couriers.smtp_peer import SmtpPeer
from tests.imap.live import aside, log_in, ok
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone

CANARY = "zebracanary"
WAYS = (ways_out.by_answer, ways_out.by_forward, ways_out.by_redirect, ways_out.by_submission)
# What a key of one inbox may ask for, by REST and in the second vocabulary.
PATHS = """
/v1/threads /v1/threads/{thread} /v1/threads/{thread}/messages /v1/inboxes/{inbox}/messages
/v1/inboxes/{inbox}/threads /v1/messages/{message} /v1/messages/{message}/raw /v1/events /v1/search?q={word}
/v1/inboxes/{inbox}/wait?q={word}&timeout=0 /v1/inboxes/{inbox}/drafts /v1/me
/v0/inboxes/{address}/threads /v0/inboxes/{address}/threads/{thread} /v0/inboxes/{address}/messages
""".split()


async def test_a_note_leaves_by_no_way(server: Server, peer: SmtpPeer, tmp_path: Path) -> None:  # noqa: F811
    inbox_id = await server.new_inbox(NAME)
    webhook = {"url": f"{server.base_url}/nowhere", "eventTypes": ["thread.noted", "message.sent"]}
    assert (await server.api.put("/v1/webhook", json=webhook)).status_code == 200
    for number, way in enumerate(WAYS):
        message_id = await ways_out._received(server, inbox_id, number)
        assert message_id is not None
        thread_id = (await server.api.get(f"/v1/messages/{message_id}")).json()["threadId"]
        noted = await server.api.post(
            f"/v1/threads/{thread_id}/notes", json={"body": f"{CANARY}\n> {number}"}
        )
        assert noted.status_code == 201
        before = len(peer.mails)
        assert await way(server, inbox_id, number) is not None
        await until(lambda: len(peer.mails) > before, "it leaves")  # noqa: B023
    assert not [mail for mail in peer.mails if CANARY.encode() in mail.raw]

    key = (await server.api.post("/v1/api-keys", json={"inboxId": inbox_id})).json()["token"]
    named = {"thread": thread_id, "inbox": inbox_id, "message": message_id, "word": CANARY}
    async with api_client(server.base_url, key) as agent:
        for path in PATHS:
            shown = await agent.get(path.format(**named, address=ways_out.OWN))
            assert shown.status_code < 500
            assert CANARY not in shown.text.replace(f"q={CANARY}", ""), path
        assert (await agent.get(f"/v1/threads/{thread_id}/notes")).status_code == 403
    everything = (await server.api.get("/v1/events?limit=100")).text
    everything += (await server.api.get("/v1/audit?limit=100")).text
    everything += (await server.api.get("/v1/webhook/deliveries?limit=100")).text
    assert "thread.noted" in everything
    assert CANARY not in everything
    async with http_agent(LiveServer(server.base_url, server.smtp_port), server.token) as program:
        for tool, given in (
            ("read_thread", {"thread_id": thread_id}),
            ("search_messages", {"q": CANARY}),
            ("list_threads", {}),
        ):
            assert CANARY not in str(await program.client.call_tool(tool, given)).replace(f"q={CANARY}", "")

    def read_all() -> str:
        client = log_in(server, NAME)
        ok(client.select("INBOX"))
        found = str(ok(client.fetch("1:*", "(FLAGS ENVELOPE BODY.PEEK[])")))
        found += str(ok(client.search(None, "TEXT", CANARY)))
        client.logout()
        return found

    assert CANARY not in await aside(read_all)


def test_nothing_but_its_own_file_reads_the_table_of_notes() -> None:
    """What could carry a note away would have to name its table, or the list of notes."""
    source = Path(postroom.__file__).parent
    asks = re.compile(r"(from|join|into) notes\b|notes\.(list_of_thread|get)\(")
    found = {str(path.relative_to(source)) for path in source.rglob("*.py") if asks.search(path.read_text())}
    assert found <= {"mailbox/notes.py", "operations/notes.py", "web/dashboard/pages/message.py"}
