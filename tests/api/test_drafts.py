"""Drafts over REST: written in steps, shown with their author, sent once."""

import asyncio
import base64
import os
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.clock import HOUR, to_iso
from postroom.mailbox import drafts
from postroom.mailbox.raw_mails import IN_ROW_BYTES
from postroom.upkeep.orphans import sweep_orphans
from postroom.upkeep.upkeep_loop import one_round
from postroom_mail.mime.parse import parse_mail
from tests.api.test_send import MAIL, raw_of, status_of
from tests.conftest import Server
from tests.outward.test_holds import add_key

pytestmark = pytest.mark.sqlite_alone

COMPLETE = {"to": "carol@postroom.localhost", "subject": "Offer", "body": "Seven"}
BIG = b"x" * (IN_ROW_BYTES + 1)


async def new_draft(server: Server, inbox_id: str, **fields: Any) -> dict[str, Any]:
    answer = await server.api.post(f"/v1/inboxes/{inbox_id}/drafts", json=fields)
    assert answer.status_code == 201, answer.text
    draft: dict[str, Any] = answer.json()
    return draft


async def send_draft(
    server: Server, draft_id: str, key: str = "k", api: httpx2.AsyncClient | None = None
) -> httpx2.Response:
    return await (api or server.api).post(f"/v1/drafts/{draft_id}/send", headers={"Idempotency-Key": key})


def file(name: str, content: bytes) -> dict[str, str]:
    return {"filename": name, "contentType": "text/plain", "data": base64.b64encode(content).decode()}


def blobs_of(server: Server) -> list[str]:
    return list(server.resources.blobs.names(0))


async def total(server: Server, inbox_id: str) -> int:
    count: int = (await server.api.get(f"/v1/inboxes/{inbox_id}/drafts")).json()["total"]
    return count


async def test_a_draft_is_written_in_steps_and_shows_who_wrote_it(server: Server) -> None:
    bob = await server.new_inbox("bob")
    draft = await new_draft(server, bob, to="Carol <carol@example.com>, dave@example.com")
    assert draft["id"].startswith("drf_")
    assert draft["to"] == ["Carol <carol@example.com>", "dave@example.com"]
    assert (draft["subject"], draft["body"], draft["attachments"]) == (None, None, [])
    assert draft["createdBy"]["type"] == "key"
    server.clock.turn(HOUR)
    path = f"/v1/drafts/{draft['id']}"
    changed = (await server.api.patch(path, json={"subject": "Offer", "to": None, "body": "x"})).json()
    assert (changed["to"], changed["subject"]) == ([], "Offer")
    assert (changed["createdAt"], changed["updatedAt"]) == (draft["createdAt"], to_iso(server.clock.now()))
    assert (await server.api.get(path)).json() == changed
    other = await new_draft(server, bob)
    page = (await server.api.get(f"/v1/inboxes/{bob}/drafts")).json()
    assert ([each["id"] for each in page["data"]], page["total"]) == ([other["id"], draft["id"]], 2)
    assert (await server.api.delete(path)).status_code == 204
    assert (await server.api.get(path)).status_code == 404


async def test_fields_are_checked_when_they_are_written(server: Server) -> None:
    bob = await server.new_inbox("bob")
    draft = await new_draft(server, bob)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"to": "nobody"}, "to"),
        ({"to": [f"p{number}@example.com" for number in range(51)]}, "to"),
        ({"subject": "a\nb"}, "subject"),
        ({"body": 7}, "body"),
        ({"headers": {"Bcc": "x"}}, "headers"),
        ({"sendAt": "tomorrow"}, "sendAt"),
        ({"replyTo": "x"}, "replyTo"),
        ({"undoSeconds": 500}, "undoSeconds"),
        ({"attachments": [{"filename": "a", "data": "*"}]}, "attachments"),
    ]
    for fields, field in wrong:
        for answer in (
            await server.api.post(f"/v1/inboxes/{bob}/drafts", json=fields),
            await server.api.patch(f"/v1/drafts/{draft['id']}", json=fields),
        ):
            assert (answer.status_code, answer.json().get("field")) == (400, field), (fields, answer.text)
    for fields in ({"threadId": "thr_" + "0" * 32}, {"forwardOf": "msg_" + "0" * 32}):
        assert (await server.api.post(f"/v1/inboxes/{bob}/drafts", json=fields)).status_code == 404
    assert await total(server, bob) == 1


