"""Pages of lists hold at most 4 MB, are read from outlines where texts are not shown, and skip nothing."""

import os
from typing import Any

import pytest

from postroom.limits import PAGE_BYTES
from postroom.mailbox import inboxes
from postroom.storage.database import Tx
from tests.api.test_dashboard import signed_in
from tests.conftest import Server
from tests.mailbox.test_outlines import lose_document
from tests.stored import put_mail

MESSAGES = 6


def fill(tx: Tx, inbox_id: str, is_lost: bool = False) -> list[str]:
    """Large messages, a thread each; without their documents, so that a list that reads one fails."""
    inbox = inboxes.find(tx, inbox_id)
    assert inbox is not None
    text = "\n".join(os.urandom(30).hex() for _ in range(14_000))
    found = [put_mail(tx, inbox, text, subject=f"Large {number}") for number in range(MESSAGES)]
    for message in found if is_lost else ():
        lose_document(tx, message)
    return [message.id for message in found]


async def pages_of(server: Server, path: str, name: str, **asked: str) -> list[dict[str, Any]]:
    """All pages of a list of /v0."""
    found: list[dict[str, Any]] = []
    token: dict[str, str] = {}
    while not found or token:
        answer = await server.api.get(path, params={**asked, **token})
        assert answer.status_code == 200, answer.text[:500]
        assert len(answer.content) < PAGE_BYTES + 100_000
        found.append(answer.json())
        assert found[-1]["count"] == len(found[-1][name])
        token = {"page_token": found[-1]["next_page_token"]} if "next_page_token" in found[-1] else {}
    return found


@pytest.mark.share(2)
async def test_lists_that_show_no_texts_read_no_large_message(server: Server) -> None:
    inbox_id = await server.new_inbox("large")
    ids = await server.resources.db.write(fill, inbox_id, True)
    (listed,) = await pages_of(server, f"/v0/inboxes/{inbox_id}/messages", "messages")
    assert [each["subject"] for each in listed["messages"]] == [f"Large {n}" for n in range(MESSAGES)][::-1]
    (threads,) = await pages_of(server, f"/v0/inboxes/{inbox_id}/threads", "threads")
    assert len(threads["threads"]) == MESSAGES
    labelled = await server.api.post(
        f"/v0/inboxes/{inbox_id}/messages/batch-update", json={"message_ids": ids, "add_labels": ["seen"]}
    )
    assert labelled.json()["count"] == MESSAGES, labelled.text
    changes = await server.api.get(f"/v0/inboxes/{inbox_id}/events")
    assert changes.status_code == 200
    async with signed_in(server) as page:
        mail = await page.get("/app/mail")
        assert mail.status_code == 200
        assert all(f"Large {number}" in mail.text for number in range(MESSAGES))


@pytest.mark.sqlite_alone
async def test_batch_get_gives_what_fits_and_says_that_it_is_cut(server: Server) -> None:
    inbox_id = await server.new_inbox("large")
    ids = await server.resources.db.write(fill, inbox_id)
    got: list[str] = []
    while len(got) < MESSAGES:
        wanted = [each for each in ids if each not in got]
        answer = await server.api.post(
            f"/v0/inboxes/{inbox_id}/messages/batch-get", json={"message_ids": wanted}
        )
        page = answer.json()
        assert 0 < page["count"] == len(page["messages"])
        assert len(answer.content) < PAGE_BYTES + 100_000
        assert page.get("truncated", False) == (page["count"] < len(wanted))
        got += wanted[: page["count"]]
    assert got == ids


@pytest.mark.sqlite_alone
async def test_a_thread_of_v0_goes_on_behind_what_was_given(server: Server) -> None:
    inbox_id = await server.new_inbox("large")

    def one_thread(tx: Tx) -> str:
        inbox = inboxes.find(tx, inbox_id)
        assert inbox is not None
        text = "\n".join(os.urandom(30).hex() for _ in range(14_000))
        first = put_mail(tx, inbox, text, message_id="<first@example.com>", subject="0")
        for number in range(1, MESSAGES):
            put_mail(tx, inbox, text, in_reply_to="<first@example.com>", subject=str(number))
        return first.thread_id

    thread_id = await server.resources.db.write(one_thread)
    pages = await pages_of(server, f"/v0/inboxes/{inbox_id}/threads/{thread_id}", "messages")
    assert len(pages) > 1
    subjects = [each["subject"] for page in reversed(pages) for each in page["messages"]]
    assert subjects == [str(number) for number in range(MESSAGES)]


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", ["drafts", "templates", "approvals"])
async def test_drafts_templates_and_approvals_are_cut_and_go_on(server: Server, kind: str) -> None:
    inbox_id = await server.new_inbox("large")
    html = "<p>" + "€" * 300_000 + "</p>"
    paths = {
        "drafts": f"/v1/inboxes/{inbox_id}/drafts",
        "templates": "/v1/templates",
        "approvals": "/v1/approvals",
    }
    if kind == "approvals":
        await server.api.put("/v1/pause")
    for number in range(MESSAGES):
        body = {"body": "Hello", "bodyHtml": html, "subject": str(number)}
        named = {"name": f"t{number}", "inboxId": inbox_id} if kind == "templates" else {}
        to = {"to": "bob@there.example"} if kind == "approvals" else {}
        path = f"/v1/inboxes/{inbox_id}/send" if kind == "approvals" else paths[kind]
        key = {"Idempotency-Key": str(number)}
        made = await server.api.post(path, json={**body, **named, **to}, headers=key)
        assert made.status_code in (200, 201), made.text[:300]
    subjects: list[str] = []
    while len(subjects) < MESSAGES:
        answer = await server.api.get(paths[kind], params={"offset": len(subjects)})
        page = answer.json()
        assert len(answer.content) < PAGE_BYTES + 100_000
        assert page["total"] == MESSAGES
        assert page.get("truncated", False) == (len(subjects) + len(page["data"]) < MESSAGES)
        subjects += [each.get("message", each)["subject"] for each in page["data"]]
    assert sorted(subjects) == [str(number) for number in range(MESSAGES)]
    if kind == "drafts":
        v0 = await pages_of(server, "/v0/drafts", "drafts")
        assert len([each for page in v0 for each in page["drafts"]]) == MESSAGES
