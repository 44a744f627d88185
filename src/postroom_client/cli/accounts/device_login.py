"""Sign in without a key: a person compares a code in a browser and approves it, and the key comes back."""

import time
import webbrowser
from typing import TYPE_CHECKING, Any

import httpx2
import typer

from postroom_client.cli import output

if TYPE_CHECKING:
    from postroom_client.cli.context import CommandContext

POLL_SECONDS = 2.0
PENDING, READY = 202, 200


def ask(context: "CommandContext", base_url: str) -> str:
    """Return the key, once somebody has approved the code."""
    with httpx2.Client(base_url=base_url, timeout=30) as http:
        started = _start(http, base_url)
        output.note(f"Compare this code and allow it: {started['userCode']}")
        output.note(started["verifyUrl"])
        if not context.is_json:
            webbrowser.open(started["verifyUrl"])
        return _wait(http, started)


def _start(http: httpx2.Client, base_url: str) -> dict[str, Any]:
    try:
        answer = http.post("/auth/cli/start", json={})
    except httpx2.HTTPError as error:
        raise typer.BadParameter(f"{base_url} does not answer: {error}") from None
    if answer.status_code != READY:
        raise typer.BadParameter(f"{base_url} does not support this sign-in ({answer.status_code}).")
    started: dict[str, Any] = answer.json()
    return started


def _wait(http: httpx2.Client, started: dict[str, Any]) -> str:
    ends = time.monotonic() + started["expiresInSeconds"]
    while time.monotonic() < ends:
        answer = http.get("/auth/cli/poll", params={"requestId": started["requestId"]})
        if answer.status_code == READY:
            return str(answer.json()["apiKey"])
        if answer.status_code != PENDING:
            break
        time.sleep(POLL_SECONDS)
    raise typer.BadParameter("it was refused, or nobody allowed it in time")
