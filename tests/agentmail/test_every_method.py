"""Every method of the package: driven here by both of its clients, or named with the reason why it is not."""

import asyncio
import inspect
from typing import Any

import pytest
from agentmail import AgentMail, AsyncAgentMail
from agentmail.api_keys.types import ApiKeyPermissions, CreateBearerApiKeyRequest
from agentmail.attachments.types import SendAttachment
from agentmail.core.api_error import ApiError
from agentmail.inboxes.types import CreateInboxRequest
from agentmail.websockets.types import Subscribe

from tests.agentmail.driver import Client, Driver, driving, methods_of
from tests.agentmail.test_mail import mail, received
from tests.api.test_search import settled
from tests.conftest import Server
from tests.plain_transport import http_client

# By the beginning of their names.
WITHOUT_COUNTERPART = {
    "accounts.": "sign-in of people at other services",
    "agent.": "sign-up of an agent by itself: here somebody with a key makes it one",
    "apps.": "other services that an inbox signs in to",
    "inboxes.accounts.": "sign-in of people at other services",
    "inboxes.authorize": "sign-in of people at other services",
    "inboxes.calendar.": "calendars: invitations are mails here",
    "inboxes.files.": "a store of files beside the mail",
    "inboxes.messages.create_agent_armor_feedback": "their filter",
    "inboxes.messages.release_agent_armor_message": "their filter",
    "inboxes.webhooks.polling.": "webhooks that are fetched: GET /v1/events gives what happened",
    "organizations.get_labs": "their trials",
    "organizations.join_labs": "their trials",
    "pods.accounts.": "sign-in of people at other services",
    "pods.webhooks.polling.": "webhooks that are fetched",
    "webhooks.polling.": "webhooks that are fetched",
}
FILE = (
    'MIME-Version: 1.0\r\nContent-Type: text/plain; name="notes.txt"\r\n'
    'Content-Disposition: attachment; filename="notes.txt"\r\n'
)
HOOK = {"url": "http://127.0.0.1:9/x", "event_types": ["message.received"]}
ODD = "<a/b+c=d@there.example>"


def is_without_counterpart(name: str) -> bool:
    return name.startswith(tuple(WITHOUT_COUNTERPART))


def key_request(name: str, **permissions: bool) -> CreateBearerApiKeyRequest:
    return CreateBearerApiKeyRequest(name=name, permissions=ApiKeyPermissions(**permissions))


OF_THE_PACKAGE = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@OF_THE_PACKAGE
@pytest.mark.share(3)
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)  # the next one is on the other
async def test_every_method_in_scope_does_its_work(server: Server) -> None:
    await use_everything(server, AgentMail)


@OF_THE_PACKAGE
@pytest.mark.share(3)
@pytest.mark.sqlite_alone
async def test_every_method_of_the_client_with_async_does_its_work(server: Server) -> None:
    await use_everything(server, AsyncAgentMail)


async def use_everything(server: Server, kind: type[Client]) -> None:
    async with driving(server, kind) as drive:
        await use_inboxes(drive)
        await use_messages(server, drive)
        await use_drafts(server, drive)
        await use_pods(server, drive)
        await use_domains(drive, "domains", ())
        await use_settings(drive, "", ())
        await use_settings(drive, "inboxes.", ("support@postroom.localhost",))
        await use_organization(drive)
        await use_stream(server, drive)
        for name in methods_of(drive.client):
            if is_without_counterpart(name):
                await refuse(drive, name)
        assert drive.driven == set(methods_of(drive.client))


@OF_THE_PACKAGE
def test_what_is_said_to_have_no_counterpart_is_there_in_the_package() -> None:
    known = set(methods_of(AgentMail(api_key="x")))
    assert known == set(methods_of(AsyncAgentMail(api_key="x")))
    assert not [begin for begin in WITHOUT_COUNTERPART if not any(name.startswith(begin) for name in known)]


async def refuse(drive: Driver, name: str) -> None:
    """404 with a sentence, whatever is given."""
    needed = [
        parameter
        for parameter in inspect.signature(drive.find(name)).parameters.values()
        if parameter.default is inspect.Parameter.empty
    ]
    given = ["support@postroom.localhost" for each in needed if each.kind is not each.KEYWORD_ONLY]
    named = {each.name: "x" for each in needed if each.kind is each.KEYWORD_ONLY}
    with pytest.raises(ApiError) as refused:
        await drive(name, *given, **named)
    assert refused.value.status_code == 404, name
    assert "no counterpart" in str(refused.value.body), name


