"""Every way by which an email leaves. Each gives the id of the message, or None where it was refused."""

import asyncio
import base64
import smtplib
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2

from tests.adversary.hostile import hostile
from tests.adversary.orders import RECIPIENT, order
from tests.caldav.client import event, signed_in
from tests.client.live import LiveServer
from tests.client.test_mcp import http_agent
from tests.conftest import Server
from tests.imap.live import aside, log_in
from tests.plain_transport import http_client
from tests.waiting import until

WayOut = Callable[[Server, str, int], Awaitable[str | None]]
NAME = "agent"
OWN = f"{NAME}@postroom.localhost"


def _key() -> dict[str, str]:
    return {"Idempotency-Key": str(uuid.uuid4())}


def _id(answer: httpx2.Response) -> str | None:
    """The message that was accepted; a refusal is 4xx with its reason."""
    if answer.status_code == 200:
        message_id: str = answer.json()["id"]
        return message_id
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["message"], answer.text
    return None


async def by_rest(server: Server, inbox_id: str, number: int) -> str | None:
    fields = order(number).fields
    return _id(await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=fields, headers=_key()))


async def by_alias(server: Server, inbox_id: str, number: int) -> str | None:
    """In the name of an alias; every fifth time of an address that is none."""
    alias = f"alias-of-{NAME}@postroom.localhost"
    made = await server.api.post(f"/v1/inboxes/{inbox_id}/aliases", json={"address": alias})
    assert made.status_code in (201, 409), made.text
    sender = f"other{alias}" if number % 5 == 0 else alias
    fields = {**order(number).fields, "fromAddress": sender}
    taken = _id(await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=fields, headers=_key()))
    assert taken is None or sender == alias
    return taken


async def by_upload(server: Server, inbox_id: str, number: int) -> str | None:
    """The hostile files are uploaded, and named when they are attached."""
    fields = dict(order(number).fields)
    named = []
    for file in fields.get("attachments", []):
        content = base64.b64decode(file["data"])
        asked = {"inboxId": inbox_id, "filename": file["filename"], "contentType": file["contentType"]}
        made = await server.api.post("/v1/uploads", json={**asked, "sizeBytes": len(content)})
        if made.status_code != 201:
            return _id(made)
        async with http_client() as keyless:
            stored = await keyless.put(made.json()["url"], content=content)
        assert stored.status_code == 200, stored.text
        named.append({"uploadId": made.json()["id"]})
    fields |= {"attachments": named} if named else {}
    return _id(await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=fields, headers=_key()))


async def by_draft(server: Server, inbox_id: str, number: int) -> str | None:
    made = await server.api.post(f"/v1/inboxes/{inbox_id}/drafts", json=order(number).fields)
    if made.status_code != 201:
        return _id(made)
    return _id(await server.api.post(f"/v1/drafts/{made.json()['id']}/send", headers=_key()))


async def by_template(server: Server, inbox_id: str, number: int) -> str | None:
    """The hostile texts are the values of the template's fields."""
    fields = order(number).fields
    name = f"template-{uuid.uuid4().hex[:8]}"
    texts = {"name": name, "subject": "{{subject}}", "body": "{{body}}", "bodyHtml": "<p>{{body}}</p>"}
    made = await server.api.post("/v1/templates", json={"inboxId": inbox_id, **texts})
    assert made.status_code == 201, made.text
    values = {"subject": fields["subject"], "body": fields["body"]}
    sent = {"to": fields["to"], "template": name, "fields": values}
    return _id(await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=sent, headers=_key()))


async def by_second_vocabulary(server: Server, inbox_id: str, number: int) -> str | None:
    fields = order(number).fields
    body = {"to": fields["to"], "subject": fields["subject"], "text": fields["body"]}
    if "bodyHtml" in fields:
        body["html"] = fields["bodyHtml"]
    if "attachments" in fields:
        body["attachments"] = [
            {"filename": file["filename"], "content_type": file["contentType"], "content": file["data"]}
            for file in fields["attachments"]
        ]
    answer = await server.api.post(f"/v0/inboxes/{OWN}/messages/send", json=body)
    assert answer.status_code < 500, answer.text
    return await newest(server, inbox_id) if answer.status_code == 200 else None


