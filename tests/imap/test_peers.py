"""Clients that other people wrote: curl reads an inbox, swaks sends from it."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.letters import letter
from tests.programs import path_of

OWN = "agent@postroom.localhost"
pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    config = settings(tmp_path, DATABASE_URL=database_url, IMAP="127.0.0.1:0", SUBMISSION="127.0.0.1:0")
    async with running_server(config, clock) as running:
        yield running


async def run(program: str, *arguments: str) -> bytes:
    command = [path_of(program), *arguments]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    output: bytes = done.stdout
    return output


@pytest.mark.needs("curl")
@pytest.mark.parametrize("options", [[], ["--ssl-reqd", "--insecure"]], ids=["plain", "tls"])
async def test_curl_lists_and_fetches(server: Server, options: list[str]) -> None:
    await server.new_inbox("agent")
    await server.deliver(letter("By curl", subject="Fetched"), "agent")
    url = f"imap://127.0.0.1:{server.imap_port}"
    who = ("--silent", "--show-error", "--user", f"{OWN}:{server.token}", *options)
    assert b"Trash" in await run("curl", *who, f"{url}/")
    mail = await run("curl", *who, f"{url}/INBOX/;MAILINDEX=1")
    assert b"Subject: Fetched\r\n" in mail
    assert mail.endswith(b"By curl\r\n")
    assert b"SEARCH 1" in await run("curl", *who, f"{url}/INBOX?SUBJECT%20fetched")


@pytest.mark.needs("swaks")
async def test_swaks_sends_and_hears_why_not(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    who = (
        *("--server", f"127.0.0.1:{server.submission_port}", "--auth-user", OWN),
        *("--auth-password", server.token, "--auth", "PLAIN", "--to", "bob@example.com", "--from", OWN),
    )
    assert b"250 2.0.0 Accepted as msg_" in await run("swaks", *who, "--body", "By swaks")
    path = f"/v1/inboxes/{inbox_id}/messages"
    (sent,) = (await server.api.get(path, params={"direction": "outbound"})).json()["data"]
    assert sent["bodyText"].strip() == "By swaks"
    refused = ("--h-From", "boss@example.com", "--header", "X-Test: 1")
    command = [path_of("swaks"), *who, *refused]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=120)
    assert done.returncode != 0
    assert b"550 5.7.1 forbidden: From must be" in done.stdout
