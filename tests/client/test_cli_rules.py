"""What holds for every command: the server away, exit codes, streams, pipes, and tests for each."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from postroom_client.cli import app
from postroom_client.results import Inbox
from postroom_client.transport import exchange
from tests import warm_start
from tests.client.live import Shell, plain_environment
from tests.client.peers import Answer, http_peer
from tests.command_tree import command_tree

AWAY = ("--base-url", "http://127.0.0.1:1", "--api-key", "pr_1")
INBOX = ("--inbox-id", "inb_1")
SCENARIO = Path(__file__).parent.parent.parent / "examples" / "scenarios" / "question.toml"

# What each command that needs the server is called with; the others need none.
CALLS: dict[str, tuple[str, ...]] = {
    "inbox create": ("name",),
    "inbox list": (),
    "inbox get": ("inb_1",),
    "inbox update": ("inb_1", "--display-name", "x"),
    "inbox delete": ("inb_1", "--yes"),
    "inbox aliases": ("inb_1",),
    "inbox add-alias": ("inb_1", "billing@example.com"),
    "inbox delete-alias": ("inb_1", "billing@example.com"),
    "inbox use": ("inb_1",),
    "inbox keys create": ("inb_1", "--name", "x"),
    "inbox keys list": ("inb_1",),
    "inbox keys revoke": ("inb_1", "key_1"),
    "connections add": ("http", "--provider", "raw"),
    "connections list": (),
    "connections show": ("con_1",),
    "connections change": ("con_1", "--signing-key", "k"),
    "connections test": ("con_1",),
    "connections delete": ("con_1", "--yes"),
    "connect": ("raw",),
    "domains change": ("dom_1", "--outbound", "resend://re_k@"),
    "pods change": ("pod_1", "--outbound", "resend://re_k@"),
    "users invite": ("ann@x.y", "--role", "viewer"),
    "users list": (),
    "users show": ("usr_1",),
    "users change": ("usr_1", "--role", "viewer"),
    "users reinvite": ("usr_1",),
    "users remove": ("usr_1", "--yes"),
    "send": ("--to", "a@x.y", "--subject", "s", "--body", "t", *INBOX),
    "reply": ("thr_1", "--body", "t"),
    "drafts create": INBOX,
    "drafts list": INBOX,
    "drafts show": ("drf_1",),
    "drafts change": ("drf_1", "--subject", "s"),
    "drafts attach": ("drf_1", __file__),
    "drafts detach": ("drf_1", "a.txt"),
    "drafts send": ("drf_1",),
    "drafts delete": ("drf_1",),
    "templates create": ("welcome", "--body", "Hello {{name}}", *INBOX),
    "templates list": (),
    "templates show": ("tpl_1",),
    "templates change": ("tpl_1", "--name", "x"),
    "templates delete": ("tpl_1",),
    "approvals list": (),
    "approvals show": ("msg_1",),
    "approvals approve": ("msg_1", "--yes"),
    "approvals reject": ("msg_1",),
    "approvals rules": (),
    "approvals require": ("strangers",),
    "approvals free": (),
    "budget show": INBOX,
    "budget set": (*INBOX, "--per-day", "5"),
    "budget clear": INBOX,
    "pause": (),
    "resume": (),
    "policy show": (),
    "policy mode": ("outbound", "allowlist"),
    "policy allow": ("outbound", "example.com"),
    "policy block": ("inbound", "example.com"),
    "policy remove": ("rul_1",),
    "policy stops": (),
    "pods create": ("--name", "x"),
    "pods list": (),
    "pods show": ("pod_1",),
    "pods rename": ("pod_1", "x"),
    "pods identify": ("pod_1", "x"),
    "pods delete": ("pod_1", "--yes"),
    "keys create": ("--name", "x"),
    "keys list": (),
    "keys change": ("key_1", "--name", "x"),
    "keys revoke": ("key_1",),
    "audit list": (),
    "audit export": ("audit.jsonl",),
    "threads list": INBOX,
    "threads get": ("thr_1",),
    "threads read": ("thr_1",),
    "threads unread": ("thr_1",),
    "threads assign": ("thr_1", "me"),
    "threads unassign": ("thr_1",),
    "threads snooze": ("thr_1", "2100-01-01T00:00:00Z"),
    "threads done": ("thr_1",),
    "threads open": ("thr_1",),
    "threads note": ("thr_1", "Hello"),
    "threads notes": ("thr_1",),
    "threads unnote": ("thr_1", "note_1"),
    "threads delete": ("thr_1", "--yes"),
    "messages list": INBOX,
    "messages get": ("msg_1",),
    "messages raw": ("msg_1",),
    "messages respond": ("msg_1", "accepted"),
    "messages redirect": ("msg_1", "boss@there.example"),
    "messages retry": ("msg_1",),
    "messages cancel": ("msg_1",),
    "messages label": ("msg_1", "--add", "x"),
    "messages reschedule": ("msg_1", "2100-01-01T00:00:00Z"),
    "messages release": ("msg_1",),
    "messages delete": ("msg_1", "--yes"),
    "attachments get": ("msg_1", "a.txt"),
    "attachments link": ("msg_1", "a.txt"),
    "attachments upload": (str(SCENARIO), *INBOX),
    "attachments text": ("msg_1", "a.txt"),
    "wait": INBOX,
    "listen": (),
    "webhook set": ("http://example.com",),
    "webhook show": (),
    "webhook test": (),
    "webhook rotate": (),
    "webhook deliveries": (),
    "webhook retry": ("whd_1",),
    "webhook delete": (),
    "webhooks create": ("http://example.com",),
    "webhooks list": (),
    "webhooks show": ("whk_1",),
    "webhooks change": ("whk_1", "--header", "X-A:b"),
    "webhooks test": ("whk_1",),
    "webhooks rotate": ("whk_1",),
    "webhooks delete": ("whk_1", "--yes"),
    "suppressions list": (),
    "suppressions add": ("a@x.y",),
    "suppressions remove": ("a@x.y",),
    "domains add": ("example.com",),
    "domains list": (),
    "domains show": ("dom_1",),
    "domains verify": ("dom_1",),
    "domains reports": ("dom_1",),
    "domains deliverability": (),
    "domains rotate-dkim": ("dom_1",),
    "domains health": ("dom_1",),
    "domains delete": ("dom_1", "--yes"),
    "search": ("word",),
    "threads label": ("thr_1", "--add", "x"),
    "notifications list": (),
    "notifications add": ("email", "ann@x.y"),
    "notifications remove": ("ann@x.y",),
    "feedback": ("bug", "It fails"),
    "usage": (),
    "simulate": ("--scenario", str(SCENARIO), *INBOX),
    "record": ("thr_1",),
    "status": (),
    "doctor": (),
    "login": (),
}
LOCAL = {"audit verify", "profiles list", "profiles use", "profiles remove", "logout", "open"}
TESTED_ELSEWHERE = {
    *("bridge", "mcp", "serve", "migrate", "accounts", "login-link"),
    *("setup", "certificates"),
    *("backup", "restore", "import", "blobs", "verify", "move"),
}


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    if not hasattr(command, "commands"):
        yield " ".join(path)
        return
    for name, child in command.commands.items():
        yield from leaves(child, (*path, name))


def test_every_command_is_known_to_these_tests() -> None:
    found = {name for name in leaves(command_tree()) if name.split()[0] not in TESTED_ELSEWHERE}
    assert found == CALLS.keys() | LOCAL


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No command waits before its second attempt."""
    monkeypatch.setattr(exchange, "backoff", lambda *_: 0.0)


