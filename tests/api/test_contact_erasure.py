"""A contact is exported and erased: only the audit log's facts are left, and the chain verifies."""

import asyncio
import contextlib
import hashlib
import io
import json
import re
import zipfile
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from httpx2 import AsyncClient

from postroom.accounts.audit_erasure import mention_of
from postroom.accounts.scope import Scope
from postroom.clock import MINUTE, SECOND
from postroom.mailbox import jobs
from postroom.mailbox.search import index_upkeep
from postroom.operations.contacts import Contact
from postroom.queue import leader_leases, suppressions
from postroom.storage import packing
from postroom.storage.database import Tx
from postroom.upkeep import upkeep_loop
from postroom.upkeep.erasure import erase_contact, run_jobs
from postroom.upkeep.verification.audit_files import AuditLog
from postroom.web.api import contacts
from tests.api.test_keys import second_account
from tests.api.test_threads import receive
from tests.conftest import Server, api_client
from tests.outbound import send
from tests.waiting import until

ANN, BEN = "ann@example.com", "ben@example.com"
SECRET = "zebra-canary"
FILE = (
    f"From: Ann <{ANN}>\r\nTo: hello@postroom.localhost\r\nSubject: {SECRET} file\r\nMessage-ID: <f@x>\r\n"
    "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    f"--b\r\n\r\n{SECRET} text\r\n--b\r\nContent-Type: text/csv\r\n"
    f'Content-Disposition: attachment; filename="{SECRET}.csv"\r\n\r\n{SECRET},2\r\n--b--\r\n'
).encode()


async def exchange(server: Server) -> str:
    """Returns the inbox. Ann wrote with a file and was written to; Ben wrote alone, and joann is another."""
    inbox_id = await server.new_inbox("hello")
    await server.deliver(FILE, "hello")
    await until(lambda: is_known(server, ANN), "Ann's email is examined")
    await receive(server, message_id="<b@x>", **{"from": f"Ben <{BEN}>"})
    await receive(server, message_id="<j@x>", **{"from": f"jo{ANN}"})
    await send(server, inbox_id, f"{BEN}, Ann <{ANN}>", subject=f"{SECRET} offer", body=SECRET)
    draft = {"to": f"Ann <{ANN}>", "subject": SECRET, "body": SECRET}
    assert (await server.api.post(f"/v1/inboxes/{inbox_id}/drafts", json=draft)).status_code == 201
    await server.api.post("/v1/suppressions", json={"address": ANN})
    calendar = (await server.api.get(f"/v1/calendars?inboxId={inbox_id}")).json()["data"][0]["id"]
    lunch = {"calendarId": calendar, "summary": f"Lunch with {ANN}", "start": "2026-11-20"}
    made = await server.api.post("/v1/calendar-events", json={**lunch, "end": "2026-11-21", "allDay": True})
    assert made.status_code == 201, made.text
    return inbox_id


async def is_known(server: Server, address: str) -> bool:
    return (await server.api.get(f"/v1/contacts/{address}")).status_code == 200


async def erase(server: Server, address: str = ANN, api: AsyncClient | None = None) -> dict[str, Any]:
    """Returns the job when it is over."""
    answer = await (api or server.api).delete(f"/v1/contacts/{address}")
    assert answer.status_code == 202, answer.text
    return await finished(server, answer.json()["jobId"])


