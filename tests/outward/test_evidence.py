"""Evidence: the audit log is a chain that anyone can check; a receipt proves what was sent."""

import asyncio
import base64
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec.structs import replace

from postroom.accounts import accounts, audit, audit_chain, signing_keys
from postroom.accounts.actors import KEY, Actor
from postroom.accounts.scope import Scope
from postroom.clock import DAY, HOUR, MINUTE
from postroom.commands.audit import verify
from postroom.storage.database import Database, Tx
from postroom.storage.opening import open_database
from postroom.upkeep import keep_evidence
from postroom.upkeep.verification.audit_files import AuditLog, bring_together
from tests import warm_start
from tests.api.test_dashboard import browser
from tests.api.test_people import invite, links_of
from tests.conftest import Server, settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.outbound import settled
from tests.outward.test_four_eyes import approve, send
from tests.samples import samples

AGENT = Actor(KEY, "key_1", "agent")


def canonical(value: object) -> bytes:
    """As the documents describe it, without the server's code."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def require_signed(shown: dict[str, Any], keys: dict[str, Any]) -> None:
    content = {name: value for name, value in shown.items() if name != "signature"}
    [key] = [each for each in keys["keys"] if each["keyId"] == shown["keyId"]]
    assert key["algorithm"] == "Ed25519"
    public, signature = (
        base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        for text in (key["publicKey"], shown["signature"])
    )
    Ed25519PublicKey.from_public_bytes(public).verify(signature, canonical(content))


@pytest.mark.sqlite_alone
async def test_a_receipt_says_who_decided_how_and_what_left(sender: Server, peer: SmtpPeer) -> None:
    inbox_id = await sender.new_inbox("proven")
    await sender.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["always"]}})
    sent = await send(sender.api, inbox_id)
    await invite(sender, "ann@example.org", "approver")
    async with browser(sender) as page:
        token = (await links_of(sender, "invitation"))[-1]
        assert (await page.post("/app/sign-in", data={"invitation": token, "name": "Ann"})).status_code == 303
        assert (await approve(page, sent)).status_code == 303
    assert (await settled(sender, sent["id"]))["status"] == "sent"
    [left] = [mail for mail in peer.mails if b"Subject: Hello" in mail.raw]
    receipt = (await sender.api.get(f"/v1/messages/{sent['id']}/receipt")).json()
    keys = (await sender.api.get("/.well-known/postroom-keys.json")).json()
    require_signed(receipt, keys)
    assert receipt["content"]["contentHash"] == sent["hold"]["contentHash"]
    [decision] = receipt["decisions"]
    assert (decision["action"], decision["actor"]["name"], decision["method"]) == (
        "message.approved",
        "Ann",
        "link",
    )
    assert decision["contentHash"] == sent["hold"]["contentHash"]
    assert (decision["rendering"], decision["address"]) == (1, "127.0.0.1")
    [delivery] = receipt["deliveries"]
    assert delivery["sha256"] == hashlib.sha256(left.raw).hexdigest()
    assert delivery["recipient"] == "bob@there.example"
    assert f"<{delivery['mailFrom']}>".encode() in left.mail_line
    entries = (await sender.api.get("/v1/audit?limit=100")).json()["data"]
    [entry] = [each for each in entries if each["id"] == decision["entryId"]]
    assert entry["hash"] == decision["entryHash"]
    await checked_with_the_log(sender, receipt)
    received = await sender.api.get(f"/v1/messages/msg_{'0' * 32}/receipt")
    assert received.status_code == 404


async def checked_with_the_log(sender: Server, receipt: dict[str, Any]) -> None:
    """A receipt names entries of the log, and says what they say, also if the database was changed since."""
    paths = ("/v1/audit?limit=100", "/v1/audit/head", "/.well-known/postroom-keys.json")
    answers = [(await sender.api.get(path)).content for path in paths]

    def what_is_found(*shown: dict[str, Any]) -> list[str]:
        log, kept = AuditLog(), AuditLog()
        for answer in answers:
            log.read(answer)
        for each in shown:
            kept.read(json.dumps(each).encode())
        return [found.what for each in bring_together([log, kept]) for found in each.verify()]

    assert what_is_found(receipt) == []
    assert what_is_found({**receipt, "issuedAt": "2020-01-01T00:00:00.000Z"}) == [
        "changed: its signature does not match"
    ]
    [decision] = receipt["decisions"]
    for changed in ({"address": "192.0.2.1"}, {"entryHash": "0"}):
        entry_id = decision["entryId"]
        assert f"changed: the entry {entry_id} says something else" in what_is_found(
            {**receipt, "decisions": [{**decision, **changed}]}
        )


@pytest.mark.sqlite_alone
async def test_anyone_can_check_the_log_with_what_the_server_shows(server: Server) -> None:
    for name in ("one", "two", "three"):
        await server.new_inbox(name)
    head = (await server.api.get("/v1/audit/head")).json()
    page = (await server.api.get("/v1/audit?limit=100")).json()
    entries = sorted(page["data"], key=lambda entry: entry["sequence"])
    before = ""
    for number, entry in enumerate(entries, 1):
        assert (entry["sequence"], entry["previousHash"]) == (number, before)
        before = entry.pop("hash")
        assert hashlib.sha256(canonical(entry)).hexdigest() == before
    assert (head["count"], head["hash"]) == (len(entries), before)
    require_signed(head, (await server.api.get("/.well-known/postroom-keys.json")).json())
    made = await server.api.post("/v1/inboxes/" + (await server.new_inbox("agent")) + "/api-keys", json={})
    async with server.client(made.json()["token"]) as agent:
        assert (await agent.get("/v1/audit/head")).status_code == 403


async def new_account(db: Database) -> str:
    def add(tx: Tx) -> str:
        signing_keys.keep_current(tx, 1)
        return accounts.add(tx, "proven", "free", 1).id

    return await db.write(add)


def decide(tx: Tx, account_id: str, number: int) -> None:
    audit.record(tx, AGENT, "pod.created", f"pod {number}", Scope(account_id), number, after={"n": number})


async def exported(db: Database, now: int) -> list[dict[str, Any]]:
    export = await db.read(keep_evidence.next_export, now)
    assert export is not None
    return [json.loads(line) for line in export.content.splitlines()]


def findings(lines: list[dict[str, Any]]) -> list[str]:
    log = AuditLog()
    log.read(b"\n".join(json.dumps(line).encode() for line in lines))
    return [f"{each.id} {each.what}" for each in log.verify()]


async def test_entries_that_nodes_write_together_make_one_chain(
    db: Database, database_url: str, tmp_path: Path
) -> None:
    """On SQLite there is one node; on PostgreSQL the second one has connections of its own."""
    account_id = await new_account(db)
    other = await open_database(settings(tmp_path, DATABASE_URL=database_url), 1) if database_url else db
    nodes = [db, other]
    await asyncio.gather(*(nodes[number % 2].write(decide, account_id, number) for number in range(40)))
    if other is not db:
        await other.close()
    lines = await exported(db, DAY)
    assert findings(lines) == []
    assert [line["entry"]["sequence"] for line in lines if "entry" in line] == [*range(1, 41)]


@pytest.mark.sqlite_alone
async def test_what_was_changed_removed_or_swapped_is_named(db: Database) -> None:
    account_id = await new_account(db)
    for number in range(5):
        await db.write(decide, account_id, number)
    lines = await exported(db, DAY)
    entries = [line for line in lines if "entry" in line]
    others = [line for line in lines if "entry" not in line]
    third = entries[2]["entry"]
    changed = {"entry": {**third, "target": "pod 9"}}
    again = {name: value for name, value in changed["entry"].items() if name != "hash"}
    rehashed = {"entry": {**again, "hash": hashlib.sha256(canonical(again)).hexdigest()}}
    swapped = [{"entry": {**entries[at]["entry"], "sequence": at_of}} for at, at_of in ((1, 3), (2, 2))]
    ids = [line["entry"]["id"] for line in entries]
    assert findings(lines) == []
    cases: list[tuple[list[dict[str, Any]], str]] = [
        ([*entries[:2], changed, *entries[3:], *others], f"{ids[2]} changed: its hash"),
        ([*entries[:2], rehashed, *entries[3:], *others], f"{ids[3]} changed or swapped"),
        ([*entries[:2], *entries[3:], *others], f"{ids[3]} removed: entry 3 is missing"),
        ([entries[0], *swapped, *entries[3:], *others], f"{ids[1]} changed"),
        ([*entries[:4], *others], "head 5 removed"),
        ([*entries, *[each for each in others if "key" not in each]], "head 5 the key"),
        ([*entries, *others, {"head": {**others[-1]["head"], "count": 4}}], "head 4 changed"),
        ([*entries, *others, {"head": {**others[-1]["head"], "accountId": "acc_1"}}], "head 5 swapped"),
        ([*entries, *others, {"key": {**others[0]["key"], "publicKey": "AAAA"}}], others[0]["key"]["keyId"]),
    ]
    for tried, expected in cases:
        assert any(found.startswith(expected) for found in findings(tried)), (expected, findings(tried))


@pytest.mark.sqlite_alone
async def test_a_change_of_any_field_of_any_line_shows(db: Database) -> None:
    """Also a line that is added, removed, or cut off at the end where a head was kept elsewhere."""
    account_id = await new_account(db)
    for number in range(4):
        await db.write(decide, account_id, number)
    lines = await exported(db, DAY)
    head = lines[-1]
    assert "head" in head
    unseen = []
    for at, line in enumerate(lines):
        ((kind, fields),) = line.items()
        for name, value in fields.items():
            other = value + 1 if isinstance(value, int) else f"{value}x"
            tried = [*lines[:at], {kind: {**fields, name: other}}, *lines[at + 1 :]]
            if kind != "key" and not findings(tried):
                unseen.append(f"{kind} {at}: {name}")
        if kind == "key":
            continue
        is_first = fields.get("sequence") == 1  # old entries are deleted from the front
        if not is_first and line is not head and not findings([*lines[:at], *lines[at + 1 :], head]):
            unseen.append(f"{kind} {at} removed")
        if kind == "entry":
            added = {"entry": {**fields, "id": "aud_x", "target": "x"}}
            unseen += [] if findings([*lines[:at], added, *lines[at:]]) else [f"{kind} {at} added"]
    assert unseen == []


async def test_a_refusal_joins_the_chain_with_its_final_count(db: Database) -> None:
    account_id = await new_account(db)
    scope = Scope(account_id)
    for _ in range(3):
        await db.write(audit.record_refusal, AGENT, "inb_1", scope, MINUTE)
    assert await db.write(audit_chain.join_counted, 2 * MINUTE, 10) == 0
    later = 4 * MINUTE
    assert await db.write(audit_chain.join_counted, later, 10) == 1
    await db.write(audit.record_refusal, AGENT, "inb_1", scope, MINUTE)  # by a node whose clock is behind
    lines = await exported(db, later + DAY)
    assert findings(lines) == []
    assert [line["entry"]["count"] for line in lines if "entry" in line] == [3]


@pytest.mark.sqlite_alone
async def test_heads_are_kept_hourly_and_the_log_is_exported_daily(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    resources = replace(server.resources, config=replace(server.resources.config, audit_export=str(folder)))
    await server.new_inbox("first")
    await keep_evidence.one_round(resources)
    await server.new_inbox("second")
    await keep_evidence.one_round(resources)  # within the hour and the day: nothing new
    assert len(sorted(folder.rglob("*.jsonl"))) == 1
    server.clock.turn(DAY + HOUR)
    await keep_evidence.one_round(resources)
    files = sorted(folder.rglob("*.jsonl"))
    assert len(files) == 2
    log = AuditLog()
    for file in files:
        log.read(file.read_bytes())
    assert log.verify() == []
    assert len(log.heads) >= 3
    names = {entry["action"] for entry in log.entries.values()}
    assert "inbox.created" in names


def test_a_log_without_its_first_entries_says_where_it_begins(tmp_path: Path) -> None:
    """Entries of more than a year are deleted from the front, so this alone is no finding."""
    first = {"sequence": 4, "previousHash": "0" * 64, "id": "aud_4"}
    whole = {**first, "hash": hashlib.sha256(canonical(first)).hexdigest()}
    (tmp_path / "a.jsonl").write_text(json.dumps({"entry": whole}) + "\n")
    done = warm_start.run(["audit", "verify", "--no-json", str(tmp_path)], dict(os.environ))
    assert done.returncode == 0
    told = " ".join(done.stderr.split())
    assert "begins with entry 4" in told
    assert "No signed head covers the entries after 0" in told


Verified = Callable[..., str]


@pytest.fixture
def verified(capsys: pytest.CaptureFixture[str]) -> Verified:
    """Return what `postroom audit verify` says; it raises what ends the command with another code."""

    def run(*files: Path, keys: Path | None = None, code: int = 0) -> str:
        try:
            verify(list(files), keys, False)
            ended = 0
        except typer.Exit as end:
            ended = end.exit_code
        assert ended == code
        return " ".join("".join(capsys.readouterr()).split())

    return run


async def test_a_head_and_keys_that_were_kept_elsewhere_show_a_log_that_was_made_anew(
    db: Database, tmp_path: Path, verified: Verified
) -> None:
    """Whoever owns the database can sign another log: the keys and heads of the files do not show that."""
    account_id = await new_account(db)
    folder, kept = tmp_path / account_id, tmp_path / "kept"
    for number in range(3):
        await db.write(decide, account_id, number)
    genuine = await exported(db, DAY)
    for place in (folder, kept):
        place.mkdir()
    keys = kept / "keys.json"
    keys.write_text(json.dumps({"keys": [line["key"] for line in genuine if "key" in line]}))
    (kept / "head.json").write_text(json.dumps(genuine[-1]["head"]))
    write(folder / "log.jsonl", genuine)
    assert "--keys" in verified(folder)
    assert "--keys" not in verified(tmp_path, kept / "head.json", keys=keys)
    write(folder / "log.jsonl", forged(genuine))
    assert "correct" in verified(folder)
    assert "is not among the keys that you trust" in verified(folder, keys=keys, code=1)
    assert "has another hash" in verified(folder, kept / "head.json", code=1)
    folder.rename(tmp_path / "acc_other")
    assert "swapped" in verified(tmp_path / "acc_other", code=1)
    for nothing in (tmp_path / "nothing", keys):
        with pytest.raises(typer.BadParameter, match=r"no audit log|cannot be read"):
            verified(nothing)


def write(file: Path, lines: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def forged(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same log with another actor, hashed and signed anew."""
    private = Ed25519PrivateKey.generate()
    public = base64.urlsafe_b64encode(private.public_key().public_bytes_raw()).rstrip(b"=").decode()
    made: list[dict[str, Any]] = [{"key": {"keyId": "sig_forged", "publicKey": public}}]
    before = ""
    for entry in (line["entry"] for line in lines if "entry" in line):
        content = {name: value for name, value in entry.items() if name != "hash"}
        content |= {"previousHash": before, "actor": {**entry["actor"], "name": "somebody else"}}
        before = hashlib.sha256(canonical(content)).hexdigest()
        made.append({"entry": {**content, "hash": before}})
    head = {**lines[-1]["head"], "hash": before, "keyId": "sig_forged"}
    del head["signature"]
    signature = base64.urlsafe_b64encode(private.sign(canonical(head))).rstrip(b"=").decode()
    return [*made, {"head": {**head, "signature": signature}}]


