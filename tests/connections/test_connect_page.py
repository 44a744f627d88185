"""The page that leads to a way in: chosen, filled in, checked, and a mail sent through it."""

import re
from html import unescape
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx2
import pytest

from postroom.accounts.oauth.grants import challenge_of
from postroom.web.dashboard.delivery import connections as page_of
from postroom.web.dashboard.delivery import mailbox_consent, steps
from postroom_client.cli.connections import services
from tests.api.test_dashboard import do_it_now, signed_in
from tests.conftest import Server
from tests.couriers.http_peer import HttpPeer, say

pytestmark = pytest.mark.sqlite_alone
PATH = "/app/settings/connections"


def test_page_and_command_know_the_same_services() -> None:
    assert tuple(services.SERVICES) == page_of.SERVICES
    hosts = {name: each[:3] for name, each in page_of.MAILBOXES.items()}
    known = services.MAILBOXES
    assert hosts == {name: (known[name].host, known[name].smtp_host, known[name].smtp_port) for name in known}
    assert {name: each.token_url for name, each in known.items() if each.token_url} == page_of.TOKEN_URLS
    without = tuple(name for name, each in known.items() if not each.takes_passwords)
    assert without == page_of.WITHOUT_PASSWORDS
    assert tuple(steps.BEFORE) == page_of.WAYS
    assert tuple(steps.AFTER) == page_of.SERVICES
    assert steps.REGISTERED_AT.keys() == page_of.TOKEN_URLS.keys() == mailbox_consent.PROVIDERS.keys()


def test_a_mailbox_at_microsoft_is_signed_in_to_by_oauth() -> None:
    form = page_of.ConnectionForm(
        way="microsoft",
        inbox_id="inb_1",
        username="ann@acme.example",
        client_id="c",
        client_secret="s",
        refresh_token="r",
    )
    made = page_of.to_new_connection(form)
    assert (made.host, made.password, made.smtp and made.smtp.port) == ("outlook.office365.com", None, 587)
    assert made.oauth is not None
    assert made.oauth.token_url == "https://login.microsoftonline.com/common/oauth2/v2.0/token"
    assert (made.oauth.client_id, made.oauth.client_secret, made.oauth.refresh_token) == ("c", "s", "r")


async def test_a_service_is_connected_and_its_url_shown_once(server: Server) -> None:
    async with signed_in(server) as page:
        inbox = (await server.api.post("/v1/inboxes", json={"mailboxName": "agent"})).json()
        form = {"way": "raw", "inboxId": inbox["id"]}
        made = await page.post(PATH, data=form)
        url = re.search(r"http://[^<\s]+/inbound/[A-Za-z0-9_-]+", made.text)
        assert (made.status_code, bool(url)) == (200, True)
        connection = (await server.api.get("/v1/connections")).json()["data"][0]
        shown = await page.get(f"{PATH}/{connection['id']}")
        assert "/inbound/" not in shown.text
        assert "not yet" in shown.text
        assert url is not None
        await server.api.post(url[0], content=b"From: a@example.org\r\nSubject: Hi\r\n\r\nHello\r\n")
        sent = await page.post(
            f"{PATH}/{connection['id']}/try", data={"inboxId": inbox["id"], "to": inbox["address"]}
        )
        assert sent.status_code == 303
        shown = await page.get(f"{PATH}/{connection['id']}")
        assert "Postroom is connected" in shown.text
        assert 'class="state green">yes' in shown.text
        tried = await page.post(f"{PATH}/{connection['id']}/test")
        assert tried.status_code == 303
        assert (await page.post(f"{PATH}/{connection['id']}/delete")).status_code == 303
        await do_it_now(page)


async def test_what_the_interface_refuses_the_page_refuses(server: Server) -> None:
    async with signed_in(server) as page:
        inbox_id = await server.new_inbox("agent")
        good = {"way": "imap", "inboxId": inbox_id, "host": "127.0.0.1", "port": "1", "username": "a@x.y"}
        for change in ({"way": "elsewhere"}, {"host": "no host"}, {"port": "70000"}, {"username": "a"}, {}):
            answer = await page.post(PATH, data={**good, "password": "p", **change})
            assert answer.status_code == (400 if change else 303), change
        listed = await page.get(PATH)
        assert "a@x.y" in listed.text
        with_oauth = await page.get(PATH, params={"way": "microsoft"})
        assert 'name="clientSecret"' in with_oauth.text
        assert 'name="password"' not in with_oauth.text
        either = await page.get(PATH, params={"way": "gmail"})
        assert 'name="clientSecret"' in either.text
        assert 'name="password"' in either.text


CONSENT = {"way": "gmail", "username": "ann@gmail.com", "clientId": "c", "clientSecret": "s"}


def json_answer(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


async def ask_for_access(page: httpx2.AsyncClient, inbox_id: str) -> dict[str, str]:
    """What the way to Google says."""
    asked = await page.post(page_of.CONSENT_PATH, data={**CONSENT, "inboxId": inbox_id})
    way = re.search(r'href="(https://accounts\.google\.com/[^"]+)"', asked.text)
    assert way is not None, asked.text
    return dict(parse_qsl(urlsplit(unescape(way[1])).query))


async def test_a_mailbox_at_google_is_connected_once_it_was_allowed_there(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox_id = await server.new_inbox("agent")
    async with signed_in(server) as page, HttpPeer(say(json_answer(b'{"refresh_token": "r1"}'))) as google:
        monkeypatch.setitem(page_of.TOKEN_URLS, "gmail", google.url("/token"))
        monkeypatch.setitem(page_of.MAILBOXES, "gmail", ("127.0.0.1", "", 465, ""))
        query = await ask_for_access(page, inbox_id)
        assert (query["scope"], query["access_type"]) == ("https://mail.google.com/", "offline")
        answer = {"state": query["state"], "code": "c0de"}
        made = await page.get(page_of.CONSENT_PATH, params=answer)
        assert (made.status_code, made.headers["location"][: len(PATH)]) == (303, PATH)
        (connection,) = (await server.api.get("/v1/connections")).json()["data"]
        assert (connection["host"], connection["address"]) == ("127.0.0.1", "ann@gmail.com")
        (posted,) = google.requests
        form = {name: value for name, (value,) in parse_qs(posted.body.decode()).items()}
        assert (form["code"], form["client_secret"]) == ("c0de", "s")
        assert form["redirect_uri"] == query["redirect_uri"]
        assert challenge_of(form["code_verifier"]) == query["code_challenge"]
        assert (await page.get(page_of.CONSENT_PATH, params=answer)).status_code == 401  # used up


async def test_access_that_is_not_given_is_told_and_connects_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox_id = await server.new_inbox("agent")
    refused = json_answer(b'{"error": "invalid_client"}', b"401 Unauthorized")
    async with signed_in(server) as page, HttpPeer(say(refused)) as google:
        monkeypatch.setitem(page_of.TOKEN_URLS, "gmail", google.url("/token"))
        for answer, words in (
            ({"error": "access_denied"}, "gave no access: access_denied"),
            ({"code": "c0de"}, "invalid_client. Check the client ID"),
        ):
            query = await ask_for_access(page, inbox_id)
            told = await page.get(page_of.CONSENT_PATH, params={"state": query["state"], **answer})
            assert (told.status_code, words in told.text) == (400, True), told.text
        async with signed_in(server) as another:
            query = await ask_for_access(page, inbox_id)
            taken = await another.get(page_of.CONSENT_PATH, params={"state": query["state"], "code": "c0de"})
            assert taken.status_code == 401
    assert (await server.api.get("/v1/connections")).json()["total"] == 0