async def test_a_draft_of_another_inbox_looks_as_if_it_did_not_exist(server: Server) -> None:
    bob, other = await server.new_inbox("bob"), await server.new_inbox("other")
    draft = await new_draft(server, bob, **COMPLETE)
    token = await server.resources.db.write(add_key, server, other, ["read", "draft", "send"])
    async with server.client(token) as api:
        for draft_id in (draft["id"], "drf_" + "0" * 32, "nonsense"):
            path = f"/v1/drafts/{draft_id}"
            answers = [
                await api.get(path),
                await api.patch(path, json={"subject": "x"}),
                await api.delete(path),
                await api.post(f"{path}/attachments", json={"attachments": [file("a", b"a")]}),
                await api.delete(f"{path}/attachments/a.txt"),
                await send_draft(server, draft_id, api=api),
                await api.post(f"{path}/send"),
            ]
            assert [answer.status_code for answer in answers] == [404] * len(answers)
        assert (await send_draft(server, draft["id"], "sent")).status_code == 200
        replayed = await send_draft(server, draft["id"], "sent", api)
        assert replayed.status_code == 404


async def test_a_sent_draft_is_a_mail_and_gone_and_its_key_is_answered_again(server: Server) -> None:
    bob, _ = await server.new_inbox("bob"), await server.new_inbox("carol")
    draft = await new_draft(server, bob, **COMPLETE, metadata={"a": "b"}, headers={"X-A": "1"})
    assert (await server.api.post(f"/v1/drafts/{draft['id']}/send")).json()["error"] == (
        "missing_idempotency_key"
    )
    first = await send_draft(server, draft["id"])
    assert first.status_code == 200, first.text
    message = await status_of(server, first.json()["id"], "sent")
    assert (message["subject"], message["bodyText"], message["metadata"]) == ("Offer", "Seven", {"a": "b"})
    assert (await server.api.get(f"/v1/drafts/{draft['id']}")).status_code == 404
    again = await send_draft(server, draft["id"])
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
    assert (await send_draft(server, draft["id"], "other")).status_code == 404
    next_one = await new_draft(server, bob, **COMPLETE)
    assert (await send_draft(server, next_one["id"])).json()["error"] == "idempotency_key_reused"


async def test_what_is_missing_is_named_and_the_draft_stays(server: Server) -> None:
    bob = await server.new_inbox("bob")
    for missing in COMPLETE:
        fields = {name: value for name, value in COMPLETE.items() if name != missing}
        draft = await new_draft(server, bob, **fields)
        answer = await send_draft(server, draft["id"])
        assert (answer.status_code, answer.json()["field"]) == (400, missing)
    late = await new_draft(server, bob, **COMPLETE, sendAt=to_iso(server.clock.now() + HOUR))
    server.clock.turn(2 * HOUR)
    assert (await send_draft(server, late["id"])).json()["field"] == "sendAt"
    assert await total(server, bob) == 4
    assert (await server.api.get(f"/v1/inboxes/{bob}/messages")).json()["total"] == 0


@pytest.mark.both_databases
async def test_two_that_send_one_draft_make_one_mail(server: Server) -> None:
    bob, _ = await server.new_inbox("bob"), await server.new_inbox("carol")
    for number in range(3):
        draft = await new_draft(server, bob, **COMPLETE, attachments=[file("a.txt", BIG)])
        answers = await asyncio.gather(
            *(send_draft(server, draft["id"], f"{number}-{name}") for name in "ab")
        )
        assert sorted(answer.status_code for answer in answers) == [200, 404]
    assert (await server.api.get(f"/v1/inboxes/{bob}/messages")).json()["total"] == 3
    same = await new_draft(server, bob, **COMPLETE)
    twice = await asyncio.gather(*(send_draft(server, same["id"], "same") for _ in range(3)))
    assert [answer.status_code for answer in twice] == [200] * 3
    assert len({answer.content for answer in twice}) == 1


