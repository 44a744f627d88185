"""Aliases, a catch-all, subdomains and the operator's names: one inbox that has many addresses."""

import asyncio
import smtplib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.accounts import accounts, domains, keys
from postroom.errors import DomainTaken
from postroom.outward import nudges
from postroom.storage.database import Tx
from tests.api.test_dashboard import signed_in
from tests.conftest import Server
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.mail.keys import signing_key
from tests.outbound import is_signed, message_of, relay_to, running, send, settled, turn
from tests.raw_mails import raw_mail
from tests.waiting import until

OURS, HOME = "agents.ours.example", "postroom.localhost"


@pytest.fixture
async def peer() -> AsyncIterator[SmtpPeer]:
    async with SmtpPeer() as peer:
        yield peer


@pytest.fixture
async def host(database_url: str, tmp_path: Path, clock: FakeClock, peer: SmtpPeer) -> AsyncIterator[Server]:
    async with running(tmp_path, database_url, clock, relay_to(peer)) as server:
        account_id = (await server.api.get("/v1/me")).json()["accountId"]
        await server.resources.db.write(own, account_id, OURS, clock.now())
        yield server


def own(tx: Tx, account_id: str, name: str, now: int) -> str:
    return domains.mark_verified(tx, domains.add(tx, account_id, name, signing_key(), now), now).id


async def stranger_of(host: Server) -> tuple[str, httpx2.AsyncClient]:
    token = keys.new_token()
    account = await host.resources.db.write(accounts.add, "other", "free", host.clock.now())
    await host.resources.db.write(keys.add, account.id, None, "k", token, host.clock.now())
    return account.id, host.client(token)


async def inbox_of(host: Server, name: str, domain: str = OURS, **fields: Any) -> str:
    made = await host.api.post("/v1/inboxes", json={"mailboxName": name, "domain": domain, **fields})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def add(host: Server, inbox_id: str, address: str) -> httpx2.Response:
    return await host.api.post(f"/v1/inboxes/{inbox_id}/aliases", json={"address": address})