@pytest.mark.usefixtures("at_once")
def test_a_server_that_is_away_is_said_clearly_with_exit_1(shell: Shell) -> None:
    for name, call in CALLS.items():
        result = shell.run(*name.split(), *call, *AWAY, "--no-json")
        assert result.exit_code == 1, name
        assert "No answer from http://127.0.0.1:1" in result.output, name
        assert "postroom serve" in result.stderr, name
        assert "Traceback" not in result.output, name


@pytest.mark.usefixtures("at_once")
def test_in_json_an_error_is_an_object_on_stderr(shell: Shell) -> None:
    for name in CALLS.keys() - {"status", "doctor"}:
        result = shell.run(*name.split(), *CALLS[name], *AWAY)
        assert (result.exit_code, result.stdout) == (1, ""), name
        assert json.loads(result.stderr)["error"] == "connection_failed", name


def test_a_wrong_key_is_exit_4(shell: Shell) -> None:
    wrong = ("--base-url", shell.server.base_url, "--api-key", "pr_wrong")
    for name, call in CALLS.items():
        result = shell.run(*name.split(), *call, *wrong)
        assert result.exit_code == (1 if name == "doctor" else 4), (name, result.output)


def test_no_key_at_all_is_exit_4_and_names_login(shell: Shell) -> None:
    result = shell.run("inbox", "list", "--base-url", "http://127.0.0.1:1", "--no-json")
    assert result.exit_code == 4
    assert "postroom login" in result.stderr


