"""Drafts, pods, keys, domains, lists and metrics by the package `agentmail`."""

import asyncio
import base64
from typing import Any

import pytest
from agentmail import AgentMail, AsyncAgentMail
from agentmail.api_keys.types import CreateBearerApiKeyRequest
from agentmail.attachments.types import SendAttachment
from agentmail.core.api_error import ApiError
from agentmail.errors import NotFoundError, ValidationError
from agentmail.messages.errors import MessageRejectedError

from postroom.clock import SECOND, from_iso, to_iso
from postroom.queue import deliveries
from tests.agentmail.clients import ONCE, agentmail, agentmail_without_async
from tests.agentmail.test_mail import api as api  # the fixture
from tests.agentmail.test_mail import listed, mail, new, received
from tests.api.test_keys import second_account
from tests.conftest import Server

pytestmark = pytest.mark.share(2)


async def test_drafts(server: Server, api: AsyncAgentMail) -> None:
    inbox = (await new(api, username="support")).inbox_id
    await received(server, mail("Asked", message_id="<asked@x>", more="Reply-To: desk@there.example\r\n"))
    file = SendAttachment(filename="a.txt", content=base64.b64encode(b"words").decode())
    drafts = api.inboxes.drafts
    made = await drafts.create(
        inbox, to=["ann@there.example"], subject="Hi", html="<p>Hello</p>", labels=["Later"],
        attachments=[file], client_id="d1",
    )  # fmt: skip
    assert (made.labels, made.attachments[0].filename, made.client_id) == (["later"], "a.txt", "d1")
    again = await drafts.create(inbox, subject="Other", client_id="d1")
    assert again.draft_id == made.draft_id
    answer = await drafts.create(inbox, in_reply_to="<asked@x>", text="Yes")
    assert answer.in_reply_to == "<asked@x>"
    assert [each.draft_id for each in (await drafts.list(inbox)).drafts] == [answer.draft_id, made.draft_id]
    assert len((await api.drafts.list(limit=1)).drafts) == 1
    changed = await drafts.update(
        inbox,
        made.draft_id,
        subject="Hello",
        cc=["bob@there.example"],
        add_labels=["now"],
        remove_labels=["later"],
        remove_attachments=[made.attachments[0].attachment_id],
    )
    assert (changed.subject, changed.cc, changed.labels) == ("Hello", ["bob@there.example"], ["now"])
    assert changed.attachments == []
    sent = await drafts.send(inbox, made.draft_id, add_labels=["gone"])
    written = await api.inboxes.messages.get(inbox, sent.message_id)
    assert (written.subject, written.text.strip(), written.cc) == ("Hello", "Hello", ["bob@there.example"])
    assert {"now", "gone", "sent"} <= set(written.labels)
    with pytest.raises(NotFoundError):
        await drafts.get(inbox, made.draft_id, request_options=ONCE)
    replied = await drafts.send(inbox, answer.draft_id)
    written = await api.inboxes.messages.get(inbox, replied.message_id)
    assert (written.to, written.in_reply_to) == (["desk@there.example"], "<asked@x>")
    for label in ("x" * 51, "sent"):
        with pytest.raises(ValidationError):
            await drafts.create(inbox, labels=[label], request_options=ONCE)
    bare = await drafts.create(inbox, to=["ann@there.example"], text="No subject.")
    written = await api.inboxes.messages.get(inbox, (await drafts.send(inbox, bare.draft_id)).message_id)
    assert (written.subject or "", written.text.strip()) == ("", "No subject.")
    last = await drafts.create(inbox, subject="x")
    await drafts.delete(inbox, last.draft_id)
    assert (await drafts.list(inbox)).drafts == []