async def test_a_draft_sent_while_it_is_changed_is_sent_as_one_of_its_versions(server: Server) -> None:
    bob, _ = await server.new_inbox("bob"), await server.new_inbox("carol")
    draft = await new_draft(server, bob, **COMPLETE)
    path = f"/v1/drafts/{draft['id']}"
    sent, *changed = await asyncio.gather(
        send_draft(server, draft["id"]),
        *(server.api.patch(path, json={"subject": f"s{n}", "body": f"b{n}"}) for n in range(4)),
    )
    if sent.status_code == 409:  # changed again and again
        sent = await send_draft(server, draft["id"])
    message = (await server.api.get(f"/v1/messages/{sent.json()['id']}")).json()
    versions = {(f"s{n}", f"b{n}") for n in range(4)} | {("Offer", "Seven")}
    assert (message["subject"], message["bodyText"]) in versions
    assert {answer.status_code for answer in changed} <= {200, 404}


async def test_files_are_added_taken_off_and_sent(server: Server) -> None:
    bob = await server.new_inbox("bob")
    fields = {**COMPLETE, "to": "carol@example.com"}  # outside: no second copy is stored here
    draft = await new_draft(server, bob, **fields, attachments=[file("../a.txt", b"one")])
    path = f"/v1/drafts/{draft['id']}"
    form = [("attachments", ("a.txt", BIG, "text/plain")), ("attachments", ("b.txt", b"b", "text/plain"))]
    added = await server.api.post(f"{path}/attachments", files=form)
    assert added.status_code == 201, added.text
    names = [each["filename"] for each in added.json()["attachments"]]
    assert names == ["a.txt", "a (2).txt", "b.txt"]
    assert len(blobs_of(server)) == 1
    assert (await server.api.delete(f"{path}/attachments/b.txt")).status_code == 204
    assert (await server.api.delete(f"{path}/attachments/b.txt")).status_code == 404
    none = await server.api.post(f"{path}/attachments", json={})
    assert (none.status_code, none.json()["field"]) == (400, "attachments")
    answer = await send_draft(server, draft["id"])
    mail = parse_mail(await raw_of(server, answer.json()["id"]))
    assert [(each.filename, each.content) for each in mail.attachments] == [
        ("a.txt", b"one"),
        ("a (2).txt", BIG),
    ]
    assert len(blobs_of(server)) == 1  # that of the mail


async def test_given_files_stand_in_for_the_old_ones_and_no_blob_is_left(server: Server) -> None:
    bob = await server.new_inbox("bob")
    draft = await new_draft(server, bob, attachments=[file("a.txt", BIG), file("b.txt", BIG)])
    path = f"/v1/drafts/{draft['id']}"
    kept = (await server.api.patch(path, json={"subject": "x"})).json()
    assert [each["sizeBytes"] for each in kept["attachments"]] == [len(BIG), len(BIG)]
    form = [("attachments", ("c.txt", BIG, "text/plain"))]
    changed = (await server.api.patch(path, data={"body": "y"}, files=form)).json()
    assert ([each["filename"] for each in changed["attachments"]], changed["subject"]) == (["c.txt"], "x")
    assert len(blobs_of(server)) == 1
    assert (await server.api.patch(path, json={"attachments": None})).json()["attachments"] == []
    assert blobs_of(server) == []


async def test_25_megabytes_are_the_most_and_a_refusal_leaves_no_blob(server: Server) -> None:
    bob = await server.new_inbox("bob")
    draft = await new_draft(server, bob)
    path = f"/v1/drafts/{draft['id']}/attachments"
    big = {"attachments": ("a.bin", b"x" * (13 * 1024 * 1024))}
    assert (await server.api.post(path, files=big)).status_code == 201
    refused = await server.api.post(path, files=big)
    assert (refused.status_code, refused.json()["error"]) == (413, "payload_too_large")
    assert len(blobs_of(server)) == 1