async def said(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error", "")


def accepted(host: Server, *recipients: str, text: str = "Hello") -> dict[str, int]:
    """The code of the server for each recipient of one email."""
    with smtplib.SMTP("127.0.0.1", host.smtp_port, timeout=120) as smtp:
        smtp.ehlo()
        smtp.mail("carol@there.example")
        codes = {each: smtp.rcpt(each)[0] for each in recipients}
        if 250 in codes.values():
            smtp.data(raw_mail(sender="carol@there.example", to=", ".join(recipients), text=text))
        return codes


async def received(host: Server, inbox_id: str, number: int) -> list[dict[str, Any]]:
    async def found() -> list[dict[str, Any]]:
        page = await host.api.get(f"/v1/inboxes/{inbox_id}/messages", params={"direction": "inbound"})
        data: list[dict[str, Any]] = page.json()["data"]
        return data if len(data) >= number else []

    return await until(found)


@pytest.mark.sqlite_alone
async def test_an_alias_at_another_domain_is_no_contact_but_one_of_another_inbox_is(host: Server) -> None:
    support, sales = await inbox_of(host, "support"), await inbox_of(host, "sales")
    home = f"help@{host.resources.config.domain}"
    assert (await add(host, support, home)).status_code == 201
    for number, (inbox_id, sender, to) in enumerate(
        ((support, f"support@{OURS}", home), (support, home, f"support@{OURS}"), (sales, "", home))
    ):
        body = {"to": to, "subject": "Note", "body": "Note"} | ({"fromAddress": sender} if sender else {})
        sent = await host.api.post(
            f"/v1/inboxes/{inbox_id}/send", json=body, headers={"Idempotency-Key": str(number)}
        )
        assert sent.status_code == 200, sent.text
    assert len(await received(host, support, 3)) == 3

    async def has(inbox_id: str, contacts: list[str]) -> bool:
        page = (await host.api.get("/v1/contacts", params={"inboxId": inbox_id})).json()
        return [each["address"] for each in page["data"]] == contacts

    for inbox_id, contacts in ((sales, [home]), (support, [f"sales@{OURS}"])):
        await until(partial(has, inbox_id, contacts))


@pytest.mark.sqlite_alone
async def test_email_to_an_alias_comes_once_and_says_where_it_came_to(host: Server) -> None:
    inbox_id = await inbox_of(host, "support")
    made = await add(host, inbox_id, f"Billing@{OURS}")
    assert (made.status_code, made.json()["address"]) == (201, f"billing@{OURS}")
    both = (f"billing+july@{OURS}", f"support@{OURS}", f"nobody@{OURS}")
    codes = await asyncio.to_thread(accepted, host, *both)
    assert list(codes.values()) == [250, 250, 550]
    (message,) = await received(host, inbox_id, 1)
    assert (message["toAddr"], message["deliveredTo"]) == (f"support@{OURS}", f"billing@{OURS}")
    await asyncio.to_thread(accepted, host, f"support@{OURS}", text="To its own address")
    newest, _ = await received(host, inbox_id, 2)
    assert "deliveredTo" not in newest
    listed = (await host.api.get(f"/v1/inboxes/billing@{OURS}/aliases")).json()
    assert ([each["address"] for each in listed["data"]], listed["total"]) == ([f"billing@{OURS}"], 1)
    path = f"/v1/inboxes/{inbox_id}/aliases/BILLING%40{OURS}"
    assert (await host.api.delete(path)).status_code == 204
    assert await said(await host.api.delete(path)) == (404, "not_found")
    async with asyncio.timeout(60):  # the second for which a recipient is remembered
        while (await asyncio.to_thread(accepted, host, f"billing@{OURS}"))[f"billing@{OURS}"] == 250:
            pass
    actions = {entry["action"] for entry in (await host.api.get("/v1/audit")).json()["data"]}
    assert {"inbox.alias_added", "inbox.alias_removed"} <= actions


@pytest.mark.sqlite_alone
async def test_an_address_belongs_to_one_inbox_whether_alias_or_not(host: Server) -> None:
    first, second = await inbox_of(host, "first"), await inbox_of(host, "second")
    await host.api.post("/v1/users", json={"email": "boss@elsewhere.example", "role": "viewer"})
    assert (await add(host, first, f"sales@{OURS}")).status_code == 201
    refusals = {
        f"sales@{OURS}": (409, "address_taken"),
        f"second@{OURS}": (409, "address_taken"),
        "sales@not-ours.example": (400, "invalid_domain"),
        f"x@{OURS}": (400, "invalid_mailbox_name"),
        f"sales+tag@{OURS}": (400, "bad_request"),
        "sales": (400, "bad_request"),
        f"postmaster@{HOME}": (409, "address_taken"),
        f"a@b@{OURS}": (400, "invalid_mailbox_name"),
    }
    for address, refusal in refusals.items():
        assert await said(await add(host, second, address)) == refusal, address
    taken = await host.api.post("/v1/inboxes", json={"mailboxName": "sales", "domain": OURS})
    assert await said(taken) == (409, "address_taken")
    person = await host.api.post("/v1/users", json={"email": f"sales@{OURS}", "role": "viewer"})
    assert await said(person) == (409, "address_is_an_inbox")
    assert (await add(host, first, f"postmaster@{OURS}")).status_code == 201, "a key of the account may"
    for number in range(48):
        assert (await add(host, first, f"alias{number}@{HOME}")).status_code == 201
    assert await said(await add(host, first, f"one-more@{HOME}")) == (422, "alias_limit_reached")
    await host.api.delete(f"/v1/inboxes/{first}")
    assert (await add(host, second, f"sales@{OURS}")).status_code == 201, "it was deleted with its inbox"


@pytest.mark.sqlite_alone
async def test_two_that_want_one_address_at_once_are_told_apart(host: Server) -> None:
    inbox_id = await inbox_of(host, "first")
    answers = await asyncio.gather(
        *(add(host, inbox_id, f"wanted@{OURS}") for _ in range(3)),
        *(host.api.post("/v1/inboxes", json={"mailboxName": "wanted", "domain": OURS}) for _ in range(3)),
    )
    assert sorted(each.status_code for each in answers) == [201, 409, 409, 409, 409, 409]


@pytest.mark.sqlite_alone
async def test_an_email_leaves_in_the_name_of_an_alias(host: Server, peer: SmtpPeer) -> None:
    inbox_id = await inbox_of(host, "support")
    await add(host, inbox_id, f"billing@{OURS}")
    as_alias = {"fromAddress": f"Billing@{OURS}"}
    message = await settled(host, await send(host, inbox_id, "carol@there.example", **as_alias))
    assert (message["status"], message["fromAddr"]) == ("sent", f"billing@{OURS}")
    account_id = (await host.api.get("/v1/me")).json()["accountId"]
    assert f"From: billing@{OURS}".encode() in peer.mails[0].raw
    assert await is_signed(host, peer.mails[0].raw, OURS, owner=account_id)
    for other in (f"sales@{OURS}", "carol@there.example", ""):
        body = {
            "to": "carol@there.example",
            "subject": "Hi",
            "body": "Hi",
            "fromAddress": other or "nonsense",
        }
        path = f"/v1/inboxes/{inbox_id}/send"
        answer = await host.api.post(path, json=body, headers={"Idempotency-Key": other or "1"})
        assert (answer.status_code, answer.json()["field"]) == (400, "fromAddress"), answer.text
    # Inside, the alias proves its sender as the inbox's own address does.
    own = await settled(host, await send(host, inbox_id, f"support@{OURS}", **as_alias))
    assert own["status"] == "sent"
    (inside,) = await received(host, inbox_id, 1)
    assert (inside["fromAddr"], inside["auth"]["dmarc"]) == (f"billing@{OURS}", "none")
    assert inside["verdict"] == "clean"
    later = {**as_alias, "sendAt": "2026-11-15T09:00:00Z"}
    scheduled = await send(host, inbox_id, "dora@there.example", **later)
    await host.api.delete(f"/v1/inboxes/{inbox_id}/aliases/billing@{OURS}")
    turn(host, 7 * 24 * 3600 * 1000)
    failed = await until(lambda: failed_of(host, scheduled))
    assert failed["status"] == "failed"
    assert len(peer.mails) == 1


async def failed_of(host: Server, message_id: str) -> dict[str, Any] | None:
    message = await message_of(host, message_id)
    return message if message["status"] == "failed" else None


@pytest.mark.sqlite_alone
async def test_answers_leave_the_inbox_out_whatever_it_is_called(host: Server, peer: SmtpPeer) -> None:
    inbox_id = await inbox_of(host, "support")
    await add(host, inbox_id, f"billing@{OURS}")
    recipients = (f"billing@{OURS}", f"support@{OURS}", "dora@there.example")
    await asyncio.to_thread(accepted, host, *recipients[:2])
    raw = raw_mail(sender="carol@there.example", to=", ".join(recipients), message_id="<2@there.example>")
    await host.deliver_to(raw, f"billing@{OURS}", "carol@there.example")
    newest = (await received(host, inbox_id, 2))[0]
    sent = await send(host, inbox_id, threadId=newest["threadId"], replyAll=True, body="All")
    message = await settled(host, sent)
    named = f"{message['headerTo']} {message['cc']}"
    assert "alice@example.com" in named
    assert "dora@there.example" in named
    assert f"billing@{OURS}" not in named
    assert f"support@{OURS}" not in named
    thread = (await host.api.get(f"/v1/threads/{newest['threadId']}")).json()
    assert OURS not in str(thread["participants"])


@pytest.mark.sqlite_alone
async def test_a_reply_leaves_from_the_alias_that_was_written_to(host: Server, peer: SmtpPeer) -> None:
    inbox_id = await inbox_of(host, "support")
    await add(host, inbox_id, f"billing@{OURS}")
    await asyncio.to_thread(accepted, host, f"billing@{OURS}")
    (asked,) = await received(host, inbox_id, 1)
    answers = {"": f"billing@{OURS}", f"support@{OURS}": f"support@{OURS}"}
    for number, (wanted, sender) in enumerate(answers.items()):
        named = {"fromAddress": wanted} if wanted else {}
        fields = {"threadId": asked["threadId"], "body": f"Answer {number}", **named}
        message = await settled(host, await send(host, inbox_id, "carol@there.example", **fields))
        assert (message["status"], message["fromAddr"]) == ("sent", sender)
        assert f"From: {sender}".encode() in peer.mails[-1].raw
    await host.api.delete(f"/v1/inboxes/{inbox_id}/aliases/billing@{OURS}")
    last = await send(host, inbox_id, "carol@there.example", threadId=asked["threadId"], body="No alias now")
    assert (await settled(host, last))["fromAddr"] == f"support@{OURS}"


@pytest.mark.sqlite_alone
async def test_what_follows_an_email_of_an_alias_is_in_its_name(host: Server, peer: SmtpPeer) -> None:
    """Templates, drafts, follow-ups, invitations, rules and /v0; without an answer too."""
    inbox_id = await inbox_of(host, "support")
    await add(host, inbox_id, f"billing@{OURS}")
    as_alias, carol = {"fromAddress": f"billing@{OURS}"}, "carol@there.example"
    template = {"inboxId": inbox_id, "name": "hello", "subject": "Hello", "body": "Dear {{name}}"}
    made = (await host.api.post("/v1/templates", json=template)).json()
    filled = {"template": made["id"], "fields": {"name": "Carol"}}
    follows = {"followUps": [{"afterDays": 1, "body": "Did you see this?"}]}
    body = {"to": carol, **filled, **as_alias}
    key = {"Idempotency-Key": "template"}
    begun = await host.api.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers=key)
    first = await settled(host, begun.json()["id"])
    further = {"threadId": first["threadId"], "body": "And this", **follows}
    more = await settled(host, await send(host, inbox_id, carol, **further))
    turn(host, 2 * 24 * 3600 * 1000)
    for _ in range(2):
        await nudges.step(host.resources)
    draft = {"to": carol, "subject": "Draft", "body": "Draft", **as_alias}
    kept = (await host.api.post(f"/v1/inboxes/{inbox_id}/drafts", json=draft)).json()
    key = {"Idempotency-Key": "draft"}
    sent = await host.api.post(f"/v1/drafts/{kept['id']}/send", headers=key)
    assert sent.status_code == 200, sent.text
    meeting = {"summary": "Meeting", "start": "2026-12-01T10:00:00Z", "end": "2026-12-01T11:00:00Z"}
    await settled(host, await send(host, inbox_id, carol, calendar=meeting, **as_alias))
    rule = {"name": "answer", "query": "subject:order", "actions": [{"type": "reply", "body": "We have it."}]}
    await host.api.post("/v1/rules", params={"inboxId": inbox_id}, json=rule)
    raw = raw_mail("One chair", subject="Order", **{"from": carol}, message_id="<o@there.example>")
    await host.deliver_to(raw, f"billing@{OURS}", carol)
    await received(host, inbox_id, 1)
    path = f"/v0/inboxes/support@{OURS}/messages/%3Co%40there.example%3E/reply"
    answered = await host.api.post(path, json={"text": "On its way"})
    assert answered.status_code == 200, answered.text
    await until(lambda: len(peer.mails) >= 7)
    assert [each.raw for each in peer.mails if f"From: billing@{OURS}".encode() not in each.raw] == []
    assert any(f"ORGANIZER:mailto:billing@{OURS}".encode() in each.raw for each in peer.mails)
    assert more["fromAddr"] == f"billing@{OURS}"