async def test_a_draft_on_the_clock_is_sent_by_itself(server: Server, api: AsyncAgentMail) -> None:
    inbox = (await new(api, username="support")).inbox_id
    other = (await new(api, username="other")).inbox_id
    drafts = api.inboxes.drafts
    soon = to_iso(server.clock.moment + 60 * SECOND)
    with pytest.raises(ValidationError):
        await drafts.create(inbox, send_at="2027-12-01T00:00:00Z", request_options=ONCE)
    written = {"to": [other], "subject": "Later", "text": "Now"}
    made = await drafts.create(inbox, send_at=soon, labels=["mine"], **written)
    assert (made.send_status, made.labels, to_iso(from_iso(soon))) == (
        "scheduled",
        ["mine", "scheduled"],
        soon,
    )
    kept = await drafts.create(inbox, send_at=soon, **written)
    kept = await drafts.update(inbox, kept.draft_id, send_at=None)
    assert (kept.send_status, kept.send_at, kept.labels) == (None, None, [])
    refused = await drafts.create(inbox, send_at=soon, to=["eve@bad.example"], subject="x", text="x")
    await api.lists.create("send", "block", entry="bad.example")
    shown = (await server.api.get(f"/v1/drafts/{made.draft_id}")).json()
    assert (shown["scheduled"], shown["sendAt"]) == (True, soon)
    assert {each.draft_id for each in (await drafts.list(inbox, labels=["scheduled"])).drafts} == {
        made.draft_id,
        refused.draft_id,
    }
    server.clock.moment += 61 * SECOND
    server.resources.db.ring(deliveries.HOLDS_BELL)
    event = await server.next_event()
    assert event["message"]["subject"] == "Later"
    async with asyncio.timeout(60):
        while (failed := await drafts.get(inbox, refused.draft_id)).send_status != "failed":
            await asyncio.sleep(0.02)
    assert failed.labels == []
    (sent,) = await listed(api, inbox, labels=["mine"])
    assert "sent" in sent.labels
    assert {each.draft_id for each in (await drafts.list(inbox)).drafts} == {kept.draft_id, refused.draft_id}


async def test_domains_are_found_by_name_and_made_once_by_client_id(server: Server) -> None:
    asked = {"domain": "Mail.Example.com", "client_id": "d1"}
    made = (await server.api.post("/v0/domains", json=asked)).json()
    again = (await server.api.post("/v0/domains", json=asked | {"domain": "other.example.com"})).json()
    assert (made["client_id"], again) == ("d1", made)
    named = (await server.api.get("/v0/domains/MAIL.example.com")).json()
    assert named["domain_id"] == made["domain_id"]
    async with server.client(await second_account(server)) as stranger:
        assert (await stranger.get("/v0/domains/mail.example.com")).status_code == 404


async def test_pods_keys_domains_and_who_asks(server: Server) -> None:
    def use(api: AgentMail) -> str:
        pod = api.pods.create(name="Tenant", client_id="t1")
        assert api.pods.create(name="Other", client_id="t1").pod_id == pod.pod_id
        assert pod.pod_id in [each.pod_id for each in api.pods.list().pods]
        inbox = api.pods.inboxes.create(pod.pod_id, username="inside").inbox_id
        assert [each.inbox_id for each in api.pods.inboxes.list(pod.pod_id).inboxes] == [inbox]
        with pytest.raises(ApiError) as full:
            api.pods.delete(pod.pod_id, request_options=ONCE)
        assert (full.value.status_code, full.value.body["code"]) == (403, "cannot_delete")

        key = api.api_keys.create(request=CreateBearerApiKeyRequest(name="all"))
        of_inbox = api.inboxes.api_keys.create(inbox, request=CreateBearerApiKeyRequest(name="one"))
        assert {each.api_key_id for each in api.inboxes.api_keys.list(inbox).api_keys} == {
            of_inbox.api_key_id
        }
        assert api.api_keys.get(key.api_key_id).name == "all"
        api.api_keys.delete(key.api_key_id)
        domain = api.domains.create(domain="Mail.Example.COM")
        assert (domain.domain, domain.status) == ("mail.example.com", "PENDING")
        assert {record.type for record in domain.records} == {"MX", "TXT"}
        assert b"IN MX" in b"".join(api.domains.get_zone_file(domain.domain_id))
        assert [each.domain for each in api.domains.list().domains] == ["mail.example.com"]
        api.domains.verify(domain.domain_id)
        assert api.domains.get(domain.domain_id).status == "PENDING"
        api.domains.delete(domain.domain_id)
        me = api.auth.me()
        assert (me.scope_type, me.scope_id) == ("organization", me.organization_id)
        assert api.organizations.get().inbox_count == 1
        return str(of_inbox.api_key)

    with agentmail_without_async(server) as api:
        token = await asyncio.to_thread(use, api)
    async with agentmail(server, token) as inside:
        me = await inside.auth.me()
        assert (me.scope_type, me.scope_id) == ("inbox", "inside@postroom.localhost")
        with pytest.raises(ApiError) as refused:
            await inside.pods.list(request_options=ONCE)
        assert refused.value.status_code == 403