@pytest.mark.sqlite_alone
@samples(
    "line",
    [
        "[" * 100_000,
        "{}",
        "[1]",
        '{"entry": {"sequence": "1", "id": "aud_1", "hash": ""}}',
        '{"entry": {"sequence": true}}',
        '{"head": {"accountId": "a", "count": {}, "hash": "", "keyId": "", "signature": ""}}',
        '{"key": {"keyId": [], "publicKey": ""}}',
        '{"receipt": {"message": {}, "decisions": {}, "keyId": "", "signature": ""}}',
        "\x00",
    ],
)
def test_what_is_no_audit_log_is_refused_in_words(line: str) -> None:
    with pytest.raises(ValueError, match="a line is"):
        AuditLog().read(line.encode())
    with pytest.raises(ValueError, match="a line is"):
        AuditLog().read(f"{line}\n{line}".encode())


async def test_a_new_signing_key_takes_over_after_a_year_and_the_old_one_stays_published(
    db: Database,
) -> None:
    account_id = await new_account(db)
    await db.write(decide, account_id, 1)
    await db.write(audit_chain.sign_grown, HOUR, 10)
    now = signing_keys.USED_FOR + 2
    await asyncio.gather(*(db.write(signing_keys.keep_current, now) for _ in range(4)))
    await db.write(decide, account_id, 2)
    lines = await exported(db, now)
    assert [line["key"]["until"] is None for line in lines if "key" in line] == [False, True]
    assert len({line["head"]["keyId"] for line in lines if "head" in line}) == 2
    assert findings(lines) == []