@pytest.mark.sqlite_alone
async def test_an_email_is_written_in_the_name_of_an_alias_on_the_pages(host: Server) -> None:
    inbox_id = await inbox_of(host, "support")
    await add(host, inbox_id, f"billing@{OURS}")
    mail = {"once": "1", "inboxId": f"{inbox_id} billing@{OURS}", "subject": "Hi", "body": "Hi"}
    chosen = f'value="{inbox_id} billing@{OURS}" selected'
    async with signed_in(host) as page:
        offered = (await page.get(f"/app/compose?inboxId={inbox_id}")).text
        assert f'value="{inbox_id} billing@{OURS}"' in offered
        assert chosen not in offered
        refused = await page.post("/app/compose", data={**mail, "to": "nobody"})
        assert (refused.status_code, chosen in refused.text) == (400, True)
        strange = await page.post(
            "/app/compose", data={**mail, "inboxId": f"{inbox_id} ceo@{OURS}", "to": "a@b.example"}
        )
        assert (strange.status_code, "fromAddress must be" in strange.text) == (400, True)
        for action in ("send", "draft"):
            sent = await page.post(
                "/app/compose", data={**mail, "to": "carol@there.example", "action": action}
            )
            assert sent.status_code == 303, sent.text
        strange = await page.post(
            "/app/compose",
            data={**mail, "inboxId": f"{inbox_id} ceo@{OURS}", "to": "a@b.example", "action": "draft"},
        )
        assert (strange.status_code, "fromAddress must be" in strange.text) == (400, True)
    (message,) = (await host.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    assert message["fromAddr"] == f"billing@{OURS}"
    (draft,) = (await host.api.get(f"/v1/inboxes/{inbox_id}/drafts")).json()["data"]
    assert draft["fromAddress"] == f"billing@{OURS}"
    async with signed_in(host) as page:
        undone = await page.post(f"/app/messages/{message['id']}/undo")
        assert undone.status_code == 303, undone.text
    again = (await host.api.get(f"/v1/inboxes/{inbox_id}/drafts")).json()["data"]
    assert [each["fromAddress"] for each in again] == [f"billing@{OURS}"] * 2


@pytest.mark.sqlite_alone
async def test_a_catch_all_takes_what_nobody_has(host: Server) -> None:
    named, all_else = await inbox_of(host, "named"), await inbox_of(host, "other", catchAll=True)
    wanted = (f"named@{OURS}", f"any.thing+tag@{OURS}", f"x@{OURS}", f"dmarc@{OURS}", f"any@below.{OURS}")
    codes = await asyncio.to_thread(accepted, host, *wanted)
    assert list(codes.values()) == [250, 250, 250, 250, 550]
    (caught,) = await received(host, all_else, 1)
    assert caught["deliveredTo"] == f"any.thing@{OURS}", "of several the first"
    assert len(await received(host, named, 1)) == 1
    second = await host.api.patch(f"/v1/inboxes/{named}", json={"catchAll": True})
    assert await said(second) == (409, "catch_all_taken")
    person = await host.api.post("/v1/users", json={"email": f"boss@{OURS}", "role": "viewer"})
    assert await said(person) == (409, "address_is_an_inbox")
    changed = await host.api.patch(f"/v1/inboxes/{all_else}", json={"catchAll": False})
    assert changed.json()["catchAll"] is False
    assert (await host.api.patch(f"/v1/inboxes/{named}", json={"catchAll": True})).json()["catchAll"]


@pytest.mark.sqlite_alone
async def test_a_catch_all_needs_a_domain_of_ones_own_without_people(host: Server) -> None:
    account_id, stranger = await stranger_of(host)
    async with stranger:
        shared = await stranger.post("/v1/inboxes", json={"mailboxName": "mine", "catchAll": True})
        assert (shared.status_code, shared.json()["field"]) == (400, "catchAll")
        await host.resources.db.write(own, account_id, f"deep.{OURS}", host.clock.now())
        theirs = await stranger.post("/v1/inboxes", json={"mailboxName": "mine", "domain": f"deep.{OURS}"})
        assert theirs.status_code == 201
    await host.resources.db.write(note_person, account_id, f"boss@{OURS}", host.clock.now())
    refused = await host.api.post(
        "/v1/inboxes", json={"mailboxName": "all", "domain": OURS, "catchAll": True}
    )
    assert await said(refused) == (409, "address_is_an_inbox")
    inbox_id = await inbox_of(host, "support", subdomains=True)
    wanted = (f"support@deep.{OURS}", f"support@deeper.deep.{OURS}", f"support@other.{OURS}")
    codes = await asyncio.to_thread(accepted, host, *wanted)
    assert list(codes.values()) == [550, 550, 250], "the next domain above it decides"
    assert len(await received(host, inbox_id, 1)) == 1


def note_person(tx: Tx, account_id: str, email: str, now: int) -> None:
    from postroom.accounts.people import users
    from postroom.external_mailboxes import address_uses

    user = users.add(tx, account_id, email, "Boss", "viewer", [], "active", now)
    address_uses.record(tx, account_id, user.id, [email])


async def test_subdomains_take_mail_and_send_with_the_key_above(host: Server, peer: SmtpPeer) -> None:
    inbox_id = await inbox_of(host, "support", subdomains=True)
    sub = f"customer-1.{OURS}"
    codes = await asyncio.to_thread(accepted, host, f"support@{sub}", f"other@{sub}", f"support@not{OURS}")
    assert list(codes.values()) == [250, 550, 550]
    assert (await received(host, inbox_id, 1))[0]["deliveredTo"] == f"support@{sub}"
    assert await said(await add(host, inbox_id, f"me@{sub}")) == (400, "invalid_mailbox_name")
    assert await said(await add(host, inbox_id, f"mine@{sub}")) == (400, "invalid_domain")
    domain_id = (await host.api.get("/v1/domains")).json()["data"][1]["id"]
    opened = (await host.api.patch(f"/v1/domains/{domain_id}", json={"subdomains": True})).json()
    assert opened["subdomains"]
    assert f"*.{OURS}" in [each["name"] for each in opened["records"]]
    assert (await add(host, inbox_id, f"mine@{sub}")).status_code == 201
    own_inbox = await inbox_of(host, "tenant", sub)
    for sender, fields in ((inbox_id, {"fromAddress": f"mine@{sub}"}), (own_inbox, {})):
        message = await settled(host, await send(host, sender, "carol@there.example", **fields))
        assert message["status"] == "sent"
    account_id = (await host.api.get("/v1/me")).json()["accountId"]
    for mail in peer.mails:
        assert f"@{sub}".encode() in mail.raw
        assert f"d={OURS};".encode() in mail.raw
        assert await is_signed(host, mail.raw, OURS, owner=account_id)
        assert mail.mail_line.split(b">")[0].endswith(f"@{OURS}".encode()), "SPF is that of the domain"
    closed = await host.api.patch(f"/v1/domains/{domain_id}", json={"subdomains": False})
    assert await said(closed) == (409, "domain_taken")
    other_id, _ = await stranger_of(host)
    refused = await host.resources.db.write(try_to_own, other_id, sub, host.clock.now())
    assert "below its domain" in refused
    by_v0 = await host.api.patch(f"/v0/domains/{domain_id}", json={"subdomains_enabled": True})
    assert by_v0.json()["subdomains_enabled"] is True, by_v0.text


def try_to_own(tx: Tx, account_id: str, name: str, now: int) -> str:
    try:
        own(tx, account_id, name, now)
    except DomainTaken as error:
        return error.message
    return ""


async def test_mail_to_postmaster_and_abuse_goes_to_the_operator(host: Server) -> None:
    wanted = (f"postmaster@{HOME}", "postmaster", f"abuse@{OURS}")
    assert set((await asyncio.to_thread(accepted, host, *wanted)).values()) == {550}, "there is no inbox"
    first = await inbox_of(host, "first", HOME)
    await inbox_of(host, "second", catchAll=True)
    codes = await asyncio.to_thread(accepted, host, *wanted)
    assert set(codes.values()) == {250}
    (message,) = await received(host, first, 1)
    assert message["deliveredTo"] == f"postmaster@{HOME}"
    _, stranger = await stranger_of(host)
    async with stranger:
        refused = await stranger.post("/v1/inboxes", json={"mailboxName": "postmaster"})
        assert refused.json()["error"] == "address_taken"


@pytest.mark.sqlite_alone
async def test_the_page_of_an_inbox_has_its_addresses(host: Server) -> None:
    inbox_id = await inbox_of(host, "support")
    path = f"/app/inboxes/{inbox_id}"
    async with signed_in(host) as page:
        added = await page.post(f"{path}/aliases", data={"address": f"billing@{OURS}"})
        assert added.status_code == 303, added.text
        assert (await page.post(f"{path}/addresses", data={"catchAll": "true"})).status_code == 303
        shown = (await page.get(path)).text
        assert f"billing@{OURS}" in shown
        assert 'name="catchAll" value="true" checked' in shown
        refused = await page.post(f"{path}/aliases", data={"address": f"billing@{OURS}"})
        assert "is already in use" in refused.text
        removed = await page.post(f"{path}/aliases/delete", data={"address": f"billing@{OURS}"})
        assert removed.status_code == 303
    assert (await host.api.get(f"/v1/inboxes/{inbox_id}/aliases")).json()["total"] == 0
    shown_inbox = (await host.api.get(f"/v1/inboxes/{inbox_id}")).json()
    assert (shown_inbox["catchAll"], shown_inbox["subdomains"]) == (True, False)
