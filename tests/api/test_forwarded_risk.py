"""Passing on a message that was not judged clean meets the approval rule `risk`."""

import pytest
from msgspec import structs

from postroom.mailbox import documents, inboxes, messages
from postroom.storage.database import Tx
from tests.conftest import Server
from tests.stored import put_mail


def received(tx: Tx, inbox_id: str, verdict: str) -> str:
    inbox = inboxes.find(tx, inbox_id)
    assert inbox is not None
    message = put_mail(tx, inbox, "Hello", subject=f"A {verdict} one")
    document = structs.replace(documents.decode(message.document), verdict=verdict)
    messages.set_document(tx, document)
    return message.id


@pytest.mark.sqlite_alone
@pytest.mark.parametrize(
    ("verdict", "is_held"), [("clean", False), ("suspicious", True), ("malicious", True)]
)
async def test_a_forward_of_what_is_not_clean_waits_for_approval(
    server: Server, verdict: str, is_held: bool
) -> None:
    inbox_id = await server.new_inbox("hello")
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["risk"]}})
    message_id = await server.resources.db.write(received, inbox_id, verdict)
    sends = {
        f"/v1/inboxes/{inbox_id}/send": {"to": "bob@there.example", "body": "See", "forwardOf": message_id},
        f"/v0/inboxes/{inbox_id}/messages/{message_id}/forward": {"to": ["bob@there.example"]},
    }
    for path, body in sends.items():
        answer = await server.api.post(path, json=body, headers={"Idempotency-Key": path[:100]})
        assert answer.status_code == 200, answer.text
    held = (await server.api.get("/v1/approvals")).json()
    assert held["total"] == (len(sends) if is_held else 0)
    assert all(each["hold"]["reasons"] == ["risk"] for each in held["data"])
