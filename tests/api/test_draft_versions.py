"""Drafts have versions: who names the one that he has seen changes or sends that one, or nothing at all."""

import asyncio
from typing import Any

import httpx2
import pytest

from tests.api.test_drafts import COMPLETE, file, new_draft
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone

ROUNDS = 6


async def ask(
    server: Server, method: str, path: str, seen: str | None = None, body: Any = None, key: str = ""
) -> httpx2.Response:
    headers = {"If-Match": seen} if seen is not None else {}
    headers |= {"Idempotency-Key": key} if key else {}
    return await server.api.request(method, path, json=body, headers=headers)


async def test_a_version_goes_up_with_each_change(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    path = f"/v1/drafts/{(await new_draft(server, inbox_id, **COMPLETE))['id']}"
    versions = [(await server.api.get(path)).json()["version"]]
    versions.append((await ask(server, "PATCH", path, body={"subject": "x"})).json()["version"])
    added = await ask(server, "POST", f"{path}/attachments", body={"attachments": [file("a.txt", b"a")]})
    versions.append(added.json()["version"])
    assert (await ask(server, "DELETE", f"{path}/attachments/a.txt")).status_code == 204
    versions.append((await server.api.get(path)).json()["version"])
    [listed] = (await server.api.get(f"/v1/inboxes/{inbox_id}/drafts")).json()["data"]
    assert (versions, listed["version"]) == ([1, 2, 3, 4], 4)


async def test_whoever_names_an_old_version_changes_and_sends_nothing(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    path = f"/v1/drafts/{(await new_draft(server, inbox_id, **COMPLETE))['id']}"
    await ask(server, "POST", f"{path}/attachments", body={"attachments": [file("a.txt", b"a")]})
    before = (await server.api.get(path)).json()
    refused = [
        await ask(server, "PATCH", path, '"1"', {"subject": "Swapped"}),
        await ask(server, "PATCH", path, body={"subject": "Swapped", "version": 1}),
        await ask(server, "DELETE", path, '"1"'),
        await ask(server, "POST", f"{path}/attachments", "1", {"attachments": [file("b.txt", b"b")]}),
        await ask(server, "DELETE", f"{path}/attachments/a.txt", '"3"'),
        await ask(server, "POST", f"{path}/send", '"1"', key="k"),
        await ask(server, "POST", f"{path}/send", body={"version": 1}, key="k"),
    ]
    assert [each.status_code for each in refused] == [409] * len(refused)
    assert {(each.json()["error"], each.json()["version"]) for each in refused} == {("draft_changed", 2)}
    assert (await server.api.get(path)).json() == before
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["total"] == 0


async def test_whoever_names_the_version_that_is_there_is_served(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    path = f"/v1/drafts/{(await new_draft(server, inbox_id, **COMPLETE))['id']}"
    files = {"attachments": [file("a.txt", b"a")]}
    assert (await ask(server, "PATCH", path, '"1"', {"subject": "Two"})).json()["version"] == 2
    assert (await ask(server, "PATCH", path, "2", {"version": 2})).json()["version"] == 3
    assert (await ask(server, "POST", f"{path}/attachments", '"3"', files)).json()["version"] == 4
    assert (await ask(server, "DELETE", f"{path}/attachments/a.txt", "*")).status_code == 204
    sent = await ask(server, "POST", f"{path}/send", body={"version": 5}, key="k")
    assert sent.status_code == 200
    again = await ask(server, "POST", f"{path}/send", '"5"', key="k")
    assert again.status_code == 200, again.text
    assert (again.json(), again.headers["Idempotent-Replayed"]) == (sent.json(), "true")
    other = f"/v1/drafts/{(await new_draft(server, inbox_id, **COMPLETE))['id']}"
    assert (await ask(server, "DELETE", other, '"1"')).status_code == 204


async def test_what_names_no_version_is_refused(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    path = f"/v1/drafts/{(await new_draft(server, inbox_id, **COMPLETE))['id']}"
    for seen in ('""', '"1', "1, 2", '"one"', 'W/"1"', "-1", '"' + "9" * 16 + '"'):
        answer = await ask(server, "PATCH", path, seen, {"subject": "x"})
        assert (answer.status_code, answer.json().get("field")) == (400, "If-Match"), seen


async def test_a_header_and_a_body_that_name_two_versions_are_refused(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    path = f"/v1/drafts/{(await new_draft(server, inbox_id, **COMPLETE))['id']}"
    answer = await ask(server, "PATCH", path, '"1"', {"version": 2})
    assert (answer.status_code, answer.json()["field"]) == (400, "version")
    for wrong in (0, "1", None):
        answer = await ask(server, "PATCH", path, body={"version": wrong})
        assert (answer.status_code, answer.json()["field"]) == (400, "version")


async def test_of_all_who_change_the_same_version_at_once_one_does(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    path = f"/v1/drafts/{(await new_draft(server, inbox_id, **COMPLETE))['id']}"
    for version in range(1, ROUNDS + 1):
        answers = await asyncio.gather(
            *(
                ask(server, "PATCH", path, f'"{version}"', {"subject": f"{version} {each}"})
                for each in range(4)
            )
        )
        assert sorted(each.status_code for each in answers) == [200, 409, 409, 409]
        [done] = [each.json() for each in answers if each.status_code == 200]
        shown = (await server.api.get(path)).json()
        assert (shown["version"], shown["subject"]) == (version + 1, done["subject"])


async def test_a_draft_swapped_under_a_send_never_leaves_in_its_place(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    await server.new_inbox("carol")  # whom it is written to: a bounce would stop the next one
    for number in range(ROUNDS):
        draft = await new_draft(server, inbox_id, **COMPLETE)
        path = f"/v1/drafts/{draft['id']}"
        sent, swapped = await asyncio.gather(
            ask(server, "POST", f"{path}/send", '"1"', key=f"send {number}".replace(" ", "-")),
            ask(server, "PATCH", path, body={"subject": "Swapped", "bcc": "eve@there.example"}),
        )
        assert (sent.status_code, swapped.status_code) in ((200, 404), (409, 200)), sent.text
    left = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    assert {each["subject"] for each in left} <= {COMPLETE["subject"]}
