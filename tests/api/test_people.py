"""People of an account: invited, with roles and pods, and what ends with them."""

import asyncio
import re
from typing import Any

import httpx2
import pytest

from postroom.accounts.people import mail_links
from postroom.clock import HOUR, MINUTE
from tests.api.test_dashboard import browser, new_link, signed_in
from tests.conftest import Server, running_server, settings

CAPTURING = {"OUTBOUND": "capture"}


async def invite(server: Server, email: str = "ann@example.org", role: str = "approver", **more: Any) -> Any:
    answer = await server.api.post("/v1/users", json={"email": email, "role": role, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def links_of(server: Server, purpose: str) -> list[str]:
    """The links in the letters that wait to leave."""
    rows = await server.resources.db.read(
        lambda tx: tx.all("select content from letters order by created_at, id")
    )
    found = [re.search(rf"\?{purpose}=([\w-]+)", row["content"]) for row in rows]
    return [match[1] for match in found if match]


async def join(server: Server, page: httpx2.AsyncClient, **form: str) -> httpx2.Response:
    token = (await links_of(server, "invitation"))[-1]
    return await page.post("/app/sign-in", data={"invitation": token, **form})


async def audit_of(server: Server, action: str) -> list[dict[str, Any]]:
    page = (await server.api.get("/v1/audit", params={"action": action})).json()
    found: list[dict[str, Any]] = page["data"]
    return found


@pytest.mark.sqlite_alone
async def test_an_invited_person_opens_the_link_and_is_a_user_in_the_audit(server: Server) -> None:
    user = await invite(server)
    assert (user["state"], user["role"], user["podIds"], user["passkeys"]) == ("invited", "approver", [], 0)
    token = (await links_of(server, "invitation"))[0]
    async with browser(server) as page:
        opened = await page.get("/app/sign-in", params={"invitation": token})
        assert "ann@example.org" in opened.text
        assert (await join(server, page, name="Ann")).headers["location"] == "/app"
        assert (await page.get("/app")).status_code in (200, 303)
        assert (await page.get("/app/settings/people")).status_code == 403  # an approver manages nothing
        again = await page.post("/app/sign-in", data={"invitation": token})
        assert again.status_code == 401
    shown = (await server.api.get(f"/v1/users/{user['id']}")).json()
    assert (shown["state"], shown["name"]) == ("active", "Ann")
    assert shown["lastSeenAt"] is not None
    [joined] = await audit_of(server, "user.joined")
    assert joined["actor"] == {"type": "user", "id": user["id"], "name": "Ann"}


@pytest.mark.sqlite_alone
async def test_the_printed_link_makes_the_first_owner_once(server: Server) -> None:
    link = await new_link(server, is_operator=True)
    async with browser(server) as page:
        assert 'name="email"' in (await page.get("/app/sign-in", params={"link": link})).text
        answer = await page.post(
            "/app/sign-in", data={"link": link, "name": "Olga", "email": "olga@example.org"}
        )
        assert answer.status_code == 303
        shown = (await page.get("/app/settings/people")).text
        assert "Olga" in shown
        assert "olga@example.org" in shown
        assert (await page.get("/app/operator")).status_code == 200
    [owner] = (await server.api.get("/v1/users")).json()["data"]
    assert (owner["role"], owner["state"], owner["email"]) == ("owner", "active", "olga@example.org")
    second = await new_link(server, is_operator=True)
    async with browser(server) as page:
        assert 'name="email"' not in (await page.get("/app/sign-in", params={"link": second})).text
        await page.post("/app/sign-in", data={"link": second, "email": "eve@example.org"})
    assert (await server.api.get("/v1/users")).json()["total"] == 1


@pytest.mark.sqlite_alone
async def test_what_is_wrong_with_an_invitation_is_said(server: Server) -> None:
    await invite(server)
    for body, told in [
        ({"email": "ANN@example.org", "role": "viewer"}, (409, "user_exists")),
        ({"email": "no address", "role": "viewer"}, (400, "bad_request")),
        ({"email": "b@example.org", "role": "king"}, (400, "bad_request")),
        ({"email": "b@example.org", "role": "viewer", "podIds": ["pod_none"]}, (400, "bad_request")),
        ({"email": "b@example.org", "role": "owner", "podIds": ["x"]}, (400, "bad_request")),
    ]:
        answer = await server.api.post("/v1/users", json=body)
        assert (answer.status_code, answer.json()["error"]) == told, body
    assert (await server.api.get("/v1/users/usr_none")).status_code == 404
    answer = await server.api.post("/v1/users", json={"email": "hello@postroom.localhost", "role": "owner"})
    assert (answer.status_code, answer.json()["field"]) == (400, "email")


@pytest.mark.sqlite_alone
async def test_an_invitation_ends_after_72_hours_and_with_the_next(server: Server) -> None:
    user = await invite(server)
    first = (await links_of(server, "invitation"))[0]
    again = await server.api.post(f"/v1/users/{user['id']}/invite")
    assert again.status_code == 202
    async with browser(server) as page:
        assert (await page.post("/app/sign-in", data={"invitation": first})).status_code == 401
        server.clock.turn(72 * HOUR)
        assert (await join(server, page)).status_code == 401


@pytest.mark.sqlite_alone
async def test_nobody_gives_more_than_he_has(server: Server) -> None:
    narrow = await server.api.post("/v1/api-keys", json={"permissions": ["read", "manage"]})
    async with server.client(narrow.json()["token"]) as manager:
        for role in ("owner", "admin", "approver"):
            answer = await manager.post("/v1/users", json={"email": "x@example.org", "role": role})
            assert answer.status_code == 403, role
        assert (
            await manager.post("/v1/users", json={"email": "x@example.org", "role": "viewer"})
        ).status_code == 201
    owner = await invite(server, "owner@example.org", "owner")
    await invite(server, "admin@example.org", "admin")
    async with browser(server) as admin:
        await join(server, admin, name="Admin")
        people = "/app/settings/people"
        refused = await admin.post(people, data={"email": "y@example.org", "role": "owner"})
        assert refused.status_code == 403
        assert (await admin.post(f"{people}/{owner['id']}", data={"role": "viewer"})).status_code == 403
        assert (await admin.post(f"{people}/{owner['id']}/remove")).status_code == 403
        made = await admin.post("/app/settings/keys", data={"name": "of an admin", "scopeId": "all"})
        [token] = re.findall(r"pr_[\w-]{43}", made.text)[:1]
        assert (await admin.get("/app/operator")).status_code == 403
    async with server.client(token) as climbing:  # a key that an admin made is no way up
        answer = await climbing.post("/v1/users", json={"email": "y@example.org", "role": "owner"})
        assert answer.status_code == 403


@pytest.mark.sqlite_alone
async def test_the_last_owner_stays(server: Server) -> None:
    link = await new_link(server)
    async with browser(server) as page:
        await page.post("/app/sign-in", data={"link": link, "email": "olga@example.org"})
    [owner] = (await server.api.get("/v1/users")).json()["data"]
    invited = await invite(server, "second@example.org", "owner")  # who never signed in does not count
    path = f"/v1/users/{owner['id']}"
    assert (await server.api.delete(path)).json()["error"] == "last_owner"
    assert (await server.api.patch(path, json={"role": "admin"})).json()["error"] == "last_owner"
    async with browser(server) as page:
        await join(server, page)
    told = await asyncio.gather(
        server.api.patch(path, json={"role": "admin"}),
        server.api.patch(f"/v1/users/{invited['id']}", json={"role": "admin"}),
    )
    assert sorted(answer.status_code for answer in told) == [200, 409]


@pytest.mark.sqlite_alone
async def test_a_user_of_two_pods_sees_one_at_a_time_and_nothing_else(server: Server) -> None:
    made = [(await server.api.post("/v1/pods", json={"name": name})).json()["id"] for name in "abc"]
    inboxes = {}
    for name, pod in zip("abc", made, strict=True):
        body = {"mailboxName": f"pod-{name}", "podId": pod}
        inboxes[name] = (await server.api.post("/v1/inboxes", json=body)).json()["id"]
    await invite(server, role="admin", podIds=made[:2])
    async with browser(server) as page:
        await join(server, page)
        first = (await page.get("/app/mail")).text
        assert "pod-a@" in first
        assert "pod-b@" not in first
        assert (await page.post("/app/pod", data={"podId": made[1]})).status_code == 303
        second = (await page.get("/app/mail")).text
        assert "pod-b@" in second
        assert "pod-a@" not in second
        assert (await page.get(f"/app/inboxes/{inboxes['a']}")).status_code == 404
        assert (await page.post("/app/pod", data={"podId": made[2]})).status_code == 404
        assert (await page.get(f"/app/inboxes/{inboxes['c']}")).status_code == 404
        assert (await page.get("/app/settings/people")).status_code == 403


@pytest.mark.sqlite_alone
async def test_who_may_do_less_is_signed_out_and_what_he_allowed_ends(server: Server) -> None:
    user = await invite(server, role="admin")
    async with browser(server) as page:
        await join(server, page)
        made = await page.post("/app/settings/keys", data={"name": "mine", "scopeId": "all"})
        [token] = re.findall(r"pr_[\w-]{43}", made.text)[:1]
        async with server.client(token) as program:
            assert (await program.get("/v1/me")).status_code == 200
            await server.api.patch(f"/v1/users/{user['id']}", json={"role": "viewer"})
            assert (await page.get("/app/mail")).headers["location"].startswith("/app/sign-in")
            assert (await program.get("/v1/me")).status_code == 401


@pytest.mark.sqlite_alone
async def test_with_a_user_go_sessions_and_keys(server: Server) -> None:
    user = await invite(server, role="admin")
    async with browser(server) as page:
        await join(server, page)
        made = await page.post("/app/settings/keys", data={"name": "mine", "scopeId": "all"})
        [token] = re.findall(r"pr_[\w-]{43}", made.text)[:1]
        assert (await server.api.delete(f"/v1/users/{user['id']}")).status_code == 204
        assert (await page.get("/app/mail")).headers["location"].startswith("/app/sign-in")
        async with server.client(token) as program:
            assert (await program.get("/v1/me")).status_code == 401
    assert (await server.api.get("/v1/users")).json()["total"] == 0


async def test_the_key_of_a_user_is_in_no_list_and_cannot_be_revoked(server: Server) -> None:
    await invite(server)
    listed = (await server.api.get("/v1/api-keys")).json()
    assert [key["name"] for key in listed["data"]] == ["first key"]
    rows = await server.resources.db.read(lambda tx: tx.all("select key_id from users"))
    assert (await server.api.delete(f"/v1/api-keys/{rows[0]['key_id']}")).status_code == 404


@pytest.mark.sqlite_alone
async def test_a_link_asked_for_by_mail_opens_once_in_that_browser_within_15_minutes(server: Server) -> None:
    await invite(server)
    async with browser(server) as joining:
        await join(server, joining)
    async with browser(server) as asking, browser(server) as other:
        known = await asking.post("/app/sign-in", data={"address": "Ann@example.org"})
        unknown = await other.post("/app/sign-in", data={"address": "nobody@example.org"})
        assert known.text == unknown.text
        assert [answer.status_code for answer in (known, unknown)] == [200, 200]
        [token] = await links_of(server, "mail")
        assert (await other.post("/app/sign-in", data={"mail": token})).status_code == 401
        assert (await asking.get("/app/sign-in", params={"mail": token})).status_code == 200
        assert (await asking.post("/app/sign-in", data={"mail": token})).status_code == 303
        assert (await asking.get("/app/mail")).status_code == 200
        assert (await asking.post("/app/sign-in", data={"mail": token})).status_code == 401
        await asking.post("/app/sign-in", data={"address": "ann@example.org"})
        late = (await links_of(server, "mail"))[-1]
        assert late != token
        server.clock.turn(15 * MINUTE)
        assert (await asking.post("/app/sign-in", data={"mail": late})).status_code == 401


@pytest.mark.sqlite_alone
async def test_nobody_fills_a_mailbox_by_asking(server: Server) -> None:
    await invite(server)
    async with browser(server) as page:
        await join(server, page)
    for number in range(mail_links.SIGN_IN_LINKS_AN_HOUR + 3):
        async with browser(server) as page:
            server.clock.turn(MINUTE)
            answer = await page.post("/app/sign-in", data={"address": "ann@example.org"})
            assert answer.status_code in (200, 429), number
    assert len(await links_of(server, "mail")) <= mail_links.SIGN_IN_LINKS_AN_HOUR


@pytest.mark.sqlite_alone
async def test_where_no_mail_leaves_the_page_shows_it(tmp_path: Any, clock: Any) -> None:
    async with running_server(settings(tmp_path, **CAPTURING), clock) as server:
        user = await invite(server)
        assert "/app/sign-in?invitation=" in user["invitationUrl"]
        await invite(server, "olga@example.org", "owner")
        async with asyncio.timeout(60):
            while await server.resources.db.read(
                lambda tx: tx.all("select id from letters where state = 'pending'")
            ):
                await asyncio.sleep(0.02)
        link = await new_link(server)
        async with signed_in(server, link=link) as page:
            shown = (await page.get("/app/settings/people")).text
            assert user["invitationUrl"] in shown
            assert "olga@example.org: You are invited" in shown
        await invite(server, "admin@example.org", "admin")
        async with browser(server) as page:
            rows = await server.resources.db.read(
                lambda tx: tx.all("select content from letters where recipient = 'admin@example.org'")
            )
            found = re.search(r"invitation=([\w-]+)", rows[0]["content"])
            assert found
            await page.post("/app/sign-in", data={"invitation": found[1]})
            assert "olga@example.org: You are invited" not in (await page.get("/app/settings/people")).text


@pytest.mark.sqlite_alone
async def test_a_person_signs_out_everywhere_else_and_nobody_else_is_touched(server: Server) -> None:
    await invite(server, role="viewer")
    told = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    async with browser(server) as left, browser(server, **{"User-Agent": told}) as here:
        await join(server, left, name="Ann")
        await here.post("/app/sign-in", data={"address": "ann@example.org"})
        token = (await links_of(server, "mail"))[-1]
        assert (await here.post("/app/sign-in", data={"mail": token})).status_code == 303
        async with signed_in(server) as other:
            shown = (await here.get("/app/sessions")).text
            assert "Firefox on Linux" in shown
            assert "Sign out everywhere else" in shown
            assert (await here.post("/app/sessions/others/end")).status_code == 303
            assert (await here.get("/app/sessions")).status_code == 200
            assert (await left.get("/app/sessions")).headers["location"].startswith("/app/sign-in")
            assert "Sign out everywhere else" not in (await other.get("/app/sessions")).text
            assert (await other.post("/app/sessions/others/end")).status_code == 403
    [ended] = await audit_of(server, "sessions.ended")
    assert (ended["actor"]["name"], ended["after"]) == ("Ann", {"sessions": 1})
