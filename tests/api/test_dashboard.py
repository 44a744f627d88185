"""The door of the dashboard: who gets in, what ends a session, and what a page carries."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator

import httpx2
import pytest

from postroom.accounts import keys, sessions
from postroom.accounts.scope import default_pod
from postroom.clock import DAY, MINUTE
from tests.conftest import Server
from tests.plain_transport import http_client
from tests.raw_mails import raw_mail

pytestmark = pytest.mark.sqlite_alone

COOKIE = "postroom_session"


def browser(server: Server, **headers: str) -> httpx2.AsyncClient:
    own = {"Origin": server.base_url, "Accept": "text/html", **headers}
    return http_client(server.base_url, own)


@contextlib.asynccontextmanager
async def signed_in(server: Server, key: str = "", **form: str) -> AsyncIterator[httpx2.AsyncClient]:
    """With a key, or as a person with a link."""
    proof = form if "link" in form else {"key": key or server.token, **form}
    async with browser(server) as client:
        answer = await client.post("/app/sign-in", data=proof)
        assert answer.status_code == 303, answer.text
        yield client


async def new_link(server: Server, is_operator: bool = False) -> str:
    token, account = sessions.new_token(), (await server.api.get("/v1/me")).json()["accountId"]
    await server.resources.db.write(sessions.add_link, account, is_operator, token, server.clock.now())
    return token


async def do_it_now(page: httpx2.AsyncClient, node: str = "") -> None:
    """What this person asked for a moment ago, and could still take back."""
    shown = (await page.get(f"{node}/app/drafts")).text
    for path in re.findall(r'action="(/app/delayed/dly_\w+/now)"', shown):
        assert (await page.post(f"{node}{path}", data={"back": "/app"})).status_code in (
            303,
            404,
        )  # 404: it is done


async def test_a_browser_is_led_to_the_pages_and_everybody_else_gets_json(server: Server) -> None:
    async with browser(server) as page:
        led = await page.get("/")
        assert (led.status_code, led.headers["location"]) == (303, "/app")
        to_sign_in = await page.get("/app/mail?inboxId=inb_1")
        assert to_sign_in.headers["location"] == "/app/sign-in?next=%2Fapp%2Fmail%3FinboxId%3Dinb_1"
    assert (await server.api.get("/")).json()["error"] == "not_found"


async def test_a_key_becomes_a_session_with_a_cookie_and_pages_that_no_script_of_others_reads(
    server: Server,
) -> None:
    async with browser(server) as page:
        answer = await page.post("/app/sign-in", data={"key": server.token, "name": "Ann"})
        cookie = answer.headers["set-cookie"]
        assert answer.headers["location"] == "/app"
        assert {"HttpOnly", "SameSite=lax", "Path=/app"} <= set(cookie.split("; "))
        assert "Secure" not in cookie  # on loopback without TLS
        shown = await page.get("/app/sessions")
        assert shown.status_code == 200
        assert "Ann" in shown.text
        for path in ("/app", "/app/sessions", "/app/nothing", "/app/sign-in"):
            headers = (await page.get(path)).headers
            policy = headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
            assert "frame-ancestors 'none'" in policy
            assert headers["cache-control"] == "no-store"
            assert headers["referrer-policy"] == "same-origin"
            assert headers["x-content-type-options"] == "nosniff"


async def test_files_have_their_hash_in_the_name_and_are_kept_for_ever(server: Server) -> None:
    async with browser(server) as page:
        text = (await page.get("/app/sign-in")).text
        [style] = re.findall(r'href="(/app/static/dashboard-[0-9a-f]{12}\.css)"', text)
        answer = await page.get(style)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-encoding"] == "gzip"
        assert int(answer.headers["content-length"]) < 12_000
        assert (await page.get("/app/static/dashboard-000000000000.css")).status_code == 404


async def test_the_first_page_with_everything_is_light_and_the_next_ones_lighter(server: Server) -> None:
    inbox_id = await server.new_inbox("light")
    await asyncio.gather(
        *(server.deliver(raw_mail(subject=f"Letter {number}"), "light") for number in range(50))
    )
    for number in range(20):
        reply = {"in_reply_to": "<l0@x>"} if number else {}
        await server.deliver(raw_mail("word " * 2000, message_id=f"<l{number}@x>", **reply), "light")
    last = None
    for _ in range(70):  # a mail is listed with its event, a moment after it was taken
        last = (await server.next_event(last))["event_id"]
    async with signed_in(server) as page:
        fetched = {"Sec-Fetch-Site": "same-origin"}  # as a browser says
        mail = await page.get(f"/app/mail?inboxId={inbox_id}", headers=fetched)
        assert mail.text.count("data-row=") == 50
        files = set(re.findall(r'(?:href|src)="(/app/static/[^"]+)"', mail.text))
        whole = sum([len((await page.get(file)).content) for file in files])
        assert whole + len(mail.content) < 150_000
        packed = sum([int((await page.get(file)).headers["content-length"]) for file in files])
        next_page = int(mail.headers["content-length"])
        assert packed + next_page < 100_000
        assert next_page < 20_000
        listed = (await server.api.get(f"/v1/inboxes/{inbox_id}/threads?limit=100")).json()["data"]
        [long] = [each["id"] for each in listed if each["messageCount"] == 20]
        thread = await page.get(f"/app/mail/{long}?inboxId={inbox_id}", headers=fetched)
        assert int(thread.headers["content-length"]) < 20_000
        assert len(thread.content) < 100_000


async def test_a_link_opens_the_dashboard_once_within_a_day_and_a_key_of_one_inbox_never(
    server: Server,
) -> None:
    link = await new_link(server)
    async with browser(server) as first, browser(server) as second:
        assert link in (await first.get("/app/sign-in", params={"link": link})).text
        assert (await first.post("/app/sign-in", data={"link": link})).status_code == 303
        assert (await second.post("/app/sign-in", data={"link": link})).status_code == 401
        assert (await second.get("/app")).headers["location"].startswith("/app/sign-in")
    link = await new_link(server)
    server.clock.turn(DAY)
    async with browser(server) as page:
        assert (await page.post("/app/sign-in", data={"link": link})).status_code == 401
    inbox_id = await server.new_inbox("robot")
    token = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={})).json()["token"]
    async with browser(server) as page:
        assert (await page.post("/app/sign-in", data={"key": token})).status_code == 403


async def test_a_session_ends_after_14_days_and_with_its_key(server: Server) -> None:
    async with signed_in(server) as page:
        server.clock.turn(14 * DAY - 1)
        assert (await page.get("/app/sessions")).status_code == 200
        server.clock.turn(1)
        assert (await page.get("/app/sessions")).headers["location"].startswith("/app/sign-in")
    async with signed_in(server) as page:
        me = (await server.api.get("/v1/me")).json()
        await server.resources.db.write(keys.remove, me["keyId"])
        assert (await page.get("/app/sessions")).headers["location"].startswith("/app/sign-in")


async def test_signing_out_or_in_again_ends_the_session_and_no_token_of_others_is_taken_over(
    server: Server,
) -> None:
    async with signed_in(server) as page:
        token = page.cookies[COOKIE]
        assert (await page.post("/app/sign-out")).headers["location"] == "/app/sign-in"
        again = await page.get("/app/sessions", headers={"Cookie": f"{COOKIE}={token}"})
        assert again.status_code == 303
    async with signed_in(server) as page:
        old = page.cookies[COOKIE]
        await page.post("/app/sign-in", data={"key": server.token})
        assert page.cookies[COOKIE] != old
        async with browser(server, Cookie=f"{COOKIE}={old}") as thief:
            assert (await thief.get("/app/sessions")).status_code == 303
    async with browser(server, Cookie=f"{COOKIE}=chosen") as page:
        answer = await page.post("/app/sign-in", data={"key": server.token})
        assert f"{COOKIE}=chosen" not in answer.headers["set-cookie"]
        assert (await page.get("/app/sessions")).status_code == 303


async def test_a_person_ends_the_session_of_another(server: Server) -> None:
    async with signed_in(server, name="Ann") as ann, signed_in(server, name="Ben") as ben:
        page = (await ann.get("/app/sessions")).text
        [other] = set(re.findall(r"/app/sessions/(ses_\w+)/end", page))
        assert (await ann.post(f"/app/sessions/{other}/end")).status_code == 303
        await do_it_now(ann)
        assert (await ben.get("/app/sessions")).status_code == 303
    [entry] = (await server.api.get("/v1/audit", params={"action": "session.ended"})).json()["data"]
    assert (entry["actor"]["name"], entry["target"]) == ("Ann", other)


OF_OTHER_SITES = (
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
)


async def test_a_change_that_another_site_asks_for_is_refused_and_same_origin_is_enough(
    server: Server,
) -> None:
    async with signed_in(server) as page:
        for headers in OF_OTHER_SITES:
            answer = await page.post("/app/pause", data={"action": "pause"}, headers=headers)
            assert answer.status_code == 403, headers
            answer = await page.post("/app/sign-in", data={"key": server.token}, headers=headers)
            assert answer.status_code == 403, headers
        assert (await server.api.get("/v1/pause")).json()["paused"] is False
        own = {"Origin": "https://mail.example", "Sec-Fetch-Site": "same-origin"}  # behind a proxy
        answer = await page.post("/app/pause", data={"action": "pause", "back": "/app/mail"}, headers=own)
        assert answer.headers["location"] == "/app/mail"
    assert (await server.api.get("/v1/pause")).json()["by"]["type"] == "session"


ELSEWHERE = [
    "https://evil.example/",
    "//evil.example",
    "/app//evil.example",
    "/app\\evil",
    "/application",
    "/v1/me",
    "/app/\r\nX: y",
    "javascript:alert(1)",
]


async def test_nobody_is_led_elsewhere_after_signing_in(server: Server) -> None:
    for wanted in ELSEWHERE:
        async with browser(server) as page:
            answer = await page.post("/app/sign-in", data={"key": server.token, "next": wanted})
            assert answer.headers["location"] == "/app", wanted


async def test_whoever_guesses_has_to_wait_longer_each_time(server: Server) -> None:
    async with browser(server) as page:
        statuses = [
            (await page.post("/app/sign-in", data={"key": f"pr_wrong{number}"})).status_code
            for number in range(6)
        ]
        assert statuses == [401] * 5 + [429]
        answer = await page.post("/app/sign-in", data={"key": "pr_wrong"})
        assert answer.headers["retry-after"] == "2"
        assert (await page.post("/app/sign-in", data={"key": server.token})).status_code == 303


async def test_who_tries_the_beginning_of_a_key_elsewhere_keeps_its_owner_from_nothing(
    server: Server,
) -> None:
    elsewhere = httpx2.AsyncHTTPTransport(local_address="127.0.0.2")
    headers = {"Origin": server.base_url, "Accept": "text/html"}
    guess = {"key": f"{server.token[:7]}{'x' * 36}"}
    async with httpx2.AsyncClient(
        base_url=server.base_url, headers=headers, timeout=120, transport=elsewhere
    ) as stranger:
        statuses = [(await stranger.post("/app/sign-in", data=guess)).status_code for _ in range(6)]
        assert statuses == [401] * 5 + [429]
        answer = await stranger.post("/app/sign-in", data={"key": server.token})
        assert answer.status_code == 429  # there also with the right one
        async with browser(server) as page:
            assert (await page.post("/app/sign-in", data={"key": server.token})).status_code == 303
        server.clock.turn(MINUTE)
        assert (await stranger.post("/app/sign-in", data={"key": server.token})).status_code == 303


async def test_a_person_of_one_pod_sees_nobody_elses_session(server: Server) -> None:
    account = (await server.api.get("/v1/me")).json()["accountId"]
    token = keys.new_token()
    await server.resources.db.write(
        keys.add, account, None, "pod", token, server.clock.now(), pod_id=default_pod(account)
    )
    async with signed_in(server, name="Account"), signed_in(server, token, name="Tenant") as tenant:
        page = (await tenant.get("/app/sessions")).text
        assert "Tenant" in page
        assert "Account" not in page


async def test_a_key_without_permission_opens_pages_but_changes_nothing(server: Server) -> None:
    account = (await server.api.get("/v1/me")).json()["accountId"]
    token = keys.new_token()
    await server.resources.db.write(
        keys.add, account, None, "reader", token, server.clock.now(), asked=["read"]
    )
    async with signed_in(server, token) as reader:
        assert (await reader.get("/app/sessions")).status_code == 200
        refused = await reader.post("/app/pause", data={"action": "pause"})
        assert refused.status_code == 403
        assert "manage" in refused.text


async def test_text_that_somebody_else_wrote_stays_text(server: Server) -> None:
    async with browser(server, **{"User-Agent": "<script>alert(1)</script>"}) as page:
        await page.post("/app/sign-in", data={"key": server.token, "name": "<img src=x>"})
        shown = (await page.get("/app/sessions")).text
        assert "<script>alert" not in shown
        assert "<img" not in shown
        assert "&lt;img" in shown
