"""People on two nodes of one PostgreSQL: one goes on with what the other began, and all counts once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from postroom.assembly import serving
from postroom.config import Config
from tests.api.test_dashboard import browser, do_it_now
from tests.api.test_oauth import REDIRECT, VERIFIER, answer_of, ask_mcp, asked, consent, register
from tests.api.test_oauth import person as somebody
from tests.api.test_passkeys import PAGE, SIGN_IN, options_for_adding
from tests.api.test_people import invite, join, links_of
from tests.authenticator import Authenticator
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.mail.keys import signing_key
from tests.outward.test_four_eyes import held_mail, hold_of, person
from tests.ports import free_port


class Nodes(NamedTuple):
    """Both are reached by the name of the first, as behind a proxy; `other` leads to the second."""

    server: Server
    other: str


@pytest.fixture
async def nodes(postgres_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Nodes]:
    first, second = free_port(), free_port()

    def config(name: str, port: int) -> Config:
        where = {"HTTP": f"127.0.0.1:{port}", "BASE_URL": f"http://localhost:{first}"}
        return settings(tmp_path / name, DATABASE_URL=postgres_url, **where)

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "blobs").mkdir()
    (tmp_path / "two" / "blobs").symlink_to(tmp_path / "one" / "blobs")
    async with (
        running_server(config("one", first), clock) as server,
        serving(config("two", second), clock, None, signing_key),
    ):
        yield Nodes(server, f"http://localhost:{second}")


@asynccontextmanager
async def invited(nodes: Nodes) -> AsyncIterator[httpx2.AsyncClient]:
    await invite(nodes.server)
    async with browser(nodes.server) as page:
        assert (await join(nodes.server, page)).status_code == 303
        yield page


async def test_a_link_asked_for_on_one_node_works_once_on_another(nodes: Nodes) -> None:
    async with invited(nodes), browser(nodes.server) as page, browser(nodes.server) as stranger:
        await page.post(SIGN_IN, data={"address": "ann@example.org"})
        [token] = await links_of(nodes.server, "mail")
        wrong = await stranger.post(f"{nodes.other}{SIGN_IN}", data={"mail": token})
        assert wrong.status_code == 401
        told = await asyncio.gather(
            *(page.post(f"{node}{SIGN_IN}", data={"mail": token}) for node in ("", nodes.other))
        )
        assert sorted(answer.status_code for answer in told) == [303, 401]
        assert (await page.get(f"{nodes.other}/app/mail")).status_code == 200
        assert (await page.get("/app/mail")).status_code == 200


async def test_a_passkey_offered_on_one_node_is_taken_once_on_another(nodes: Nodes) -> None:
    device = Authenticator(nodes.server.base_url)
    async with invited(nodes) as page:
        added = device.create(await options_for_adding(page))
        assert (await page.post(f"{nodes.other}{PAGE}", data={"credential": added})).status_code == 303
        options = (await page.post(f"{nodes.other}{SIGN_IN}/passkey")).json()
        shown = {"credential": device.get(options)}
        told = await asyncio.gather(
            *(page.post(f"{node}{SIGN_IN}", data=shown) for node in ("", nodes.other))
        )
        assert sorted(answer.status_code for answer in told) == [303, 401]


def exchanged(client_id: str, code: str) -> dict[str, str]:
    return {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": client_id,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
    }


async def test_a_code_of_one_node_is_exchanged_on_another_and_again_ends_it(nodes: Nodes) -> None:
    api = nodes.server.api
    async with somebody(nodes.server) as page:
        client_id = await register(nodes.server)
        code = answer_of(await consent(page, asked(client_id)))["code"]
        wrong = {**exchanged(client_id, code), "code_verifier": VERIFIER[::-1]}
        given = await api.post(f"{nodes.other}/oauth/token", data=exchanged(client_id, code))
        assert given.status_code == 200, given.text
        assert (await ask_mcp(nodes.server, given.json()["access_token"])).status_code == 200
        assert (await api.post("/oauth/token", data=wrong)).json()["error"] == "invalid_grant"
        assert (await api.post("/oauth/token", data=exchanged(client_id, code))).status_code == 400
        assert (await ask_mcp(nodes.server, given.json()["access_token"])).status_code == 401


async def test_a_refresh_token_used_on_both_nodes_at_once_ends_its_grant(nodes: Nodes) -> None:
    api = nodes.server.api
    async with somebody(nodes.server) as page:
        client_id = await register(nodes.server)
        code = answer_of(await consent(page, asked(client_id)))["code"]
        given = (await api.post(f"{nodes.other}/oauth/token", data=exchanged(client_id, code))).json()
        form = {
            "grant_type": "refresh_token",
            "refresh_token": given["refresh_token"],
            "client_id": client_id,
        }
        told = await asyncio.gather(
            *(api.post(f"{node}/oauth/token", data=form) for node in ("", nodes.other))
        )
        assert sorted(answer.status_code for answer in told) in ([200, 400], [400, 400])
        for answer in told:
            if answer.status_code == 200:
                assert (await ask_mcp(nodes.server, answer.json()["access_token"])).status_code == 401


async def approve_on(page: httpx2.AsyncClient, node: str, sent: dict[str, Any]) -> httpx2.Response:
    form = {"decision": "approve", "contentHash": sent["hold"]["contentHash"]}
    answer = await page.post(f"{node}/app/approvals/{sent['id']}", data=form)
    await do_it_now(page, node)
    return answer


async def test_four_eyes_hold_where_people_decide_on_different_nodes_at_once(nodes: Nodes) -> None:
    server, other = nodes
    sent = await held_mail(server, 3)
    async with person(server, "ann") as ann, person(server, "ben") as ben, person(server, "cas") as cas:
        told = await asyncio.gather(
            *(approve_on(page, node, sent) for page in (ann, ben) for node in ("", other))
        )
        assert {answer.status_code for answer in told} <= {303, 403}
        waiting = await hold_of(server, sent)
        assert (waiting["state"], len(waiting["approvedBy"])) == ("held", 2)
        last = await asyncio.gather(*(approve_on(cas, node, sent) for node in ("", other)))
        assert sorted(answer.status_code for answer in last)[0] == 303
    assert (await hold_of(server, sent))["state"] == "approved"
    actions = [each["action"] for each in (await server.api.get("/v1/audit")).json()["data"]]
    assert actions.count("message.approved") == 1
    assert actions.count("message.approval_given") == 2