async def use_inboxes(drive: Driver) -> None:
    made = await drive("inboxes.create", request=CreateInboxRequest(username="support", client_id="i1"))
    other = await drive("inboxes.create", request=CreateInboxRequest(username="other"))
    assert (await drive("inboxes.get", made.inbox_id)).client_id == "i1"
    assert (await drive("inboxes.list", limit=1)).inboxes[0].inbox_id == other.inbox_id
    assert [each.inbox_id for each in (await drive("inboxes.search", q="supp")).inboxes] == [made.inbox_id]
    assert (await drive("inboxes.update", made.inbox_id, display_name="Help")).display_name == "Help"
    await drive("inboxes.delete", other.inbox_id)
    assert (await drive("inboxes.list")).count == 1


async def use_messages(server: Server, drive: Driver) -> None:
    inbox = "support@postroom.localhost"
    await received(
        server, mail("Lamp", message_id=ODD, more=FILE), mail("Other", message_id="<o@there.example>")
    )
    await settled(server)
    listed = await drive("inboxes.messages.list", inbox, subject=["lamp"])
    assert [each.message_id for each in listed.messages] == [ODD]
    thread_id, file_id = listed.messages[0].thread_id, listed.messages[0].attachments[0].attachment_id
    assert (await drive("inboxes.messages.get", inbox, ODD)).subject == "Lamp"
    raw = await drive("inboxes.messages.get_raw", inbox, ODD)
    assert b"Message-ID: <a/b+c=d@there.example>" in await fetch(raw.download_url)
    linked = await drive("inboxes.messages.get_attachment", inbox, ODD, file_id)
    assert b"Hello about Lamp" in await fetch(linked.download_url)
    found = await drive("inboxes.messages.search", inbox, q="about")
    assert {each.subject for each in found.messages} == {"Lamp", "Other"}
    assert (await drive("inboxes.messages.update", inbox, ODD, add_labels=["Vip"])).labels == [
        "received",
        "unread",
        "vip",
    ]
    assert (await drive("inboxes.messages.batch_get", inbox, message_ids=[ODD])).messages[0].labels[
        -1
    ] == "vip"
    changed = await drive(
        "inboxes.messages.batch_update", inbox, message_ids=[ODD], remove_labels=["vip", "unread"]
    )
    assert changed.updates[0].labels == ["received"]
    told = (await drive("inboxes.events.list", inbox, ascending=True)).events
    assert [(each.label, each.message_id) for each in told if each.message_id != ODD] == [
        ("unread", "<o@there.example>")
    ]
    assert [(each.event_type, each.label, each.message_id) for each in told if each.message_id == ODD] == [
        ("label.added", "unread", ODD),
        ("label.added", "vip", ODD),
        ("label.removed", "vip", ODD),
        ("label.removed", "unread", ODD),
    ]
    first = await drive("inboxes.events.list", inbox, limit=1)
    assert (first.events[0].label, bool(first.next_page_token)) == ("unread", True)
    await use_sending(drive, inbox)
    for scope, place in (("", ()), ("inboxes.", (inbox,))):
        await use_threads(drive, scope, place, thread_id, file_id)
    await drive("threads.delete", thread_id)
    await drive("inboxes.messages.delete", inbox, "<o@there.example>")
    left = await drive("inboxes.threads.list", inbox, labels=["received"])
    assert left.count == 0


async def use_sending(drive: Driver, inbox: str) -> None:
    sent = await drive(
        "inboxes.messages.send", inbox, to="ann@there.example", subject="Out", text="x", idempotency_key="k1"
    )
    again = await drive(
        "inboxes.messages.send", inbox, to="ann@there.example", subject="Out", text="x", idempotency_key="k1"
    )
    assert again.message_id == sent.message_id
    for verb, more in (("reply", {}), ("reply_all", {}), ("forward", {"to": "eve@there.example"})):
        done = await drive(f"inboxes.messages.{verb}", inbox, ODD, text="Yes", labels=["answered"], **more)
        written = await drive("inboxes.messages.get", inbox, done.message_id)
        assert {"sent", "answered"} <= set(written.labels)
        assert ("eve@there.example" in written.to) == (verb == "forward")
    gone = await drive("inboxes.threads.get", inbox, sent.thread_id)
    await drive("inboxes.threads.delete", inbox, gone.thread_id)