async def by_mcp(server: Server, inbox_id: str, number: int) -> str | None:
    fields = order(number).fields
    given = {"to": fields["to"], "subject": fields["subject"], "body": fields["body"], "inbox_id": inbox_id}
    if "attachments" in fields:
        given["attachments"] = [
            {"filename": file["filename"], "content_type": file["contentType"], "data_base64": file["data"]}
            for file in fields["attachments"]
        ]
    async with http_agent(LiveServer(server.base_url, server.smtp_port), server.token) as agent:
        result = await agent.client.call_tool("send_email", given)
    return None if result.is_error else str(result.structured_content["message_id"])


async def newest(server: Server, inbox_id: str) -> str:
    query = {"direction": "outbound", "limit": "1"}
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages", params=query)).json()
    message_id: str = page["data"][0]["id"]
    return message_id


def own_bytes(number: int) -> bytes:
    """A hostile email that claims to come from the inbox, as a mail client would submit it."""
    raw = hostile(number).raw.replace(b"From: Eve <eve@outside.example>", f"From: Agent <{OWN}>".encode(), 1)
    return raw.replace(b"To: agent@postroom.localhost", f"To: {RECIPIENT}".encode(), 1)


async def by_submission(server: Server, inbox_id: str, number: int) -> str | None:
    def submit() -> tuple[int, bytes]:
        assert server.submission_port is not None
        with smtplib.SMTP("127.0.0.1", server.submission_port, timeout=120) as smtp:
            smtp.login(OWN, server.token)
            smtp.mail(OWN)
            smtp.rcpt(RECIPIENT)
            return smtp.data(own_bytes(number))

    code, words = await asyncio.to_thread(submit)
    assert code == 250 or 500 <= code < 600, words
    return await newest(server, inbox_id) if code == 250 else None


async def by_draft_of_a_mail_client(server: Server, inbox_id: str, number: int) -> str | None:
    """A mail client saves a draft, and it is sent from elsewhere."""

    def save() -> bool:
        client = log_in(server, NAME)
        try:
            return client.append("Drafts", "(\\Draft)", "", own_bytes(number))[0] == "OK"
        finally:
            client.logout()

    if not await aside(save):
        return None
    (draft, *_) = (await server.api.get(f"/v1/inboxes/{inbox_id}/drafts")).json()["data"]
    sent = await server.api.post(f"/v1/drafts/{draft['id']}/send", headers=_key())
    await server.api.delete(f"/v1/drafts/{draft['id']}")
    return _id(sent)


async def by_redirect(server: Server, inbox_id: str, number: int) -> str | None:
    """A hostile email that came in goes on to somebody else."""
    message_id = await _received(server, inbox_id, number)
    if message_id is None:
        return None
    path = f"/v1/messages/{message_id}/redirect"
    return _id(await server.api.post(path, json={"to": RECIPIENT}, headers=_key()))


async def by_rule(server: Server, inbox_id: str, number: int) -> str | None:
    """A rule forwards or answers the hostile email as soon as it comes in."""
    kinds = ({"type": "forward", "to": RECIPIENT}, {"type": "reply", "body": "We have it."})
    return await _by_rule(server, inbox_id, number, kinds[number % len(kinds)])


async def by_redirecting_rule(server: Server, inbox_id: str, number: int) -> str | None:
    return await _by_rule(server, inbox_id, number, {"type": "redirect", "to": RECIPIENT})


async def _by_rule(server: Server, inbox_id: str, number: int, action: dict[str, str]) -> str | None:
    rule = {"name": "r", "query": "-zzzz", "actions": [action]}
    made = await server.api.post(f"/v1/rules?inboxId={inbox_id}", json=rule)
    assert made.status_code == 201, made.text
    message_id = await _received(server, inbox_id, number)
    if message_id is None:
        return None

    async def is_done() -> bool:
        return await server.resources.db.read(
            lambda tx: tx.one("select 1 as found from rule_tasks limit 1") is None
        )

    await until(is_done)
    assert (await server.api.delete(f"/v1/rules/{made.json()['id']}")).status_code == 204
    message = (await server.api.get(f"/v1/messages/{message_id}")).json()
    steps = [step for trace in message.get("rules", []) for step in trace["actions"]]
    assert all(step["outcome"] == "done" or step["reason"] for step in steps)
    return next((step["messageId"] for step in steps if "messageId" in step), None)


async def by_forward(server: Server, inbox_id: str, number: int) -> str | None:
    message_id = await _received(server, inbox_id, number)
    if message_id is None:
        return None
    fields = {"to": RECIPIENT, "body": "See below", "forwardOf": message_id}
    return _id(await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=fields, headers=_key()))