@pytest.mark.sqlite_alone
async def test_lists_are_rules_and_metrics_count(server: Server, api: AsyncAgentMail) -> None:
    inbox = (await new(api, username="support")).inbox_id
    await api.lists.create("send", "block", entry="@bad.example", reason="rude")
    assert [each.entry for each in (await api.lists.list("send", "block")).entries] == ["bad.example"]

    async def send(to: str) -> Any:
        return await api.inboxes.messages.send(inbox, to=to, subject="s", text="t", request_options=ONCE)

    with pytest.raises(MessageRejectedError):
        await send("eve@bad.example")
    entry = await api.inboxes.lists.create(inbox, "send", "allow", entry="ann@there.example")
    assert (entry.entry_type, entry.inbox_id) == ("email", inbox)
    await send("ann@there.example")
    with pytest.raises(MessageRejectedError):
        await send("bob@there.example")
    await api.inboxes.lists.delete(inbox, "send", "allow", "ann@there.example")
    await send("bob@there.example")
    assert (await api.lists.get("send", "block", "bad.example")).list_type == "block"
    with pytest.raises(ApiError) as none_of_its_own:
        await api.lists.create("reply", "block", entry="a@b.example", request_options=ONCE)
    assert none_of_its_own.value.status_code == 400

    await received(server, mail("One"))
    counted = await api.metrics.query_events(event_types=["message.received"])
    assert sum(bucket.count for bucket in counted["message.received"]) == 1
    usage = await api.inboxes.metrics.query_usage(inbox, usage_types=["message_count", "inbox_count"])
    assert [usage[name][0].value for name in ("message_count", "inbox_count")] == [3, 1]
    assert len(await listed(api, inbox)) == 3


async def test_a_list_entry_keeps_the_reason_that_it_was_added_with(
    server: Server, api: AsyncAgentMail
) -> None:
    inbox = (await new(api, username="support")).inbox_id
    made = await api.lists.create("send", "block", entry="@bad.example", reason="rude")
    below = await api.inboxes.lists.create(inbox, "receive", "allow", entry="ann@there.example", reason="Ann")
    plain = await api.lists.create("send", "block", entry="worse.example")
    assert (made.reason, below.reason, plain.reason) == ("rude", "Ann", None)
    assert (await api.lists.get("send", "block", "bad.example")).reason == "rude"
    shown = {each.entry: each.reason for each in (await api.lists.list("send", "block")).entries}
    assert shown == {"bad.example": "rude", "worse.example": None}
    # The whole policy is set again, as a page does: a rule that stays keeps its reason.
    rules = [{"type": "block", "value": value} for value in ("BAD.example", "third.example")]
    kept = await server.api.put("/v1/policy", json={"outbound": {"mode": "inherit", "rules": rules}})
    assert kept.status_code == 200, kept.text
    shown = {each.entry: each.reason for each in (await api.lists.list("send", "block")).entries}
    assert shown == {"bad.example": "rude", "third.example": None}
    odd = {"entry": "odd.example", "reason": "a\x00b"}
    answer = await server.api.post("/v0/lists/send/block", json=odd)
    assert answer.status_code == 400, answer.text
