"""The clients against the real server."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from postroom_client import AsyncClient, Client, OutgoingFile, errors
from postroom_client.results import ApprovalRules, Budget, Inbox
from tests.client.live import API_KEY, LiveServer
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone  # a client speaks to no database


async def test_an_inbox_lives_from_its_creation_to_its_end(server: Server) -> None:
    async with AsyncClient(server.token, server.base_url) as client:
        assert (await client.me()).scope == "account"
        made = await client.create_inbox("agent", display_name="An agent")
        assert (made.address, made.display_name) == ("agent@postroom.localhost", "An agent")
        assert made.created_at is not None
        assert (await client.update_inbox(made.id, display_name=None)).display_name is None
        assert [inbox.id for inbox in (await client.list_inboxes()).data] == [made.id]
        await client.delete_inbox(made.id)
        with pytest.raises(errors.NotFound):
            await client.get_inbox(made.id)


async def test_a_key_of_one_inbox_reaches_that_one_alone(server: Server) -> None:
    async with AsyncClient(server.token, server.base_url) as client:
        mine, other = await client.create_inbox("mine"), await client.create_inbox("other")
        key = await client.create_api_key(mine.id, "ci")
        assert key.token is not None
        async with AsyncClient(key.token, server.base_url) as scoped:
            assert (await scoped.me()).inbox_id == mine.id
            with pytest.raises(errors.NotFound):
                await scoped.get_inbox(other.id)
            assert [inbox.id for inbox in (await scoped.list_inboxes()).data] == [mine.id]
            with pytest.raises(errors.Forbidden):
                await scoped.get_webhook()
        assert (await client.list_api_keys(mine.id)).total == 1
        await client.delete_api_key(mine.id, key.id)
        async with AsyncClient(key.token, server.base_url) as revoked:
            with pytest.raises(errors.Unauthorized):
                await revoked.me()


async def test_boundaries_and_restrictions_are_passed_on(server: Server) -> None:
    rules, budget = ApprovalRules(["always"]), Budget(per_day=3)
    async with AsyncClient(server.token, server.base_url) as client:
        pod = await client.create_pod(client_id="seven", approval=rules)
        assert pod.approval == rules
        outside = await client.create_inbox("outside")
        inside = await client.create_inbox(
            "inside", pod_id="seven", approval=rules, limits=budget, metadata={"seats": 3, "vip": True}
        )
        assert (inside.approval, inside.limits) == (rules, budget)
        assert inside.metadata == {"seats": 3, "vip": True}
        changed = await client.update_inbox(inside.id, metadata={"seats": None, "rate": 0.5})
        assert changed.metadata == {"vip": True, "rate": 0.5}
        assert [inbox.id for inbox in (await client.list_inboxes(pod_id="seven")).data] == [inside.id]
        for key in (
            await client.create_key(approval=rules, limits=budget),
            await client.create_key(scope="seven", approval=rules, limits=budget),
            await client.create_api_key(inside.id, approval=rules, limits=budget),
        ):
            assert (key.approval, key.limits) == (rules, budget)
        await server.deliver(b"From: a@b.example\r\nSubject: s\r\n\r\nHi\r\n", "outside")
        [event] = (await client.list_events(wait=60, inbox_id=outside.id)).data
        assert (await client.list_events(pod_id="seven")).data == []
        assert [each.event_id async for each in client.iter_events(inbox_id=outside.id)] == [event.event_id]
        assert [each async for each in client.iter_events(pod_id="seven")] == []
        assert (await client.get_usage(group_by="inbox", pod_id="seven")).data == []
        used = (await client.get_usage(group_by="inbox", inbox_id=outside.id)).data
        assert [group.group for group in used] == [outside.id]
        assert (await client.update_pod("seven", client_id="eight")).client_id == "eight"


async def test_mail_is_sent_read_and_answered(server: Server) -> None:
    async with AsyncClient(server.token, server.base_url) as client:
        ann, bob = await client.create_inbox("ann"), await client.create_inbox("bob")
        file = OutgoingFile("Grüße.csv", b"a,b\n1,2\n", "text/csv")
        sent = await client.send(ann.id, to=bob.address, subject="Numbers", body="Here.", attachments=[file])
        assert (sent.direction, sent.inbox_id) == ("outbound", ann.id)
        [event] = (await client.list_events(wait=60, inbox_ids=[bob.id])).data
        assert event.message is not None
        came = await client.get_message(event.message.id)
        assert (came.subject, came.reply_text, came.direction) == ("Numbers", "Here.", "inbound")
        [attached] = came.attachments
        assert await client.get_attachment(came.id, attached.filename) == file.content
        whole = await client.get_attachment_text(came.id, attached.filename)
        assert ("1" in whole.text, whole.total) == (True, len(whole.text))
        rest = await client.get_attachment_text(came.id, attached.filename, offset=1)
        assert (rest.text, rest.offset) == (whole.text[1:], 1)
        assert b"Subject: Numbers" in await client.get_raw_message(came.id)
        await client.reply(came.thread_id, "Thanks.", include_quote=False)
        assert (await client.get_thread(came.thread_id)).is_read
        [answer] = (
            await client.list_events(wait=60, inbox_ids=[ann.id], event_types=["message.received"])
        ).data
        assert answer.message is not None
        assert (answer.thread_id, answer.message.reply_text) == (sent.thread_id, "Thanks.")


def test_the_blocking_client_does_the_same(
    live: LiveServer, new_inbox: Callable[[], Inbox], tmp_path: Path
) -> None:
    ann, bob = new_inbox(), new_inbox()
    (tmp_path / "note.txt").write_text("attached words")
    with live.client() as client:
        sent = client.send(
            ann.id, to=bob.address, subject="Hello", body="Hi", attachments=[tmp_path / "note.txt"]
        )
        [came] = live.arrived(bob)
        assert client.get_attachment_text(came.id, "note.txt").text == "attached words"
        assert client.get_attachment_text(came.id, "note.txt", offset=9).text == "words"
        assert [thread.id for thread in client.list_threads(bob.id, is_read=False).data] == [came.thread_id]
        assert client.mark_thread(came.thread_id, is_read=True).is_read
        assert client.list_threads(bob.id, is_read=False).total == 0
        client.reply(came.thread_id, "Back")
        [answer] = live.arrived(ann)
        assert (answer.thread_id, answer.from_addr) == (sent.thread_id, bob.address)


def test_one_key_sends_one_mail(live: LiveServer, new_inbox: Callable[[], Inbox]) -> None:
    ann, bob = new_inbox(), new_inbox()
    with live.client() as client:
        ids = {
            client.send(ann.id, to=bob.address, subject="Once", body="x", idempotency_key=f"only-{ann.id}").id
            for _ in range(3)
        }
        assert len(ids) == 1
        assert client.list_messages(ann.id, direction="outbound").total == 1
        with pytest.raises(errors.IdempotencyKeyReused):
            client.send(ann.id, to=bob.address, subject="Twice", body="x", idempotency_key=f"only-{ann.id}")


def test_a_copied_inbox_answers_those_who_were_addressed(live: LiveServer, inbox: Inbox) -> None:
    raw = (
        f"From: Eve <eve@example.com>\r\nTo: bob@example.com\r\nCc: {inbox.address}\r\n"
        "Message-ID: <1@example.com>\r\nSubject: Copied\r\n\r\nhello\r\n"
    )
    live.deliver(raw.encode(), inbox.address)
    [came] = live.arrived(inbox)
    with live.client() as client:
        sent = client.reply(came.thread_id, "Answer")
        answer = client.get_message(sent.id)
    assert answer.header_to == "bob@example.com"
    assert any("eve@example.com" in address for address in answer.cc)


def test_a_long_thread_is_answered_at_its_end(live: LiveServer, inbox: Inbox) -> None:
    for number in range(101):
        references = f"In-Reply-To: <{number - 1}@{inbox.id}>\r\n" if number else ""
        raw = (
            f"From: writer{number}@example.com\r\nTo: {inbox.address}\r\n"
            f"Message-ID: <{number}@{inbox.id}>\r\n{references}Subject: Long\r\n\r\n{number}\r\n"
        )
        live.deliver(raw.encode(), inbox.address)
    with live.client() as client:
        [thread] = client.list_threads(inbox.id).data
        assert thread.message_count == 101
        assert client.get_message(client.reply(thread.id, "Last").id).header_to == "writer100@example.com"


def test_suppressions_come_and_go(live: LiveServer, inbox: Inbox) -> None:
    with live.client() as client:
        assert client.add_suppression("no@example.com").type == "manual"
        with pytest.raises(errors.RecipientSuppressed) as caught:
            client.send(inbox.id, to="no@example.com", subject="s", body="t")
        assert caught.value.extras["recipient"] == "no@example.com"
        assert "no@example.com" in [item.address for item in client.list_suppressions().data]
        client.delete_suppression("no@example.com")


def test_a_domain_shows_the_records_to_set(live: LiveServer) -> None:
    with live.client() as client:
        made = client.add_domain("mail.example.com")
        assert {record.type for record in made.records} == {"MX", "TXT"}
        assert client.get_domain(made.id) == made
        client.delete_domain(made.id)
        assert made.id not in [item.id for item in client.list_domains().data]


def test_a_delivery_can_be_tried_again_or_given_up(live: LiveServer, inbox: Inbox) -> None:
    with live.client() as client:
        sent = client.send(inbox.id, to="nobody@example.com", subject="s", body="t")
        live.put_off(sent.id)
        given_up = client.cancel_message(sent.id)
        assert (given_up.status, given_up.recipients[0].state) == ("failed", "cancelled")
        with pytest.raises(errors.NothingToDo):
            client.cancel_message(sent.id)
        with pytest.raises(errors.NothingToDo):
            client.retry_message(sent.id)
        other = client.send(inbox.id, to="nobody@example.com", subject="s", body="t")
        live.put_off(other.id)
        assert client.retry_message(other.id).recipients[0].address == "nobody@example.com"


@pytest.mark.parametrize(
    ("name", "error"), [("A b", errors.InvalidMailboxName), ("postmaster", errors.AddressTaken)]
)
def test_each_refusal_is_an_exception_of_its_own(
    live: LiveServer, name: str, error: type[errors.PostroomError]
) -> None:
    with live.client() as client, pytest.raises(error):
        client.create_inbox(name)


async def test_many_awaited_calls_share_a_client(live: LiveServer, inbox: Inbox) -> None:
    async with AsyncClient(API_KEY, live.base_url) as client:
        found = await asyncio.gather(*(client.get_inbox(inbox.id) for _ in range(20)))
    assert {item.address for item in found} == {inbox.address}


def test_a_key_with_other_than_ascii_is_a_clear_error() -> None:
    with pytest.raises(errors.Unauthorized, match="invalid characters"):
        Client(base_url="http://127.0.0.1:9", api_key="pr_schlüssel")