async def by_answer(server: Server, inbox_id: str, number: int) -> str | None:
    """An answer quotes the hostile email."""
    message_id = await _received(server, inbox_id, number)
    if message_id is None:
        return None
    message = (await server.api.get(f"/v1/messages/{message_id}")).json()
    fields: dict[str, Any] = {"to": RECIPIENT, "body": "Thank you", "threadId": message["threadId"]}
    return _id(await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=fields, headers=_key()))


async def _received(server: Server, inbox_id: str, number: int) -> str | None:
    def hand_over() -> int:
        with smtplib.SMTP("127.0.0.1", server.smtp_port, timeout=120) as smtp:
            smtp.ehlo()
            smtp.mail("eve@outside.example")
            smtp.rcpt(OWN)
            return smtp.data(hostile(number).raw)[0]

    if await asyncio.to_thread(hand_over) != 250:
        return None
    query = {"direction": "inbound", "limit": "1"}
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages", params=query)).json()
    message_id: str = page["data"][0]["id"]
    return message_id


async def by_invitation(server: Server, inbox_id: str, number: int) -> str | None:
    fields = order(number).fields
    fields = {name: fields[name] for name in ("to", "subject", "body")}
    fields["calendar"] = {
        "summary": fields["subject"][:200],
        "description": fields["body"],
        "location": "https://meet.example/x",
        "start": "2026-11-20T15:00:00",
        "end": "2026-11-20T16:30:00",
        "timeZone": "Europe/Berlin",
    }
    return _id(await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=fields, headers=_key()))


async def by_calendar_event(server: Server, inbox_id: str, number: int) -> str | None:
    """The hostile texts are those of an event in the calendar: invited, and every other one changed."""
    fields = order(number).fields
    event = {
        "inboxId": inbox_id,
        "summary": fields["subject"][:200],
        "description": fields["body"][:20_000],
        "location": fields["subject"][-100:],
        "start": "2026-11-20T15:00:00",
        "end": "2026-11-20T16:30:00",
        "timeZone": "Europe/Berlin",
        "recurrence": ["RRULE:FREQ=WEEKLY;COUNT=3"],
        "attendees": [{"address": RECIPIENT, "name": fields["subject"][:50]}],
        "allowOverlap": True,
    }
    made = await server.api.post("/v1/calendar-events", json=event, headers=_key())
    if made.status_code == 201 and number % 2:
        one = {"scope": "this", "recurrenceId": "2026-11-27T15:00:00+01:00"}
        path = f"/v1/calendar-events/{made.json()['id']}"
        made = await server.api.patch(path, params=one, json={"location": "Room 2"}, headers=_key())
    if made.status_code in (200, 201):
        message_id: str = made.json()["messageId"]
        return message_id
    return _id(made)


async def by_caldav(server: Server, inbox_id: str, number: int) -> str | None:
    """The hostile texts are those of an event that a calendar client stores, and every other one changed."""
    fields = order(number).fields
    text = {name: escape(fields[name]) for name in ("subject", "body")}
    file = event(
        f"{number}@client",
        text["subject"][:400],
        f"DESCRIPTION:{text['body']}\nLOCATION:{text['subject'][-100:]}\nORGANIZER:mailto:{OWN}\n"
        f'ATTENDEE;CN="{fields["subject"][:50]}":mailto:{RECIPIENT}\nX-OWN:{text["subject"][:100]}\n',
    )
    async with signed_in(server, OWN, server.token) as dav:
        stored = await dav.put(f"{number}.ics", file)
        if stored.status_code == 201 and number % 2:
            stored = await dav.put(f"{number}.ics", file.replace("T160000Z", "T170000Z"))
    if stored.status_code not in (201, 204):
        assert stored.status_code in (400, 403), stored.text
        return None
    query = {"direction": "outbound", "limit": "1"}
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages", params=query)).json()
    message_id: str = page["data"][0]["id"]
    return message_id


def escape(text: str) -> str:
    return (
        text.replace("\\", "\\\\")
        .replace("\r", "")
        .replace("\n", "\\n")
        .replace(",", "\\,")
        .replace(";", "\\;")
    )


ALL: tuple[WayOut, ...] = (
    by_rest,
    by_alias,
    by_upload,
    by_mcp,
    by_draft,
    by_template,
    by_second_vocabulary,
    by_submission,
    by_draft_of_a_mail_client,
    by_redirect,
    by_rule,
    by_redirecting_rule,
    by_forward,
    by_answer,
    by_invitation,
    by_calendar_event,
    by_caldav,
)
