"""What holds for every command: the server away, exit codes, streams, pipes, and tests for each."""

import json
import os
import shlex
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
from postroom_client.cli.mailbox import rules
from postroom_client.cli.words.examples import EXAMPLES
from postroom_client.results import Inbox
from postroom_client.transport import exchange
from tests import warm_start
from tests.client.live import Shell, plain_environment
from tests.client.peers import Answer, http_peer
from tests.command_tree import command_called, command_tree

AWAY = ("--base-url", "http://127.0.0.1:1", "--api-key", "pr_1")
SCENARIO = Path(__file__).parent.parent.parent / "examples" / "scenarios" / "question.toml"

LOCAL = {"audit verify", "profiles list", "profiles use", "profiles delete", "logout", "open"}
TESTED_ELSEWHERE = {
    *("bridge", "mcp", "serve", "migrate", "accounts", "login-link"),
    *("setup", "certificates"),
    *("backup", "restore", "import", "blobs", "verify", "move"),
}
OTHER_CALLS = {"login": (), "connect": ("raw",)}  # their examples name a server, or ask for a password
FILES = {  # of the examples
    **dict.fromkeys(("pyproject.toml", "team.ics", "offer.txt"), "x"),
    "question.toml": SCENARIO.read_text(),
}


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    if not hasattr(command, "commands"):
        yield " ".join(path)
        return
    for name, child in command.commands.items():
        yield from leaves(child, (*path, name))


def call_of(name: str) -> tuple[str, ...]:
    """The arguments of its example, and `--yes` where it would ask a person."""
    call = list(OTHER_CALLS[name]) if name in OTHER_CALLS else shlex.split(EXAMPLES.get(name, ""))
    taken = {option for each in command_called(*name.split()).params for option in each.opts}
    call += ["--yes"] * ("--yes" in taken and "--yes" not in call)
    return tuple(call)


# What each command that needs the server is called with; the others need none.
CALLS = {
    name: call_of(name)
    for name in leaves(command_tree())
    if name.split()[0] not in TESTED_ELSEWHERE and name not in LOCAL
}


@pytest.fixture
def a_profile(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A default inbox, and the files of the examples."""
    monkeypatch.setenv("POSTROOM_INBOX_ID", "inb_1")
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "Mail" / ".Junk" / "cur").mkdir(parents=True)
    (tmp_path / "Mail" / ".Junk" / "cur" / "1").write_text("From: a@b.example\n\nx")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No command waits before its second attempt."""
    monkeypatch.setattr(exchange, "backoff", lambda *_: 0.0)


@pytest.mark.usefixtures("at_once", "a_profile")
def test_a_server_that_is_away_is_said_clearly_with_exit_1(shell: Shell) -> None:
    for name, call in CALLS.items():
        result = shell.run(*name.split(), *call, *AWAY, "--no-json")
        assert result.exit_code == 1, name
        assert "No answer from http://127.0.0.1:1" in result.output, name
        assert "postroom serve" in result.stderr, name
        assert "Traceback" not in result.output, name


@pytest.mark.usefixtures("at_once", "a_profile")
def test_in_json_an_error_is_an_object_on_stderr(shell: Shell) -> None:
    for name in CALLS.keys() - {"status", "doctor"}:
        result = shell.run(*name.split(), *CALLS[name], *AWAY)
        assert (result.exit_code, result.stdout) == (1, ""), name
        assert json.loads(result.stderr)["error"] == "connection_failed", name


@pytest.mark.usefixtures("a_profile")
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
    assert done.stdout.split() == ["inboxes"]


@pytest.mark.parametrize("written", ["label=invoices", "snooze=3", "say=We have it.", "reply=tpl_1", "judge"])
def test_an_action_is_shown_as_do_takes_it(written: str) -> None:
    assert rules.spell_action(rules.read_action(written)) == written
