"""A real server in a process of its own, as `make run` starts it, and the command in this one."""

import contextlib
import functools
import json
import os
import signal
import smtplib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer.testing
from typer.main import get_command
from typer.testing import CliRunner, Result

from postroom_client import Client
from postroom_client.cli import app
from postroom_client.cli.command import in_order, narrowed
from postroom_client.results import Inbox, Message
from tests import warm_start
from tests.ports import free_port
from tests.waiting import wait_until

API_KEY = "pr_" + "k" * 40
NO_RELAY = "smtp://127.0.0.1:1"  # mail to the world outside stays in the queue
DOMAIN = "postroom.localhost"
OWN_SETTINGS = ("POSTROOM_", "XDG_", "NO_COLOR", "COLUMNS")


@dataclass(frozen=True, slots=True)
class LiveServer:
    """`config` is the configuration folder in which the server has left its profile."""

    base_url: str
    smtp_port: int
    config: Path = Path()

    def client(self) -> Client:
        return Client(API_KEY, self.base_url)

    def deliver(self, raw: bytes, recipient: str, sender: str = "alice@example.com") -> None:
        with smtplib.SMTP("127.0.0.1", self.smtp_port) as smtp:
            smtp.sendmail(sender, [recipient], raw)

    def arrived(self, inbox: Inbox, count: int = 1) -> list[Message]:
        """The first mails that came, each once its event has been told."""
        found: list[Message] = []
        after: str | None = None
        with self.client() as client:
            while len(found) < count:
                page = client.list_events(
                    after=after, wait=60, inbox_ids=[inbox.id], event_types=["message.received"]
                )
                assert page.data, "no mail came"
                after = page.next
                found += [client.get_message(event.message.id) for event in page.data if event.message]
        return found

    def put_off(self, message_id: str) -> None:
        """Waits until a sent mail was tried once and waits for its next attempt."""
        with self.client() as client:
            wait_until(lambda: client.get_message(message_id).recipients[0].last_reply)


@dataclass(frozen=True, slots=True)
class Ports:
    http: int
    smtp: int

    @classmethod
    def free(cls) -> "Ports":
        return cls(free_port(), free_port())


@contextlib.contextmanager
def running_server(
    folder: Path, ports: Ports | None = None, *, ending: signal.Signals = signal.SIGTERM, **more: str
) -> Iterator[LiveServer]:
    """Starts again on the same data and ports, when they are given again. `more` are settings."""
    ports = ports or Ports.free()
    settings = {
        "POSTROOM_DATA_DIR": str(folder / "data"),
        "POSTROOM_HTTP": f"127.0.0.1:{ports.http}",
        "POSTROOM_SMTP": f"127.0.0.1:{ports.smtp}",
        "POSTROOM_API_KEY": API_KEY,
        "POSTROOM_OUTBOUND": NO_RELAY,
        "POSTROOM_WORKERS": "0",  # a client sees no difference, and half of the start is saved
        "XDG_CONFIG_HOME": str(folder / "server-config"),
        **more,
    }
    with (folder / "server.log").open("ab") as log:
        process = warm_start.start({**plain_environment(), **settings}, log)
    assert process.stdout is not None
    with process.stdout:
        assert "is ready" in process.stdout.readline(), (folder / "server.log").read_text()
        try:
            yield LiveServer(f"http://127.0.0.1:{ports.http}", ports.smtp, folder / "server-config")
        finally:
            left = process.poll()
            process.send_signal(ending)
            process.wait()
            written = (folder / "server.log").read_text()
            assert left is None, f"the server had ended with {left}:\n{written[-4000:]}"


def plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(OWN_SETTINGS)}


@functools.cache
def called_by(word: str) -> typer.Typer:
    return narrowed(app, [word])


# Built once for each: that takes longer than most calls do.
typer.testing._get_command = functools.cache(get_command)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs commands with a configuration folder of its own."""

    server: LiveServer
    folder: Path

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "XDG_CONFIG_HOME": str(self.folder),
            "POSTROOM_SMTP": f"127.0.0.1:{self.server.smtp_port}",
        } | more

    def run(self, *arguments: str, stdin: str | bytes | None = None, **more: str) -> Result:
        understood = in_order(app, list(arguments))
        called = called_by(understood[0]) if understood else app
        return CliRunner().invoke(called, understood, input=stdin, env=self.environment(**more))

    def human(self, *arguments: str, **more: str) -> str:
        """What a person sees on stdout; the command must succeed."""
        result = self.run(*arguments, "--no-json", **more)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: str, **more: str) -> Any:
        """What a program reads on stdout; the command must succeed."""
        result = self.run(*arguments, **more)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)