async def use_threads(
    drive: Driver, scope: str, place: tuple[str, ...], thread_id: str, file_id: str
) -> None:
    listed = await drive(f"{scope}threads.list", *place, subject=["lamp"], labels=["received"])
    assert [each.thread_id for each in listed.threads] == [thread_id]
    whole = await drive(f"{scope}threads.get", *place, thread_id, limit=1)
    assert (len(whole.messages), whole.thread_id) == (1, thread_id)
    found = await drive(f"{scope}threads.search", *place, q="Lamp")
    assert thread_id in [each.thread_id for each in found.threads]
    labelled = await drive(f"{scope}threads.update", *place, thread_id, add_labels=["seen-by-me"])
    assert "seen-by-me" in labelled.labels
    linked = await drive(f"{scope}threads.get_attachment", *place, thread_id, file_id)
    assert b"Hello about Lamp" in await fetch(linked.download_url)


async def use_drafts(server: Server, drive: Driver) -> None:
    inbox = "support@postroom.localhost"
    file = SendAttachment(filename="a.txt", content="d29yZHM=", content_type="text/plain")
    made = await drive("inboxes.drafts.create", inbox, subject="Hi", attachments=[file])
    file_id = made.attachments[0].attachment_id
    for scope, place in (("", ()), ("inboxes.", (inbox,))):
        assert (await drive(f"{scope}drafts.list", *place)).drafts[0].draft_id == made.draft_id
        assert (await drive(f"{scope}drafts.get", *place, made.draft_id)).subject == "Hi"
        linked = await drive(f"{scope}drafts.get_attachment", *place, made.draft_id, file_id)
        assert await fetch(linked.download_url) == b"words"
    changed = await drive("inboxes.drafts.update", inbox, made.draft_id, to=["ann@there.example"], text="Yo")
    assert changed.to == ["ann@there.example"]
    assert (await drive("inboxes.drafts.send", inbox, made.draft_id)).message_id.startswith("<")
    assert await fetch(linked.download_url) == b"404"
    other = await drive("inboxes.drafts.create", inbox, subject="No")
    await drive("inboxes.drafts.delete", inbox, other.draft_id)
    assert (await drive("drafts.list")).count == 0


async def use_pods(server: Server, drive: Driver) -> None:
    pod = (await drive("pods.create", name="Tenant", client_id="t1")).pod_id
    assert (await drive("pods.get", pod)).name == "Tenant"
    assert pod in [each.pod_id for each in (await drive("pods.list")).pods]
    inside = (await drive("pods.inboxes.create", pod, username="inside")).inbox_id
    assert (await drive("pods.inboxes.get", pod, inside)).pod_id == pod
    assert (await drive("pods.inboxes.list", pod)).inboxes[0].inbox_id == inside
    assert (await drive("pods.inboxes.search", pod, q="insi")).count == 1
    assert (await drive("pods.inboxes.update", pod, inside, display_name="In")).display_name == "In"
    await received(server, mail("Lamp", more=FILE), name="inside")
    await settled(server)
    message = (await drive("inboxes.messages.list", inside)).messages[0]
    await use_threads(drive, "pods.", (pod,), message.thread_id, message.attachments[0].attachment_id)
    file = SendAttachment(filename="a.txt", content="d29yZHM=")
    draft = await drive("inboxes.drafts.create", inside, subject="Hi", attachments=[file])
    assert (await drive("pods.drafts.list", pod)).count == 1
    assert (await drive("pods.drafts.get", pod, draft.draft_id)).subject == "Hi"
    linked = await drive(
        "pods.drafts.get_attachment", pod, draft.draft_id, draft.attachments[0].attachment_id
    )
    assert await fetch(linked.download_url) == b"words"
    await use_domains(drive, "pods.domains", (pod,))
    await use_settings(drive, "pods.", (pod,))
    await drive("pods.threads.delete", pod, message.thread_id)
    await drive("pods.inboxes.delete", pod, inside)
    await drive("pods.delete", pod)


