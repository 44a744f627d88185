"""How often a person may open pages and ask for links, and what a page takes for a form."""

import asyncio
from typing import Any, cast
from urllib.parse import urlencode

import pytest
from starlette.requests import Request
from starlette.types import Message

from postroom.accounts import accounts, sessions
from postroom.accounts.rules import limits
from postroom.accounts.scope import Scope
from postroom.accounts.sessions import SignInGrant, SignInOrigin
from postroom.errors import UnsupportedMediaType
from postroom.resources import Resources
from postroom.storage.database import Database, Tx
from postroom.web.dashboard import forms
from postroom.web.dashboard.attempts import FREE_ATTEMPTS
from postroom.web.dashboard.dashboard import Dashboard
from postroom.web.dashboard.sign_in import SignIn
from tests.dashboard.contexts import CONFIG
from tests.doubles import START, FakeClock
from tests.operations.callers import make_caller
from tests.stored import make_inbox

pytestmark = pytest.mark.sqlite_alone
UNUSED = cast(Any, None)


def request(method: str, path: str, form: dict[str, str] | None = None, **headers: str) -> Request:
    """By one of our own pages."""
    given = {"sec_fetch_site": "same-origin", "content_type": forms.FORM, **headers}
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": raw}

    async def receive() -> Message:
        return {"type": "http.request", "body": urlencode(form or {}).encode(), "more_body": False}

    return Request({**scope, "client": ("192.0.2.7", 1), "server": ("192.0.2.1", 80)}, receive)


@pytest.fixture
def dashboard(db: Database) -> Dashboard:
    resources = Resources(CONFIG, db, UNUSED, FakeClock(), UNUSED, asyncio.Event())
    return Dashboard(resources, UNUSED, UNUSED)


async def status_of(dashboard: Dashboard, asked: Request) -> int:
    _, response = await dashboard.answer(asked, "req_1")
    return response.status_code


async def test_a_person_opens_so_many_pages_a_minute_and_others_are_counted_apart(
    db: Database, dashboard: Dashboard
) -> None:
    def sign_in(tx: Tx) -> list[str]:
        account_id = make_inbox(tx).account_id
        accounts.set_limits(tx, accounts.get(tx, account_id), limits.encode_own({"requests_per_minute": 2}))
        caller = make_caller(tx, Scope(account_id))
        tokens = [sessions.new_token() for _ in range(2)]
        for token in tokens:
            grant = SignInGrant(account_id, caller.key_id, is_operator=False, by_key=True)
            sessions.add(tx, grant, "", SignInOrigin("", ""), token, START)
        return tokens

    first, second = await db.write(sign_in)
    asked = [request("GET", "/app/nowhere", cookie=f"{forms.COOKIE}={token}") for token in (first, second)]
    assert [await status_of(dashboard, asked[0]) for _ in range(3)] == [404, 404, 429]
    assert await status_of(dashboard, asked[1]) == 404


async def test_who_asks_for_links_again_and_again_has_to_wait(dashboard: Dashboard) -> None:
    def ask(address: str) -> Request:
        return request("POST", "/app/sign-in", {"address": address})

    found = [await status_of(dashboard, ask("ann@elsewhere.example")) for _ in range(FREE_ATTEMPTS + 1)]
    assert found == [200] * FREE_ATTEMPTS + [429]
    assert await status_of(dashboard, ask("ben@elsewhere.example")) == 200


async def test_a_form_is_what_a_page_of_ours_sends() -> None:
    def send(content_type: str) -> Request:
        return request("POST", "/app/sign-in", {"name": "Ann"}, content_type=content_type)

    for right in (forms.FORM, f"{forms.FORM.upper()} ; charset=utf-8"):
        assert await forms.read_form(send(right), SignIn) == SignIn(name="Ann")
    for wrong in ("", "text/plain", "application/json", "multipart/form-data; boundary=x"):
        with pytest.raises(UnsupportedMediaType):
            await forms.read_form(send(wrong), SignIn)
