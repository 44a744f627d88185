"""`postroom connect`: a person is led from nothing to a mail that came in and one that left."""

import asyncio
import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from postroom_client import Client
from postroom_client.cli import app, doctor_checks
from postroom_client.cli.command import narrowed
from postroom_client.settings import Settings
from tests.conftest import Server
from tests.connections.dovecot import PASSWORD, Dovecot, running_dovecot
from tests.connections.test_mailboxes import USER
from tests.couriers.smtp_peer import SmtpPeer
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone


async def run(server: Server, *arguments: str) -> Result:
    """In a thread: the server has this one."""
    where = ("--base-url", server.base_url, "--api-key", server.token, "--timeout", "60", "--json")
    words = ["connect", *arguments, *where]
    return await asyncio.to_thread(CliRunner().invoke, narrowed(app, words), words)


def verdicts(result: Result) -> dict[str, str]:
    return {check["name"]: check["verdict"] for check in json.loads(result.stdout)["checks"]}


async def bring_back(dovecot: Dovecot, peer: SmtpPeer) -> None:
    """What the mailbox's server takes for itself lies in the mailbox."""
    await until(lambda: peer.mails)
    await dovecot.put(USER, peer.mails[0].raw)


def mailbox(dovecot: Dovecot, peer: SmtpPeer, password: str = PASSWORD) -> list[str]:
    named = {
        "--host": "127.0.0.1",
        "--port": str(dovecot.port),
        "--username": USER,
        "--password": password,
        "--smtp-host": "127.0.0.1",
        "--smtp-port": str(peer.port),
    }
    return ["imap", *(word for pair in named.items() for word in pair)]


@pytest.mark.needs("dovecot")
async def test_a_mailbox_is_connected_until_a_mail_went_out_and_came_back(server: Server) -> None:
    async with running_dovecot() as dovecot, SmtpPeer(credentials=(USER, PASSWORD)) as peer:
        inbox_id = await server.new_inbox("agent")
        connecting = run(server, *mailbox(dovecot, peer), "--inbox-id", inbox_id)
        result, _ = await asyncio.gather(connecting, bring_back(dovecot, peer))
        assert result.exit_code == 0, result.output
        assert verdicts(result) == dict.fromkeys(
            ("sign in", "mailbox", "an email out", "an email in"), "pass"
        )


@pytest.mark.needs("dovecot")
async def test_a_wrong_password_is_the_first_check_that_fails(server: Server) -> None:
    async with running_dovecot() as dovecot, SmtpPeer() as peer:
        inbox_id = await server.new_inbox("agent")
        result = await run(server, *mailbox(dovecot, peer, "wrong"), "--inbox-id", inbox_id)
        assert (result.exit_code, verdicts(result)) == (1, {"sign in": "fail"})
        found = await asyncio.to_thread(ways, server)
        assert found.verdict in ("fail", "warn")


def ways(server: Server) -> doctor_checks.Finding:
    with Client(server.token, server.base_url) as client:
        return doctor_checks.check_ways(client, Settings("x", server.base_url, server.token, None))


async def test_a_service_gets_a_url_and_its_first_mail_ends_the_wait(server: Server) -> None:
    assert (await asyncio.to_thread(ways, server)).verdict == "warn"
    inbox = (await server.api.post("/v1/inboxes", json={"mailboxName": "agent"})).json()
    connecting = asyncio.create_task(run(server, "raw"))
    async with asyncio.timeout(60):
        while not (made := (await server.api.get("/v1/connections")).json()["data"]):
            await asyncio.sleep(0.05)
    await server.api.delete(f"/v1/connections/{made[0]['id']}")
    assert (await connecting).exit_code == 1  # it is gone: nothing is left to wait for
    made_again = (await server.api.post("/v1/connections", json={"kind": "http", "provider": "raw"})).json()
    assert (await asyncio.to_thread(ways, server)).verdict == "warn"
    raw = b"From: a@example.org\r\nSubject: Hi\r\n\r\nHello\r\n"
    posted: Any = await server.api.post(made_again["url"], content=raw, params={"to": inbox["address"]})
    assert posted.status_code == 200
    assert (await asyncio.to_thread(ways, server)).verdict == "pass"


async def test_what_is_missing_is_asked_for_by_its_option(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    result = await run(server, "gmail", "--inbox-id", inbox_id)
    assert result.exit_code == 2
    assert "--username" in result.output
    assert (await run(server, "elsewhere")).exit_code == 2


async def test_a_mailbox_that_takes_oauth_is_connected_without_a_password(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    named = {
        "--host": "127.0.0.1",
        "--port": "1",
        "--username": USER,
        "--client-id": "c",
        "--client-secret": "s",
        "--refresh-token": "r",
        "--token-url": "https://127.0.0.1:1/token",
        "--inbox-id": inbox_id,
    }
    result = await run(server, "imap", *(word for pair in named.items() for word in pair))
    assert (result.exit_code, verdicts(result)) == (1, {"sign in": "fail"})
    assert len((await server.api.get("/v1/connections")).json()["data"]) == 1
    missing = await run(server, "microsoft", "--username", USER, "--inbox-id", inbox_id)
    assert missing.exit_code == 2
    assert "--client-id" in missing.output