async def use_domains(drive: Driver, scope: str, place: tuple[str, ...]) -> None:
    made = await drive(f"{scope}.create", *place, domain="mail.example.com")
    assert [each.domain_id for each in (await drive(f"{scope}.list", *place)).domains] == [made.domain_id]
    assert (await drive(f"{scope}.get", *place, "mail.example.com")).domain_id == made.domain_id
    assert (await drive(f"{scope}.update", *place, made.domain_id, inbound_enabled=True)).inbound_enabled
    await drive(f"{scope}.verify", *place, made.domain_id)
    assert b"IN MX" in b"".join(await drive(f"{scope}.get_zone_file", *place, made.domain_id))
    if not place:
        assert (await drive("domains.get_setup_link", made.domain_id)).supported is False
    await drive(f"{scope}.delete", *place, "Mail.Example.com")
    assert (await drive(f"{scope}.list", *place)).count == 0


async def use_settings(drive: Driver, scope: str, place: tuple[str, ...]) -> None:
    """What there is of the organization, of a pod and of an inbox alike."""
    await use_keys(drive, scope, place)
    await drive(f"{scope}lists.create", *place, "send", "block", entry="bad.example")
    assert (await drive(f"{scope}lists.list", *place, "send", "block")).entries[0].entry == "bad.example"
    assert (await drive(f"{scope}lists.get", *place, "send", "block", "bad.example")).list_type == "block"
    await drive(f"{scope}lists.delete", *place, "send", "block", "bad.example")
    hook = await drive(f"{scope}webhooks.create", *place, **HOOK, headers={"X-Own": "7"})
    hook_id = hook.webhook_id
    assert (await drive(f"{scope}webhooks.get", *place, hook_id)).secret == hook.secret
    assert [each.webhook_id for each in (await drive(f"{scope}webhooks.list", *place)).webhooks] == [hook_id]
    assert not (await drive(f"{scope}webhooks.update", *place, hook_id, enabled=False)).enabled
    await drive(f"{scope}webhooks.update_headers", *place, hook_id, headers={"X-New": "8"})
    assert (await drive(f"{scope}webhooks.get_headers", *place, hook_id)).header_names == ["X-New", "X-Own"]
    await drive(f"{scope}webhooks.delete", *place, hook_id)
    assert (await drive(f"{scope}webhooks.list", *place)).count == 0
    counted = await drive(f"{scope}metrics.query_events", *place, event_types=["message.received"])
    assert sum(bucket.count for bucket in counted["message.received"]) >= 1
    assert (await drive(f"{scope}metrics.query_usage", *place))["inbox_count"][0].value >= 1
    assert set(await drive(f"{scope}metrics.query_rates", *place)) == {"bounce", "complaint"}


async def use_keys(drive: Driver, scope: str, place: tuple[str, ...]) -> None:
    key = await drive(f"{scope}api_keys.create", *place, request=key_request("one", message_read=True))
    assert key.api_key_id in [
        each.api_key_id for each in (await drive(f"{scope}api_keys.list", *place)).api_keys
    ]
    renamed = await drive(f"{scope}api_keys.update", *place, key.api_key_id, name="two")
    assert (renamed.name, renamed.permissions.message_read) == ("two", True)
    if not place:
        assert (await drive("api_keys.get", key.api_key_id)).name == "two"
    await drive(f"{scope}api_keys.delete", *place, key.api_key_id)


async def use_organization(drive: Driver) -> None:
    me = await drive("auth.me")
    assert (me.scope_type, me.organization_id) == (
        "organization",
        (await drive("organizations.get")).organization_id,
    )


async def use_stream(server: Server, drive: Driver) -> None:
    drive.driven.add("websockets.connect")
    inbox = "support@postroom.localhost"
    if isinstance(drive.client, AgentMail):
        subscribed = await asyncio.to_thread(subscribe, drive.client, inbox)
    else:
        async with drive.client.websockets.connect() as socket:
            await socket.send_subscribe(Subscribe(inbox_ids=[inbox]))
            subscribed = await socket.recv()
            await received(server, mail("Heard"))
            event: Any = await socket.recv()
            assert (event.event_type, event.message.subject) == ("message.received", "Heard")
    assert (subscribed.type, subscribed.inbox_ids) == ("subscribed", [inbox])


def subscribe(client: AgentMail, inbox: str) -> Any:
    with client.websockets.connect() as socket:
        socket.send_subscribe(Subscribe(inbox_ids=[inbox]))
        return socket.recv()


async def fetch(url: str) -> bytes:
    """Without a key."""
    async with http_client() as nobody:
        answer = await nobody.get(url)
    return answer.content if answer.status_code == 200 else str(answer.status_code).encode()
