"""Inboxes, messages and threads by the package `agentmail`, as its users write them."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agentmail import AgentMail, AsyncAgentMail
from agentmail.attachments.types import SendAttachment
from agentmail.core.api_error import ApiError
from agentmail.errors import ConflictError, NotFoundError, ValidationError
from agentmail.inboxes.types import CreateInboxRequest, Inbox
from agentmail.messages.errors import MessageRejectedError

from postroom.clock import SECOND
from postroom.mailbox.folders import uid_map
from postroom.storage.database import Tx
from tests.agentmail.clients import ONCE, agentmail, agentmail_without_async
from tests.api.test_search import settled
from tests.conftest import Server
from tests.plain_transport import http_client

pytestmark = pytest.mark.share(2)


def mail(
    subject: str, *, message_id: str = "", to: str = "support@postroom.localhost", more: str = ""
) -> bytes:
    named = f"Message-ID: {message_id}\r\n" if message_id else ""
    head = f"From: Ann <ann@there.example>\r\nTo: {to}, Bob <bob@there.example>\r\nSubject: {subject}\r\n"
    return f"{head}{named}{more}\r\nHello about {subject}.\r\n".encode()


@pytest.fixture
async def api(server: Server) -> AsyncIterator[AsyncAgentMail]:
    async with agentmail(server) as opened:
        yield opened


async def received(server: Server, *mails: bytes, name: str = "support") -> None:
    """Until all of them are told."""
    for raw in mails:
        server.clock.moment += SECOND
        before = (await server.api.get("/v1/events", params={"order": "desc", "limit": 1})).json()["data"]
        await server.deliver(raw, name, sender="ann@there.example")
        await server.next_event(before[0]["event_id"] if before else None)


async def new(api: AsyncAgentMail, **asked: Any) -> Inbox:
    made: Inbox = await api.inboxes.create(request=CreateInboxRequest(**asked), request_options=ONCE)
    return made


async def test_inboxes(server: Server, api: AsyncAgentMail) -> None:
    made = await new(
        api, username="support", display_name="Support", client_id="first.one", metadata={"tier": 3}
    )
    assert (made.inbox_id, made.email) == ("support@postroom.localhost",) * 2
    assert (made.display_name, made.client_id, made.metadata) == ("Support", "first.one", {"tier": 3})
    again = await new(api, username="other", client_id="first.one")
    assert again.inbox_id == made.inbox_id
    random = await api.inboxes.create()
    with pytest.raises(ApiError) as taken:
        await new(api, username="support")
    assert (taken.value.status_code, taken.value.body["code"]) == (403, "resource_taken")
    with pytest.raises(ValidationError) as wrong:
        await new(api, username="no spaces")
    assert wrong.value.body.errors[0]["path"] == ["username"]

    first = await api.inboxes.list(limit=1)
    assert [inbox.inbox_id for inbox in first.inboxes] == [random.inbox_id]
    await new(api, username="later")
    rest = await api.inboxes.list(limit=1, page_token=first.next_page_token)
    assert ([inbox.inbox_id for inbox in rest.inboxes], rest.next_page_token) == ([made.inbox_id], None)
    oldest = await api.inboxes.list(ascending=True)
    assert oldest.inboxes[0].inbox_id == made.inbox_id
    with pytest.raises(ApiError) as unreadable:
        await api.inboxes.list(page_token="nonsense", request_options=ONCE)
    assert (unreadable.value.status_code, unreadable.value.body["code"]) == (400, "validation_error")
    assert [found.inbox_id for found in (await api.inboxes.search(q="supp")).inboxes] == [made.inbox_id]

    changed = await api.inboxes.update(made.inbox_id, display_name="Help", metadata={"tier": None, "a": "b"})
    assert (changed.display_name, changed.metadata) == ("Help", {"a": "b"})
    paused = await api.inboxes.update(made.inbox_id, status="paused")
    assert paused.status == "paused"
    assert (await api.inboxes.update(made.inbox_id, status="active")).status is None
    await api.inboxes.delete(random.inbox_id)
    with pytest.raises(NotFoundError):
        await api.inboxes.get(random.inbox_id, request_options=ONCE)
    with pytest.raises(ApiError) as nobody:
        async with agentmail(server, "pr_unknown") as stranger:
            await stranger.inboxes.list(request_options=ONCE)
    assert nobody.value.status_code == 401


async def test_messages_are_read_filtered_and_labelled_each_alone(
    server: Server, api: AsyncAgentMail
) -> None:
    inbox = (await new(api, username="support")).inbox_id
    odd = "<a/b+c=d@there.example>"
    file = (
        'MIME-Version: 1.0\r\nContent-Type: text/plain; name="notes.txt"\r\n'
        'Content-Disposition: attachment; filename="notes.txt"\r\n'
    )
    await received(
        server,
        mail("One", message_id=odd, more="Reply-To: desk@there.example\r\n"),
        mail("Re: One", more=f"In-Reply-To: {odd}\r\nReferences: {odd}\r\n"),
        mail("Three", more=file),
    )
    page = await api.inboxes.messages.list(inbox, limit=2)
    assert [message.subject for message in page.messages] == ["Three", "Re: One"]
    await received(server, mail("Four"))
    last = await api.inboxes.messages.list(inbox, limit=2, page_token=page.next_page_token)
    assert ([message.message_id for message in last.messages], last.next_page_token) == ([odd], None)
    assert last.messages[0].labels == ["received", "unread"]
    assert last.messages[0].from_ == "Ann <ann@there.example>"
    assert last.messages[0].to == ["support@postroom.localhost", "Bob <bob@there.example>"]

    whole = await api.inboxes.messages.get(inbox, odd)
    assert (whole.extracted_text or "").strip() == "Hello about One."
    assert whole.reply_to == ["desk@there.example"]
    assert whole.headers is not None
    assert (whole.headers["subject"], whole.headers["reply-to"]) == ("One", "desk@there.example")
    answer = (await api.inboxes.messages.list(inbox, subject=["re: one"])).messages[0]
    answer = await api.inboxes.messages.get(inbox, answer.message_id)
    assert (answer.in_reply_to, answer.thread_id) == (odd, whole.thread_id)

    changed = await api.inboxes.messages.update(inbox, odd, add_labels=["Urgent"], remove_labels=["unread"])
    assert changed.labels == ["received", "urgent"]
    ours = f"/v1/threads/{whole.thread_id}"
    await server.api.patch(ours, json={"addLabels": ["Trash", "spam"]})
    assert (await api.inboxes.messages.get(inbox, odd)).labels == changed.labels
    assert {"Trash", "spam"}.isdisjoint((await api.threads.get(whole.thread_id)).labels)
    await server.api.patch(ours, json={"removeLabels": ["Trash", "spam"]})
    assert [each.message_id for each in await listed(api, inbox, labels=["urgent"])] == [odd]
    unread = await listed(api, inbox, labels=["unread"])
    assert [message.subject for message in unread] == ["Four", "Three", "Re: One"]
    await api.inboxes.messages.update(inbox, answer.message_id, remove_labels="unread")
    thread = (await server.api.get(f"/v1/threads/{whole.thread_id}")).json()
    assert (thread["isRead"], thread["labels"]) == (True, ["urgent"])
    await received(server, mail("Re: One", more=f"In-Reply-To: {odd}\r\n"))
    assert len(await listed(api, inbox, labels=["unread"])) == 3
    await api.inboxes.messages.update(inbox, odd, add_labels="unread")
    assert odd in [each.message_id for each in await listed(api, inbox, labels=["unread", "received"])]
    with pytest.raises(ValidationError):
        await api.inboxes.messages.update(inbox, odd, add_labels="sent", request_options=ONCE)

    found = await listed(api, inbox, from_=["ANN@"], to=["bob"], subject=["thr"])
    assert [message.subject for message in found] == ["Three"]
    assert await listed(api, inbox, labels=["sent"]) == []
    batch = await api.inboxes.messages.batch_get(inbox, message_ids=[odd, "<no@such>"])
    assert [message.text.strip() for message in batch.messages] == ["Hello about One."]
    updated = await api.inboxes.messages.batch_update(inbox, message_ids=[odd], add_labels=["trash"])
    assert updated.updates[0].labels == ["received", "trash", "unread", "urgent"]
    assert odd not in [each.message_id for each in await listed(api, inbox)]
    assert odd in [each.message_id for each in await listed(api, inbox, include_trash=True)]
    await check_trash(api, server, inbox, odd, whole.thread_id)
    await check_files(api, server, inbox)
    await api.inboxes.messages.delete(inbox, odd)
    with pytest.raises(NotFoundError):
        await api.inboxes.messages.get(inbox, odd, request_options=ONCE)
    assert (await server.api.get(f"/v1/threads/{whole.thread_id}")).json()["labels"] == []


async def check_trash(api: AsyncAgentMail, server: Server, inbox: str, thrown: str, thread_id: str) -> None:
    """The label is the folder of mail programs: what has it is in no list of the interface."""
    (ours,) = (
        each for each in (await server.api.get("/v1/inboxes")).json()["data"] if each["address"] == inbox
    )
    path = f"/v1/inboxes/{ours['id']}/messages"
    subjects = [each["subject"] for each in (await server.api.get(path)).json()["data"]]
    assert "One" not in subjects
    assert "One" in [
        each["subject"] for each in (await server.api.get(f"{path}?include=trash")).json()["data"]
    ]
    await server.resources.db.write(uid_map.open_inbox, ours["id"], server.clock.moment)
    assert await server.resources.db.read(folders_of, ours["id"], thrown) == ["trash"]
    assert [each.message_id for each in await listed(api, inbox, labels=["trash"])] == [thrown]

    all_thrown = await api.threads.update(thread_id, add_labels=["trash"])
    assert "trash" in all_thrown.labels
    assert thread_id not in [each.thread_id for each in (await api.threads.list()).threads]
    for asked in ({"include_trash": True}, {"labels": ["trash"]}):
        found = {each.thread_id: each for each in (await api.threads.list(**asked)).threads}
        assert found[thread_id].subject == "One"
    assert thrown in [each.message_id for each in (await api.threads.get(thread_id)).messages]
    back = await api.threads.update(thread_id, remove_labels=["trash"])
    assert "trash" not in back.labels
    assert await server.resources.db.read(folders_of, ours["id"], thrown) == ["inbox", "label:urgent"]
    changes = (await api.inboxes.events.list(inbox)).events
    assert [each.event_type for each in changes if each.label == "trash"][-1] == "label.added"
    await api.inboxes.messages.update(inbox, thrown, add_labels=["trash"])


def folders_of(tx: Tx, inbox_id: str, name: str) -> list[str]:
    rows = tx.all(
        "select folder from folder_mails join messages on messages.id = folder_mails.message_id"
        " where folder_mails.inbox_id = :id and messages.rfc_message_id = :name order by folder",
        id=inbox_id,
        name=name,
    )
    return [row["folder"] for row in rows]


async def listed(api: AsyncAgentMail, inbox: str, **asked: Any) -> list[Any]:
    return list((await api.inboxes.messages.list(inbox, **asked)).messages)


async def test_lists_and_events_name_the_messages_that_a_message_answers(
    server: Server, api: AsyncAgentMail
) -> None:
    inbox = (await new(api, username="support")).inbox_id
    first = "In-Reply-To: <two@there.example>\r\nReferences: <one@there.example>\r\n <two@there.example>\r\n"
    await received(
        server,
        mail("First", message_id="<two@there.example>"),
        mail("Re: First", message_id="<three@there.example>", more=first),
    )
    sent = await api.inboxes.messages.reply(inbox, "<three@there.example>", text="Yes", request_options=ONCE)
    thread = await api.threads.get(sent.thread_id)
    together = await api.inboxes.messages.batch_get(inbox, message_ids=["<three@there.example>"])
    one, two, three = "<one@there.example>", "<two@there.example>", "<three@there.example>"
    expected = {
        two: (None, None),
        three: (two, [one, two]),
        sent.message_id: (three, (await api.inboxes.messages.get(inbox, sent.message_id)).references),
    }
    for shown in (await listed(api, inbox), thread.messages):
        assert {each.message_id: (each.in_reply_to, each.references) for each in shown} == expected
    (found,) = together.messages
    assert (found.in_reply_to, found.references) == expected[three]
    await settled(server)
    searched = (await api.inboxes.messages.search(inbox, q="about")).messages
    assert {each.message_id: each.in_reply_to for each in searched}[three] == two


async def test_the_label_log_begins_with_the_arrival_of_a_message(
    server: Server, api: AsyncAgentMail
) -> None:
    inbox = (await new(api, username="support")).inbox_id
    one, two = "<one@there.example>", "<two@there.example>"
    await received(server, mail("One", message_id=one), mail("Two", message_id=two))
    server.clock.moment += SECOND
    await api.inboxes.messages.update(inbox, one, add_labels=["vip"], remove_labels=["unread"])
    await received(server, mail("Three", message_id="<three@there.example>"))
    await api.inboxes.messages.send(inbox, to="ann@there.example", text="t", request_options=ONCE)
    told = []
    token = None
    while True:
        page = await api.inboxes.events.list(inbox, limit=2, page_token=token, ascending=True)
        told += [(each.event_type, each.label, each.message_id) for each in page.events]
        if (token := page.next_page_token) is None:
            break
    assert told[:2] == [("label.added", "unread", one), ("label.added", "unread", two)]
    assert sorted(told[2:4]) == [("label.added", "vip", one), ("label.removed", "unread", one)]
    assert told[4:] == [("label.added", "unread", "<three@there.example>")]
    newest = (await api.inboxes.events.list(inbox)).events
    assert [(each.event_type, each.label, each.message_id) for each in newest] == told[::-1]
    assert len({each.event_id for each in newest}) == len(newest)


async def check_files(api: AsyncAgentMail, server: Server, inbox: str) -> None:
    """Links need no key, and hold what came."""
    three = (await listed(api, inbox, subject=["three"]))[0]
    (file,) = three.attachments
    assert (file.filename, "/" in file.attachment_id) == ("notes.txt", False)
    linked = await api.inboxes.messages.get_attachment(inbox, three.message_id, file.attachment_id)
    in_thread = await api.threads.get_attachment(three.thread_id, file.attachment_id)
    raw = await api.inboxes.messages.get_raw(inbox, three.message_id)
    async with http_client() as anybody:
        for link in (linked.download_url, in_thread.download_url):
            assert (await anybody.get(link)).text.strip() == "Hello about Three."
        source = await anybody.get(raw.download_url)
        assert (source.status_code, b"Subject: Three" in source.content) == (200, True)
        link, signature = raw.download_url.split("&signature=")
        assert (await anybody.get(f"{link}&signature={signature[::-1]}")).status_code == 403
    with pytest.raises(NotFoundError):
        await api.inboxes.messages.get_attachment(inbox, three.message_id, "msg_1.0", request_options=ONCE)


@pytest.mark.sqlite_alone
async def test_sends_answers_and_forwards(server: Server, api: AsyncAgentMail) -> None:
    inbox = (await new(api, username="support")).inbox_id
    other = (await new(api, username="other")).inbox_id
    file = SendAttachment(filename="a.txt", content=base64.b64encode(b"words").decode())
    key = {"request_options": {**ONCE, "additional_headers": {"Idempotency-Key": "k1"}}}
    asked: dict[str, Any] = {"to": other, "subject": "Hi", "html": "<p>Hello</p>", "labels": ["Outreach"]}
    sent = await api.inboxes.messages.send(inbox, **asked, attachments=[file], **key)
    again = await api.inboxes.messages.send(inbox, **asked, attachments=[file], **key)
    assert (again.message_id, again.thread_id) == (sent.message_id, sent.thread_id)
    with pytest.raises(ConflictError) as reused:
        await api.inboxes.messages.send(inbox, to=other, subject="Other", text="x", **key)
    assert reused.value.body.code == "conflict"
    await server.next_event()
    kept = await api.inboxes.messages.get(inbox, sent.message_id)
    assert (kept.text.strip(), "outreach" in kept.labels, "sent" in kept.labels) == ("Hello", True, True)
    came = (await listed(api, other))[0]
    assert (came.message_id, came.attachments[0].filename) == (sent.message_id, "a.txt")

    answer = await api.inboxes.messages.reply(other, came.message_id, text="Thanks")
    written = await api.inboxes.messages.get(other, answer.message_id)
    assert (written.to, written.cc, written.subject) == ([inbox], None, "Re: Hi")
    assert (written.in_reply_to, written.thread_id) == (came.message_id, came.thread_id)
    assert "> Hello" in written.text
    passed_on = await api.inboxes.messages.forward(other, came.message_id, to="eve@there.example", text="See")
    forwarded = await api.inboxes.messages.get(other, passed_on.message_id)
    assert (forwarded.subject, forwarded.attachments[0].filename) == ("Fwd: Hi", "a.txt")

    await received(server, mail("Many", more="Reply-To: desk@there.example\r\nCc: c@there.example\r\n"))
    (many,) = await listed(api, inbox, subject=["many"])
    everybody = await api.inboxes.messages.reply_all(inbox, many.message_id, text="All")
    told = await api.inboxes.messages.get(inbox, everybody.message_id)
    assert (told.to, told.cc) == (["desk@there.example"], ["Bob <bob@there.example>", "c@there.example"])
    answering: dict[str, Any] = {"in_reply_to": many.message_id, "text": "Later"}
    to_one = await api.inboxes.drafts.create(inbox, **answering)
    assert (to_one.to, to_one.cc or []) == (["desk@there.example"], [])
    to_all = await api.inboxes.drafts.create(inbox, **answering, reply_all=True)
    assert (to_all.to, to_all.cc) == (told.to, told.cc)
    from_draft = await api.inboxes.drafts.send(inbox, to_all.draft_id)
    left = await api.inboxes.messages.get(inbox, from_draft.message_id)
    assert (left.to, left.cc, left.thread_id) == (told.to, told.cc, told.thread_id)
    alone = await api.inboxes.messages.reply(inbox, many.message_id, text="You")
    assert (await api.inboxes.messages.get(inbox, alone.message_id)).to == ["desk@there.example"]

    with pytest.raises(ValidationError) as nobody:
        await api.inboxes.messages.send(inbox, subject="x", text="y", request_options=ONCE)
    assert nobody.value.body.errors[0]["path"] == ["to"]
    await server.api.post("/v1/suppressions", json={"address": "gone@there.example"})
    with pytest.raises(MessageRejectedError):
        await api.inboxes.messages.send(inbox, to="gone@there.example", text="y", request_options=ONCE)


@pytest.mark.sqlite_alone
async def test_what_is_held_says_so_and_what_is_paused_waits(server: Server, api: AsyncAgentMail) -> None:
    inbox = (await new(api, username="support", status="paused")).inbox_id
    sent = await api.inboxes.messages.send(inbox, to="ann@there.example", subject="Hi", text="Hello")
    held = await api.inboxes.messages.get(inbox, sent.message_id)
    assert held.labels == ["held"]
    waiting = (await server.api.get("/v1/approvals")).json()["data"]
    assert [each["message"]["rfcMessageId"] for each in waiting] == [sent.message_id]
    inbox_id = (await server.api.get("/v1/inboxes")).json()["data"][0]["id"]
    key = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"permissions": ["read"]})).json()
    async with agentmail(server, key["token"]) as reader:
        assert len(await listed(reader, inbox)) == 1
        with pytest.raises(ApiError) as refused:
            await reader.inboxes.messages.send(inbox, to="a@there.example", text="x", request_options=ONCE)
    assert (refused.value.status_code, refused.value.body.code) == (403, "missing_permission")
    audit = (await server.api.get("/v1/audit", params={"actor": key["id"]})).json()["data"]
    assert [entry["target"] for entry in audit] == ["POST /v0/inboxes/{inbox_id}/messages/send"]


async def test_threads_and_the_client_without_async(server: Server) -> None:
    await server.new_inbox("support")
    await received(server, mail("One", message_id="<1@x>"), mail("Two"))
    await received(server, mail("Re: One", more="In-Reply-To: <1@x>\r\n"))

    def use_threads(api: AgentMail) -> None:
        inbox = "support@postroom.localhost"
        page = api.threads.list(limit=1)
        assert [thread.subject for thread in page.threads] == ["One"]
        rest = api.inboxes.threads.list(inbox, limit=1, page_token=page.next_page_token)
        assert [thread.subject for thread in rest.threads] == ["Two"]
        (first,) = page.threads
        assert (first.message_count, first.senders) == (2, ["Ann <ann@there.example>"])
        assert first.labels == ["received", "unread"]
        newest = api.threads.get(first.thread_id, limit=1)
        assert [(each.subject, each.in_reply_to) for each in newest.messages] == [("Re: One", "<1@x>")]
        older = api.inboxes.threads.get(inbox, first.thread_id, limit=1, page_token=newest.next_page_token)
        assert [message.message_id for message in older.messages] == ["<1@x>"]
        changed = api.threads.update(first.thread_id, add_labels=["Done"], remove_labels=["unread"])
        assert changed.labels == ["done", "received"]
        assert "done" in api.inboxes.messages.get(inbox, "<1@x>").labels
        assert [each.subject for each in api.threads.list(labels=["done"]).threads] == ["One"]
        assert [each.subject for each in api.threads.list(labels=["unread"]).threads] == ["Two"]
        assert [each.subject for each in api.threads.list(senders=["ann"], subject=["tw"]).threads] == ["Two"]
        pod = api.inboxes.get(inbox).pod_id
        assert len(api.pods.threads.list(pod).threads) == 2
        api.inboxes.threads.delete(inbox, first.thread_id)
        with pytest.raises(NotFoundError):
            api.threads.get(first.thread_id, request_options=ONCE)

    with agentmail_without_async(server) as api:
        await asyncio.to_thread(use_threads, api)