async def finished(server: Server, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def is_over() -> bool:
        found.update((await server.api.get(f"/v1/jobs/{job_id}")).json())
        return bool(found["state"] == "done")

    await until(is_over, "the job is done")
    return found


def tables_with_her(tx: Tx) -> set[str]:
    """Tables with a row that holds her address or the canary anywhere, also compressed."""
    pattern = re.compile(f"{mention_of(ANN).pattern}|{SECRET}")
    names = [row["name"] for row in tx.all("select name from sqlite_master where type = 'table'")]
    return {
        table
        for table in names
        for row in tx.tuples(f"select * from {table}")
        if any(pattern.search(text_of(value)) for value in row)
    }


def text_of(value: object) -> str:
    if not isinstance(value, bytes):
        return str(value)
    plain = b""
    with contextlib.suppress(packing.NotPacked):
        plain = packing.unpack(value)
    return (value + plain).decode(errors="replace")


async def left_of(server: Server) -> set[str]:
    return await server.resources.db.read(tables_with_her)


async def chain_of(server: Server) -> AuditLog:
    log = AuditLog()
    for path in ("/v1/audit?limit=100", "/v1/audit/head", "/.well-known/postroom-keys.json"):
        log.read((await server.api.get(path)).content)
    return log


@pytest.mark.sqlite_alone
async def test_all_of_a_contact_is_erased_but_the_facts_of_the_audit_log(server: Server) -> None:
    inbox_id = await exchange(server)
    before = await chain_of(server)
    job = await erase(server)
    assert job["done"] == job["total"] > 0
    counts = {name: job["result"][name] for name in ("messages", "files", "drafts", "contacts", "kept")}
    assert counts == {"messages": 2, "files": 1, "drafts": 1, "contacts": 1, "kept": 0}
    assert job["result"]["calendarEvents"] == job["result"]["suppressions"] == 1
    assert job["result"]["events"] >= 2
    assert (await server.api.get(f"/v1/contacts/{ANN}")).status_code == 404
    assert (await server.api.get(f"/v1/search?q={SECRET}")).json()["data"] == []
    subjects = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()
    assert subjects["total"] == 2, "those of others stay"
    assert (await server.api.get(f"/v1/contacts/jo{ANN}")).json()["received"] == 1

    log = await chain_of(server)
    assert log.verify() == []
    assert [entry for entry in log.entries.values() if "erasedBy" in entry], "one had the address"
    for number, entry in before.entries.items():
        facts = {name: log.entries[number][name] for name in ("id", "at", "actor", "action", "hash")}
        assert facts == {name: entry[name] for name in facts}
    before.read(msgspec.json.encode({"data": list(log.entries.values())}))
    assert before.verify() == [], "an export from before the erasure still fits"

    told = (await server.api.get("/v1/events?limit=100")).json()["data"]
    assert (told[-1]["event"], told[-1]["reason"]) == ("contact.erased", job["id"])
    assert not [
        each for each in told if ANN in each["message"]["from"] and "jo" not in each["message"]["from"]
    ]
    await upkeep_loop.one_round(server.resources)
    shown = (await server.api.get("/v1/suppressions")).json()["data"]
    assert shown[0]["address"].startswith("sha256:")
    refused = await server.api.post(
        f"/v1/inboxes/{inbox_id}/send",
        json={"to": ANN, "subject": "s", "body": "b"},
        headers={"Idempotency-Key": "again"},
    )
    assert refused.json()["error"] == "recipient_suppressed"
    assert (await server.api.delete(f"/v1/suppressions/{ANN}")).status_code == 204


@pytest.mark.sqlite_alone
async def test_no_row_of_any_table_holds_what_was_erased(server: Server) -> None:
    await exchange(server)
    assert await left_of(server) >= {"messages", "drafts", "audit"}
    await erase(server)

    async def is_clean() -> bool:
        await index_upkeep.tidy(server.resources.db)
        return not await left_of(server) - {"idempotency_keys"}

    await until(is_clean, "no table holds anything of it")


@pytest.mark.sqlite_alone
async def test_an_address_of_any_spelling_is_erased(server: Server) -> None:
    """Slashes and signs in paths, quotes in JSON, a domain that events have as it was written."""
    await server.new_inbox("hello")
    odd = ['"Ann \\"A\\" B"@Bücher.example', "a/b%2f?&#c@example.com", "ünï'+x@example.com"]
    for number, address in enumerate(odd):
        sender = {"from": f"Ann <{address}>", "content_type": "text/plain; charset=utf-8"}
        await receive(server, message_id=f"<{number}@x>", **sender)
    for address in odd:
        job = await erase(server, quote(address, safe=""))
        assert {name: job["result"][name] for name in ("messages", "events")} == {"messages": 1, "events": 1}
    told = (await server.api.get("/v1/events?limit=100")).json()["data"]
    assert {each["message"]["from"] for each in told} == {""}


@pytest.mark.sqlite_alone
async def test_tampering_with_erased_entries_shows(server: Server) -> None:
    await exchange(server)
    await erase(server)
    log = await chain_of(server)
    [erased, *_] = [entry for entry in log.entries.values() if "erasedBy" in entry]
    whole = next(entry for entry in log.entries.values() if "erasedBy" not in entry and entry["after"])
    for change, wanted in (
        ({**erased, "action": "key.created"}, erased["id"]),
        ({**erased, "erasedBy": "aud_0"}, erased["id"]),
        ({**whole, "after": None, "erasedBy": erased["erasedBy"]}, whole["id"]),
    ):
        changed = await chain_of(server)
        changed.entries[change["sequence"]] = change
        assert [each.id for each in changed.verify()] == [wanted]


@pytest.mark.sqlite_alone
async def test_a_legal_hold_stops_it_and_one_that_comes_later_keeps_its_thread(server: Server) -> None:
    inbox_id = await exchange(server)
    threads = (await server.api.get(f"/v1/inboxes/{inbox_id}/threads")).json()["data"]
    held = next(each["id"] for each in threads if each["subject"] == f"{SECRET} file")
    for path, named in ((f"/v1/threads/{held}", held), (f"/v1/inboxes/{inbox_id}", inbox_id)):
        await server.api.patch(path, json={"legalHold": True})
        answer = await server.api.delete(f"/v1/contacts/{ANN}")
        assert (answer.status_code, answer.json()["error"]) == (409, "legal_hold")
        assert named in answer.json()["message"]
        await server.api.patch(path, json={"legalHold": False})
    await server.api.patch("/v1/account", json={"erasureApproval": True})
    waiting = (await server.api.delete(f"/v1/contacts/{ANN}")).json()["jobId"]
    await server.api.patch(f"/v1/threads/{held}", json={"legalHold": True})
    await server.resources.db.write(lambda tx: jobs.start(tx, jobs.get(tx, scope_of(tx, waiting), waiting)))
    job = await finished(server, waiting)
    counts = [job["result"][name] for name in ("messages", "kept", "contacts")]
    assert counts == [1, 1, 0], "as long as email of it is there, so is the contact"
    assert (await server.api.get(f"/v1/threads/{held}")).json()["subject"] == f"{SECRET} file"
    await server.api.patch("/v1/account", json={"erasureApproval": False})
    await server.api.patch(f"/v1/threads/{held}", json={"legalHold": False})
    again = await erase(server)
    assert [again["result"][name] for name in ("messages", "kept", "contacts")] == [1, 0, 1]


async def test_email_that_comes_meanwhile_stays_and_can_be_erased_too(server: Server) -> None:
    """What came while the job waited for its second person is erased with the rest."""
    inbox_id = await exchange(server)
    await server.api.patch("/v1/account", json={"erasureApproval": True})
    job_id = (await server.api.delete(f"/v1/contacts/{ANN}")).json()["jobId"]
    server.clock.turn(MINUTE)
    await server.deliver(FILE.replace(b"<f@x>", b"<waiting@x>"), "hello")
    await until(lambda: has_received(server, 2), "it is examined")
    db, now = server.resources.db, server.clock.now()
    assert await db.write(leader_leases.take, run_jobs.LEASE, "another node", now + run_jobs.LEASE_HELD, now)
    await db.write(lambda tx: jobs.start(tx, jobs.get(tx, scope_of(tx, job_id), job_id)))
    await db.write(erase_contact.take_step, job_id, server.clock.now())
    server.clock.turn(SECOND)
    await server.deliver(FILE.replace(b"<f@x>", b"<meanwhile@x>"), "hello")
    await until(lambda: has_received(server, 3), "it is examined")
    await take_all_steps(server, job_id)
    job = await finished(server, job_id)
    assert (job["result"]["messages"], job["result"]["contacts"]) == (3, 0)
    left = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    assert [each["rfcMessageId"] for each in left if each["fromAddr"][-len(ANN) - 1 : -1] == ANN] == [
        "<meanwhile@x>"
    ]
    server.clock.turn(MINUTE)  # the lease of the other node ends
    await server.api.patch("/v1/account", json={"erasureApproval": False})
    again = await erase(server)
    assert (again["result"]["messages"], again["result"]["contacts"]) == (1, 1)


async def has_received(server: Server, count: int) -> bool:
    found: int = (await server.api.get(f"/v1/contacts/{ANN}")).json()["received"]
    return found == count


def scope_of(tx: Tx, job_id: str) -> Any:
    job = jobs.lock(tx, job_id)
    assert job is not None
    return job.scope


@pytest.mark.sqlite_alone
async def test_a_second_person_confirms_where_the_account_wants_it(server: Server) -> None:
    await exchange(server)
    await server.api.patch("/v1/account", json={"erasureApproval": True})
    asked = (await server.api.delete(f"/v1/contacts/{ANN}")).json()
    assert (await server.api.delete(f"/v1/contacts/{ANN}")).json() == asked, "the same again is the same job"
    path = f"/v1/jobs/{asked['jobId']}"
    assert (await server.api.get(path)).json()["state"] == "waiting"
    own = (await server.api.post("/v1/api-keys", json={})).json()["token"]
    async with api_client(server.base_url, own) as mine:
        for api in (server.api, mine):
            refused = await api.post(f"{path}/confirm")
            assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    cancelled = await server.api.delete(path)
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    assert (await server.api.post(f"{path}/confirm")).json()["error"] == "nothing_to_do"
    assert (await server.api.get(f"/v1/contacts/{ANN}")).status_code == 200

    again = (await server.api.delete(f"/v1/contacts/{ANN}")).json()["jobId"]
    stranger = await server.resources.db.write(second_key, server.clock.now())
    async with api_client(server.base_url, stranger) as other:
        assert (await other.post(f"/v1/jobs/{again}/confirm")).json()["state"] == "running"
    assert (await finished(server, again))["result"]["contacts"] == 1


def second_key(tx: Tx, now: int) -> str:
    """A key of the same account that nobody's key made."""
    from postroom.accounts import accounts, keys

    account, token = accounts.find_first(tx), keys.new_token()
    assert account is not None
    keys.add(tx, account.id, None, "of another person", token, now)
    return token


@pytest.mark.sqlite_alone
async def test_each_step_alone_ends_the_same(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a kill -9 between any two steps: the row says where to go on."""
    monkeypatch.setattr(erase_contact, "ROWS", 1)
    monkeypatch.setattr(erase_contact, "PLACES", 1)
    await exchange(server)
    job = await erase(server)
    assert {name: job["result"][name] for name in ("messages", "files", "drafts", "contacts")} == {
        "messages": 2,
        "files": 1,
        "drafts": 1,
        "contacts": 1,
    }
    assert (await chain_of(server)).verify() == []


async def test_several_nodes_erase_once_and_one_at_a_time(server: Server) -> None:
    await exchange(server)
    await server.api.patch("/v1/account", json={"erasureApproval": True})
    job_id = (await server.api.delete(f"/v1/contacts/{ANN}")).json()["jobId"]
    db, now = server.resources.db, server.clock.now()
    assert await db.write(leader_leases.take, run_jobs.LEASE, "another node", now + run_jobs.LEASE_HELD, now)
    await db.write(lambda tx: jobs.start(tx, jobs.get(tx, scope_of(tx, job_id), job_id)))
    await run_jobs.carry_out(server.resources, job_id)
    assert (await server.api.get(f"/v1/jobs/{job_id}")).json()["done"] == 0, "the other has the lease"
    await asyncio.gather(*(take_all_steps(server, job_id) for _ in range(3)))
    job = await finished(server, job_id)
    counts = {name: job["result"][name] for name in ("messages", "files", "drafts", "contacts")}
    assert counts == {"messages": 2, "files": 1, "drafts": 1, "contacts": 1}
    assert (await chain_of(server)).verify() == []
    told = (await server.api.get("/v1/events?limit=100")).json()["data"]
    assert [each["event"] for each in told].count("contact.erased") == 1


async def take_all_steps(server: Server, job_id: str) -> None:
    while not (await server.resources.db.write(erase_contact.take_step, job_id, server.clock.now())).is_over:
        pass


@pytest.mark.sqlite_alone
async def test_a_step_that_fails_changes_nothing_and_is_taken_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await exchange(server)
    failures = [OSError("a disk"), OSError("a disk")]

    def fail_at_first(*given: Any) -> Any:
        if failures:
            raise failures.pop()
        return advance(*given)

    advance = jobs.advance
    monkeypatch.setattr(jobs, "advance", fail_at_first)
    job = await erase(server)
    assert not failures
    assert {name: job["result"][name] for name in ("messages", "files")} == {"messages": 2, "files": 1}


async def test_an_export_holds_all_of_a_contact_and_of_nobody_else(server: Server) -> None:
    await exchange(server)
    answer = await server.api.get(f"/v1/contacts/{ANN}/export")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.testzip() is None
    manifest = json.loads(archive.read("manifest.json"))
    assert manifest["address"] == ANN
    counts = {name: manifest["counts"][name] for name in ("messages", "files", "indexEntries", "drafts")}
    assert counts == {"messages": 2, "files": 1, "indexEntries": 2, "drafts": 1}
    assert manifest["counts"]["events"] >= 2
    assert manifest["counts"]["audit"] >= 1
    listed = {each["path"]: (each["sizeBytes"], each["sha256"]) for each in manifest["files"]}
    contents = {name: archive.read(name) for name in archive.namelist() if name != "manifest.json"}
    assert listed == {
        name: (len(content), hashlib.sha256(content).hexdigest()) for name, content in contents.items()
    }
    [file] = [name for name in archive.namelist() if name.startswith("files/")]
    assert archive.read(file).startswith(f"{SECRET},2".encode())
    whole = b"".join(archive.read(name) for name in archive.namelist())
    assert f"jo{ANN}".encode() not in whole
    assert b"<b@x>" not in whole


@pytest.mark.sqlite_alone
async def test_an_export_leaves_out_what_is_deleted_meanwhile(server: Server) -> None:
    inbox_id = await exchange(server)
    contact = (await server.api.get(f"/v1/contacts/{ANN}")).json()
    scope = Scope((await server.api.get("/v1/me")).json()["accountId"])
    call: Any = SimpleNamespace(resources=server.resources, scope=scope, account_id=scope.account_id)
    found = contacts.pieces(call, msgspec.convert(contact, Contact), server.clock.now())
    taken = await anext(found)
    (last,) = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?direction=outbound")).json()["data"]
    assert (await server.api.delete(f"/v1/messages/{last['id']}")).status_code == 204
    taken += b"".join([piece async for piece in found])
    archive = zipfile.ZipFile(io.BytesIO(taken))
    assert archive.testzip() is None
    manifest = json.loads(archive.read("manifest.json"))
    assert {each["path"] for each in manifest["files"]} == set(archive.namelist()) - {"manifest.json"}
    assert manifest["counts"]["messages"] == 1


@pytest.mark.sqlite_alone
async def test_contacts_and_jobs_of_others_are_not_there(server: Server) -> None:
    inbox_id = await exchange(server)
    await server.api.patch("/v1/account", json={"erasureApproval": True})
    job_id = (await server.api.delete(f"/v1/contacts/{ANN}")).json()["jobId"]
    pod_id = (await server.api.post("/v1/pods", json={})).json()["id"]
    tenant = (await server.api.post("/v1/api-keys", json={"podId": pod_id})).json()["token"]
    agent = (await server.api.post("/v1/api-keys", json={"inboxId": inbox_id})).json()["token"]
    for token in (await second_account(server), tenant):
        async with api_client(server.base_url, token) as stranger:
            for method, path in (
                ("GET", f"/v1/contacts/{ANN}/export"),
                ("DELETE", f"/v1/contacts/{ANN}"),
                ("GET", f"/v1/jobs/{job_id}"),
                ("POST", f"/v1/jobs/{job_id}/confirm"),
                ("DELETE", f"/v1/jobs/{job_id}"),
                ("GET", "/v1/jobs/nonsense"),
            ):
                assert (await stranger.request(method, path)).status_code == 404, (method, path)
    async with api_client(server.base_url, agent) as inside:
        for method, path in (("GET", f"/v1/contacts/{ANN}/export"), ("DELETE", f"/v1/contacts/{ANN}")):
            assert (await inside.request(method, path)).status_code == 403, (method, path)


@pytest.mark.sqlite_alone
async def test_only_the_hash_of_a_suppression_is_compared(server: Server) -> None:
    me = (await server.api.get("/v1/me")).json()["accountId"]
    await server.api.post("/v1/suppressions", json={"address": ANN})
    await server.resources.db.write(suppressions.keep_hash_alone, me, ANN)

    def look(tx: Tx) -> list[Any]:
        found = suppressions.find_all(tx, [(me, ANN), (me, BEN)])
        return [found, suppressions.find(tx, me, BEN)]

    assert await server.resources.db.read(look) == [{(me, ANN): "manual"}, None]
    await server.api.post("/v1/suppressions", json={"address": ANN})
    assert (await server.api.get("/v1/suppressions")).json()["total"] == 1