def test_a_key_of_one_inbox_outside_its_scope_is_exit_4(shell: Shell, inbox: Inbox) -> None:
    token = shell.json("inbox", "keys", "create", inbox.id, "--name", "narrow")["token"]
    assert shell.run("webhook", "show", POSTROOM_API_KEY=token).exit_code == 4


def test_a_rate_limit_is_exit_5_and_says_when(shell: Shell) -> None:
    limited = Answer(429, {"error": "rate_limit_exceeded", "message": "Slowly."}, (("Retry-After", "42"),))
    with http_peer(limited) as peer:
        order = ("inbox", "list", "--base-url", peer.url, "--api-key", "pr_1")
        result = shell.run(*order, "--no-json")
        machine = shell.run(*order)
    assert result.exit_code == 5
    assert "Try again in 42 s." in result.stderr
    assert json.loads(machine.stderr)["retryAfter"] == 42


@pytest.mark.parametrize(
    "arguments",
    [("inbox", "get"), ("nothing",), ("inbox", "list", "--limit", "0"), ("inbox", "list", "--nope")],
)
def test_a_mistake_of_usage_is_exit_2(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert shell.run(*arguments).exit_code == 2


def test_a_hostile_error_message_cannot_drive_the_terminal(shell: Shell) -> None:
    with http_peer(Answer(404, {"error": "not_found", "message": "\x1b[2J gone"})) as peer:
        result = shell.run("inbox", "list", "--base-url", peer.url, "--api-key", "pr_1", "--no-json")
    assert "\x1b" not in result.stderr
    assert "\\x1b[2J gone" in result.stderr


def test_a_hostile_file_name_stays_in_the_folder(shell: Shell, tmp_path: Path) -> None:
    with http_peer(Answer(200, b"x")) as peer:
        order = (
            "attachments",
            "get",
            "msg_1",
            "../../\x1b[2Jevil",
            "--base-url",
            peer.url,
            "--api-key",
            "pr_1",
        )
        written = json.loads(shell.run(*order).stdout)
    assert written["path"] == "\\x1b[2Jevil"
    assert (tmp_path / "\\x1b[2Jevil").read_bytes() == b"x"


def test_an_interrupt_is_exit_130(shell: Shell) -> None:
    process = warm_start.start_command(["listen"], {**plain_environment(), **shell.environment()})
    assert process.stderr is not None
    with process.stderr:
        assert "Listening" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130


def test_a_reader_that_leaves_early_is_no_error_to_talk_about(shell: Shell, inbox: Inbox) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone, warm_start.commands_at_a_door() as postroom:
        done = subprocess.run(
            [sys.executable, *postroom, "inbox", "list"],
            env={**plain_environment(), **shell.environment()},
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert "Traceback" not in done.stderr


def test_the_version_is_shown(shell: Shell) -> None:
    result = shell.run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"postroom {version('postroom')}")


def test_the_shell_can_complete_commands() -> None:
    asked = {"COMP_WORDS": "postroom inb", "COMP_CWORD": "1", "_POSTROOM_COMPLETE": "complete_bash"}
    done = CliRunner().invoke(app, env=asked, prog_name="postroom")
    assert done.stdout.split() == ["inbox"]
