"""The command line of a person in charge: drafts, what waits and why, the decision, and the pause."""

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from postroom_client import AsyncClient, profiles
from postroom_client.errors import ContentChanged, Forbidden, NotFound, NotHeld
from postroom_client.results import ApprovalRules, Budget, OverPerDay
from tests.api.test_send import first_message
from tests.client.live import LiveServer, Shell
from tests.conftest import Server, until_somebody_listens
from tests.outward.test_holds import EVERYTHING, add_key, set_rule
from tests.outward.test_origin_guard import IBAN, lured

pytestmark = pytest.mark.sqlite_alone  # a client speaks to no database

TRICK = "Ten\x1b[2J\x1b[1A\u202eevil\u200b"


class Person:
    """Types commands, with a key of his own."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def run(self, *arguments: str) -> Result:
        return await asyncio.to_thread(self._shell.run, *arguments)

    async def json(self, *arguments: str) -> Any:
        result = await self.run(*arguments)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    async def human(self, *arguments: str) -> str:
        result = await self.run(*arguments, "--no-json")
        assert result.exit_code == 0, result.output
        return result.stdout + result.stderr


@pytest.fixture
async def person(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    for name in ("API_KEY", "BASE_URL", "INBOX_ID", "PROFILE"):
        monkeypatch.delenv(f"POSTROOM_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    await server.new_inbox("carol")
    token = await server.resources.db.write(add_key, server, None, EVERYTHING)
    profiles.save_local(server.base_url, token)
    return Person(Shell(LiveServer(server.base_url, server.smtp_port), tmp_path / "config"))


@pytest.fixture
async def bob(server: Server) -> str:
    """An inbox whose every send waits."""
    inbox_id = await server.new_inbox("bob")
    await server.resources.db.write(set_rule, "inboxes", inbox_id, "always", "attachments")
    return inbox_id


async def send(server: Server, inbox_id: str, **fields: Any) -> dict[str, Any]:
    body = {"to": "carol@postroom.localhost", "subject": "Offer", "body": "Seven", **fields}
    key = {"Idempotency-Key": "-".join(sorted(fields)) or "plain"}
    answer = await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers=key)
    assert answer.status_code == 200, answer.text
    message: dict[str, Any] = (await server.api.get(f"/v1/messages/{answer.json()['id']}")).json()
    return message


async def until(check: Callable[[], Any], wanted: Any) -> None:
    while await check() != wanted:
        await asyncio.sleep(0.05)


async def test_what_waits_is_shown_whole_with_its_reasons_and_cannot_touch_the_screen(
    server: Server, person: Person, bob: str
) -> None:
    file = {"filename": "a.txt", "contentType": "text/plain", "data": "YQ=="}
    message = await send(
        server,
        bob,
        body=TRICK,
        bodyHtml="<p>Ten</p>\x1b]0;title\x07",
        bcc="dave@example.com",
        headers={"X-Order": "größe"},
        attachments=[file],
    )
    listed = await person.human("approvals", "list")
    assert message["id"] in listed
    assert "always, attachments" in listed
    shown = await person.human("approvals", "show", message["id"])
    for part in ("it carries files", "dave@example.com", "a.txt (1 B)", "größe", "<p>Ten</p>", "Offer"):
        assert part in shown, part
    assert message["hold"]["contentHash"] in shown
    assert not {"\x1b", "\u202e", "\u200b", "\x07"} & set(shown)
    assert (await person.json("approvals", "show", message["id"]))["hold"]["state"] == "held"


async def test_a_redirect_is_shown_with_all_that_is_sent(server: Server, person: Person, bob: str) -> None:
    """It keeps its bytes, and with them fields and alternatives that no mail written here has."""
    raw = (
        b"From: Ann <ann@example.com>\r\nTo: bob@postroom.localhost\r\nSubject: Offer\r\n"
        b"List-Help: <https://collect.example/help>\r\nMIME-Version: 1.0\r\n"
        b"Content-Type: multipart/alternative; boundary=b\r\n\r\n"
        b"--b\r\n\r\nThe first \x1b[2Jalternative\r\n"
        b"--b\r\nContent-Type: text/plain; charset=nobody-knows\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        + base64.encodebytes(b"An encoded alternative, longer than one line of sixty letters: pay 500")
        .strip()
        .replace(b"\n", b"\r\n")
        + b"\r\n--b\r\n\r\nThe last alternative\r\n--b--\r\n"
    )
    await server.deliver(raw, "bob", sender="ann@example.com")
    received = await first_message(server, bob)
    path, body = f"/v1/messages/{received['id']}/redirect", {"to": "carol@postroom.localhost"}
    answer = await server.api.post(path, json=body, headers={"Idempotency-Key": "1"})
    assert answer.status_code == 200, answer.text
    shown = await person.human("approvals", "show", answer.json()["id"])
    for part in ("redirected as it came", "https://collect.example/help", "The first", "pay 500", "The last"):
        assert part in shown, part
    assert "\x1b" not in shown


async def test_approved_it_leaves_and_rejected_it_never_does(
    server: Server, person: Person, bob: str
) -> None:
    first, second = await send(server, bob), await send(server, bob, cc="carol@postroom.localhost")
    assert (await person.run("approvals", "approve", first["id"])).exit_code == 2  # nobody to ask
    wrong = await person.run("approvals", "approve", first["id"], "--content-hash", "0" * 64)
    assert "content_changed" in wrong.output
    async with AsyncClient(server.token, server.base_url) as client, asyncio.TaskGroup() as group:
        assert (await client.wait_for_decision(first["id"], timeout=0.01)).status == "pending"
        waiting = group.create_task(client.wait_for_decision(first["id"]))
        await until_somebody_listens(server)
        done = await person.json("approvals", "approve", first["id"], "--yes", "--note", "fine")
        assert done["hold"]["state"] == "approved"
    decided = waiting.result().hold
    assert decided is not None
    assert decided.state == "approved"
    assert (await person.json("messages", "get", first["id"], "--wait", "60"))["status"] == "sent"
    refused = await person.human("approvals", "reject", second["id"], "--note", "too early")
    assert "rejected" in refused
    again = await person.run("approvals", "reject", second["id"])
    assert (again.exit_code, "not_held" in again.output) == (1, True)
    assert (await person.json("approvals", "list"))["total"] == 0
    rejected = await person.json("approvals", "list", "--state", "rejected")
    assert [each["hold"]["note"] for each in rejected["data"]] == ["too early"]


async def test_a_pause_holds_and_its_end_releases(server: Server, person: Person) -> None:
    inbox_id = await server.new_inbox("dora")
    assert "not paused" in await person.human("pause", "--show")
    assert (await person.json("pause", "--inbox-id", inbox_id))["paused"]
    message = await send(server, inbox_id)
    assert message["hold"]["reasons"] == ["paused"]
    assert "paused" in await person.human("pause", "--show", "--inbox-id", inbox_id)
    assert not (await person.json("resume", "--inbox-id", inbox_id))["paused"]

    async def status() -> str:
        found: str = (await server.api.get(f"/v1/messages/{message['id']}")).json()["status"]
        return found

    await until(status, "sent")
    assert (await person.run("pause", "--inbox-id", "inb_unknown")).exit_code == 1


async def test_drafts_are_written_changed_and_sent(server: Server, person: Person, bob: str) -> None:
    Path("note.txt").write_text("words")
    made = await person.json(
        *("drafts", "create", "--inbox-id", bob, "--to", "carol@postroom.localhost"),
        *("--metadata", "run=1", "--header", "X-Order: 7"),
    )
    assert (made["metadata"], made["headers"]) == ({"run": "1"}, {"X-Order": "7"})
    changed = await person.human(
        "drafts", "change", made["id"], "--subject", "Offer", "--body", "Seven\x1b[2J"
    )
    assert "Seven\\x1b[2J" in changed
    assert "note.txt" in await person.human("drafts", "attach", made["id"], "note.txt")
    await person.human("drafts", "detach", made["id"], "note.txt")
    assert made["id"] in await person.human("drafts", "list", "--inbox-id", bob)
    sent = await person.human("drafts", "send", made["id"])
    assert "only after approval" in sent
    assert "No drafts here" in await person.human("drafts", "list", "--inbox-id", bob)
    gone = await person.json("drafts", "create", "--inbox-id", bob)
    await person.human("drafts", "delete", gone["id"])
    assert (await person.run("drafts", "show", gone["id"])).exit_code == 1


async def test_send_takes_the_new_ways(server: Server, person: Person) -> None:
    inbox_id = await server.new_inbox("erin")
    to = ("--to", "carol@postroom.localhost", "--body", "x", "--inbox-id", inbox_id)
    later = await person.json("send", *to, "--subject", "s", "--send-at", "2026-11-20T10:00:00Z")
    assert later["hold"]["sendAt"] == "2026-11-20T10:00:00.000Z"
    undo = await person.human("send", *to, "--subject", "s", "--undo", "60")
    assert "until 20" in undo
    raw = b"From: a@example.com\r\nTo: erin@postroom.localhost, f@example.com\r\nSubject: Q\r\n\r\nHi\r\n"
    await server.deliver(raw, "erin")
    event: dict[str, Any] = {}
    while event.get("event") != "message.received":
        event = await server.next_event(event.get("event_id"))
    on = await person.json("send", *to, "--forward", event["message"]["id"])
    assert (await person.json("messages", "get", on["id"]))["subject"] == "Fwd: Q"
    for words in (("reply", event["thread_id"]), ("send", "--reply-all", "--thread-id", event["thread_id"])):
        extra = () if words[0] == "send" else ("--reply-all",)
        place = ("--inbox-id", inbox_id) if words[0] == "send" else ()
        answer = await person.json(*words, *extra, "--body", "yes", *place)
        message = await person.json("messages", "get", answer["id"])
        assert (message["headerTo"], message["cc"]) == ("a@example.com", ["f@example.com"])
    for wrong in (
        ("send", "--body", "x", "--subject", "s"),
        ("send", "--body", "x", "--reply-all", "--subject", "s"),
        ("send", *to, "--subject", "s", "--header", "X-A"),
        ("send", *to, "--subject", "s", "--metadata", "a=1", "--metadata", "a=2"),
        ("send", *to, "--subject", "s", "--undo", "500"),
    ):
        assert (await person.run(*wrong)).exit_code == 2, wrong


async def test_invitations_leave_and_are_answered(server: Server, person: Person) -> None:
    erin, dora = await server.new_inbox("erin"), await server.new_inbox("dora")
    when = '{"summary": "Review", "start": "2027-01-20", "end": "2027-01-21"}'
    mail = ("--to", "dora@postroom.localhost", "--subject", "Review", "--body", "Come")
    await person.json("send", "--inbox-id", erin, *mail, "--calendar", when)
    invited = await first_message(server, dora)
    assert invited["calendar"]["allDay"] is True
    sent = await person.json("messages", "respond", invited["id"], "accepted", "--comment", "Gladly")
    assert (await person.json("messages", "get", sent["id"]))["replyText"] == "Gladly"
    refused = await person.run("send", "--inbox-id", erin, *mail, "--calendar", "[1]")
    assert (refused.exit_code, "object of JSON" in refused.output) == (2, True)
    async with AsyncClient(server.token, server.base_url) as client:
        again = await client.respond_to_invitation(invited["id"], "declined")
        assert (await client.get_message(again.id)).subject == "Declined: Review"


async def test_a_budget_is_set_shown_used_and_cleared(server: Server, person: Person) -> None:
    inbox = ("--inbox-id", await server.new_inbox("erin"))
    key = ("--key-id", (await person.json("keys", "create"))["id"])
    assert (await person.json("budget", "set", "--per-day", "1", *inbox))["limits"]["perDay"] == 1
    mail = ("--to", "a@example.com", "--subject", "s", "--body", "b")
    await person.json("send", *mail, *inbox)
    assert (await person.run("send", *mail, *inbox)).exit_code == 5
    assert (await person.json("budget", "show", *inbox))["perDay"]["used"] == 1
    assert "new recipients per day" in await person.human("budget", "show", *inbox)
    assert "the server's limit" in await person.human("budget", "set", "--per-minute", "2", *key)
    assert (await person.json("budget", "clear", *key))["limits"] is None
    assert (await person.json("budget", "clear", *inbox))["limits"] is None
    for wrong in (("set", *inbox), ("set", "--per-day", "1"), ("clear", *inbox, *key)):
        assert (await person.run("budget", *wrong)).exit_code == 2, wrong
    assert "must be 0 to" in (await person.run("budget", "set", "--per-day", "100000", *inbox)).output


async def test_the_library_decides_too(server: Server, bob: str) -> None:
    token = await server.resources.db.write(add_key, server, None, EVERYTHING)
    async with (
        AsyncClient(server.token, server.base_url) as sender,
        AsyncClient(token, server.base_url) as person,
    ):
        draft = await sender.create_draft(bob, to="dave@example.com", subject="s", body="b")
        draft = await sender.update_draft(draft.id, cc=["erin@example.com"], subject=None)
        assert (draft.cc, draft.subject) == (["erin@example.com"], None)
        draft = await sender.update_draft(draft.id, subject="s", undo_seconds=5)
        sent = await sender.send_draft(draft.id)
        assert sent.hold is not None
        [waiting] = (await person.list_approvals(inbox_id=bob)).data
        assert waiting.message.id == sent.id
        with pytest.raises(Forbidden):
            await sender.approve_message(sent.id, sent.hold.content_hash)
        with pytest.raises(ContentChanged):
            await person.approve_message(sent.id, "0" * 64)
        approved = await person.approve_message(sent.id, waiting.hold.content_hash)
        assert approved.hold is not None
        with pytest.raises(NotHeld):
            await person.reject_message(sent.id)
        assert (await person.get_inbox_limits(bob)).per_minute.used == 1
        assert not (await person.get_pause()).paused


async def test_the_library_changes_rules_budgets_policies_and_keys(server: Server, bob: str) -> None:
    async with AsyncClient(server.token, server.base_url) as client:
        asked = ApprovalRules(["links", OverPerDay(3)], reviewers=["ann@example.com"])
        assert (await client.update_account(approval=asked)).approval == asked
        assert (await client.get_account()).approval == asked
        assert (await client.update_inbox(bob, limits=Budget(per_day=7))).limits == Budget(per_day=7)
        assert (await client.update_inbox(bob, approval=asked)).approval == asked
        assert (await client.update_inbox(bob, approval=None)).approval is None
        key = await client.create_api_key(bob, permissions=["read"])
        await client.update_key(key.id, limits={"perMinute": 1}, approval={"when": ["always"]})
        found = await client.get_key(key.id)
        assert (found.limits, found.permissions) == (Budget(per_minute=1), ["read"])
        assert (await client.update_key(key.id, expires_at="2100-01-01T00:00:00Z")).expires_at is not None
        changed = await client.set_policy(
            inbound={"mode": "allowlist", "rules": [{"type": "allow", "value": "example.com"}]}, inbox_id=bob
        )
        assert [rule.value for rule in changed.inbound.rules] == ["example.com"]
        assert changed.outbound.mode == "inherit"
        assert [entry.action async for entry in client.iter_audit(action="policy.changed")] == [
            "policy.changed"
        ]
        assert (await client.list_policy_audit(since="2026-01-01T00:00:00Z")).total == 0
        with pytest.raises(NotFound):
            await client.delete_thread("thr_1")


async def test_a_person_sees_which_value_came_from_whom(server: Server, person: Person) -> None:
    bob = await lured(server, "hold")
    bait = await first_message(server, bob)
    mail = ("--inbox-id", bob, "--to", "dan@example.org", "--subject", "Hi", "--body", f"Pay to {IBAN}")
    told = await person.human("send", *mail)
    [waiting] = (await person.json("approvals", "list"))["data"]
    shown = await person.human("approvals", "show", waiting["message"]["id"])
    for said in (told, shown):
        assert f"{IBAN.replace(' ', '')} (iban) of {bait['id']}" in said
    [entry] = (await server.api.get("/v1/audit?action=origin.found")).json()["data"]
    assert (entry["address"], bool(entry["userAgent"])) == ("127.0.0.1", True)