async def test_a_clock_that_was_wrong_stops_neither_heads_nor_exports_nor_tears_the_chain(
    db: Database,
) -> None:
    account_id = await new_account(db)
    year, today = 365 * DAY, 2 * 365 * DAY
    for number in (today + DAY, 5, today, today + 2):  # ahead, at its beginning, and right
        await db.write(decide, account_id, number)
    assert await db.write(audit_chain.sign_grown, today + DAY, 10) == 1
    export = await db.read(keep_evidence.next_export, today + DAY)
    assert export is not None
    await db.write(keep_evidence.mark_exported, export, today + DAY)
    await db.write(decide, account_id, today + 3)
    assert await db.write(audit_chain.sign_grown, today + 3, 10) == 1
    assert await db.read(keep_evidence.next_export, today + 3) is not None
    assert await db.write(audit_chain.expire, today, 10) == 0, "the first entry is not old enough"
    assert await db.write(audit_chain.expire, today + DAY + 1, 2) == 2
    assert [line["entry"]["sequence"] for line in await exported(db, year * 3) if "entry" in line] == [5]
    left = await db.read(lambda tx: tx.all("select sequence from audit order by sequence"))
    assert [row["sequence"] for row in left] == [3, 4, 5]
    assert len(await db.read(audit_chain.list_heads, account_id, 0, 9)) == 2


async def test_a_log_that_was_restored_replaces_no_exported_file(db: Database) -> None:
    """It has other entries of the same numbers: both files stay, and show it."""
    account_id = await new_account(db)
    names = []
    for said in (1, 2):
        await db.write(decide, account_id, said)
        export = await db.read(keep_evidence.next_export, DAY)
        assert export is not None
        names.append(export.name)
        await db.write(forget_all, account_id)
    assert len(set(names)) == 2


def forget_all(tx: Tx, account_id: str) -> None:
    tx.run("delete from audit")
    tx.run("update accounts set audit_count = 0, audit_hash = '' where id = :id", id=account_id)