async def test_blobs_of_drafts_survive_the_sweep_and_go_with_their_inbox(server: Server) -> None:
    bob = await server.new_inbox("bob")
    draft = await new_draft(server, bob, attachments=[file("a.txt", BIG)])
    (name,) = blobs_of(server)
    old = time.time() - 7200
    os.utime(Path(server.resources.config.data_dir) / "blobs" / name[:2] / name, (old, old))
    await sweep_orphans(server.resources)
    assert blobs_of(server) == [name]
    await server.api.delete(f"/v1/inboxes/{bob}")
    assert (await server.api.get(f"/v1/drafts/{draft['id']}")).status_code == 404
    await one_round(server.resources)
    assert blobs_of(server) == []
    count = await server.resources.db.read(drafts.count_of_inbox, bob)
    assert count == 0


async def test_who_may_only_draft_writes_what_is_held_and_who_may_not_changes_none(server: Server) -> None:
    bob, _ = await server.new_inbox("bob"), await server.new_inbox("carol")
    token = await server.resources.db.write(add_key, server, bob, ["read", "draft"])
    async with server.client(token) as api:
        written = (await api.post(f"/v1/inboxes/{bob}/drafts", json=COMPLETE)).json()
        assert written["createdBy"]["name"] == "k"
        receipt = (await send_draft(server, written["id"], "held", api)).json()
    assert (receipt["hold"]["state"], receipt["hold"]["reasons"]) == ("held", ["key"])
    draft = await new_draft(server, bob, **COMPLETE)
    path = f"/v1/drafts/{draft['id']}"
    for asked, sends in ((["read"], 403), (["read", "send"], 200)):
        token = await server.resources.db.write(add_key, server, bob, asked)
        async with server.client(token) as api:
            assert (await api.get(path)).status_code == 200
            refused = [
                await api.post(f"/v1/inboxes/{bob}/drafts", json={}),
                await api.patch(path, json={}),
                await api.delete(path),
                await api.post(f"{path}/attachments", json={}),
                await api.delete(f"{path}/attachments/a"),
            ]
            assert [answer.status_code for answer in refused] == [403] * 5
            assert (await send_draft(server, draft["id"], api=api)).status_code == sends


async def test_drafts_answer_all_and_pass_mail_on_and_keep_to_the_limits(server: Server) -> None:
    bob, _ = await server.new_inbox("bob"), await server.new_inbox("carol")
    await server.deliver(MAIL, "bob")
    event = await server.next_event()
    answer_all = await new_draft(server, bob, threadId=event["thread_id"], replyAll=True, body="Yes")
    receipt = (await send_draft(server, answer_all["id"], "all")).json()
    message = (await server.api.get(f"/v1/messages/{receipt['id']}")).json()
    assert (message["headerTo"], message["subject"]) == ("Alice <alice@example.com>", "Re: Question")
    forward = await new_draft(
        server, bob, to="carol@postroom.localhost", forwardOf=event["message"]["id"], body="See"
    )
    receipt = (await send_draft(server, forward["id"], "on")).json()
    assert (await status_of(server, receipt["id"], "sent"))["subject"] == "Fwd: Question"
    codes = []
    for number in range(9):
        draft = await new_draft(server, bob, **COMPLETE)
        codes.append((await send_draft(server, draft["id"], str(number))).status_code)
    assert codes == [200] * 8 + [429]
    assert await total(server, bob) == 1


@pytest.mark.both_databases
async def test_an_inbox_has_room_for_so_many(server: Server) -> None:
    bob = await server.new_inbox("bob")
    draft = await new_draft(server, bob)

    def fill(tx: Any) -> None:
        kept = tx.one("select * from drafts where id = :id", id=draft["id"])
        row = (bob, bytes(kept["fields"]), kept["actor"], 1, 0, 0)
        tx.many(
            "insert into drafts (id, inbox_id, fields, actor, version, created_at, updated_at) values :rows",
            [(f"drf_{n:032x}", *row) for n in range(drafts.DRAFTS_OF_AN_INBOX - 1)],
        )

    await server.resources.db.write(fill)
    refused = await server.api.post(f"/v1/inboxes/{bob}/drafts", json={"attachments": [file("a.txt", BIG)]})
    assert (refused.status_code, refused.json()["error"]) == (422, "draft_limit_reached")
    assert blobs_of(server) == []
