"""postroom listen: prints events as they happen, and hands them to a local endpoint."""

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import app
from postroom_client.cli.safe_text import one_line

if TYPE_CHECKING:
    import httpx2

    from postroom_client.transport.stream import Frame

FORWARD_TIMEOUT_SECONDS = 15.0


@command(app, "listen")
def listen(
    context: CommandContext,
    inbox_ids: Annotated[
        list[str] | None, typer.Option("--inbox-id", metavar="ID", help="Only of this inbox (repeatable).")
    ] = None,
    event_types: Annotated[
        list[str] | None, typer.Option("--event-type", metavar="KIND", help="Only of this kind (repeatable).")
    ] = None,
    after: Annotated[str | None, typer.Option(help="Start after this event.")] = None,
    forward_to: Annotated[str | None, typer.Option(help="POST each event to this URL, signed.")] = None,
    secret: Annotated[
        str | None, typer.Option(help="Secret to sign with; default: POSTROOM_WEBHOOK_SECRET, or a new one.")
    ] = None,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after this many events.")] = None,
) -> None:
    """Print events as they happen. When piped, one JSON object per line."""
    from postroom_client.calls import calls
    from postroom_client.transport.stream import Subscription, frames

    context.ask(calls.me())  # a wrong key or an unreachable server is reported now, not retried for ever
    subscription = Subscription(inbox_ids or (), event_types or (), after)
    coming = frames(context.client.base_url, context.client.api_key, subscription, _record_pause)
    with _forwarding(forward_to, secret) as forward, closing(coming):
        output.note("Listening. Ctrl-C ends it.")
        for frame in islice(coming, count):
            _show(context, frame)
            if forward is not None:
                output.note(f"  {forward_to} {forward(frame)}")


@contextmanager
def _forwarding(url: str | None, secret: str | None) -> "Iterator[Callable[[Frame], str] | None]":
    """Yield a function that posts a frame to the URL, as a webhook would, and returns the result."""
    import httpx2

    if url is None:
        yield None
        return
    key = _secret(secret)
    with httpx2.Client(timeout=FORWARD_TIMEOUT_SECONDS) as http:
        yield lambda frame: _hand_over(http, url, key, frame)


def _hand_over(http: "httpx2.Client", url: str, secret: str, frame: "Frame") -> str:
    import httpx2

    from postroom_client.webhook_signature import sign

    body, timestamp = frame.text.encode(), str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "X-Timestamp": timestamp,
        "X-Signature": sign(body, timestamp, secret),
        "X-Event-Id": frame.event_id,
    }
    try:
        answer = http.post(url, content=body, headers=headers)
    except (httpx2.RequestError, httpx2.InvalidURL) as error:
        return f"did not answer: {error}"
    return f"answered {answer.status_code}"


def _secret(flag: str | None) -> str:
    given = flag or os.environ.get("POSTROOM_WEBHOOK_SECRET")
    if given:
        return given
    made = secrets.token_hex(32)
    output.note(f"Events are signed with this secret: {made}")
    return made


def _record_pause(reason: str, seconds: float) -> None:
    output.note(f"The stream broke ({one_line(reason)}). Again in {seconds:.1f} s.")


def _show(context: CommandContext, frame: "Frame") -> None:
    import msgspec

    from postroom_client.results import Event

    if context.is_json:
        output.print_json(frame.text)
        return
    event = msgspec.json.decode(frame.text, type=Event)
    about = f"{event.message.sender}: {event.message.subject}" if event.message else ""
    clock = event.occurred_at.astimezone().strftime("%H:%M:%S") if event.occurred_at else ""
    output.print_text(one_line(f"{clock}  {event.event}  {event.inbox_id}  {event.thread_id}  {about}"))
