"""The first five minutes at a terminal, from a server that was just started."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from postroom_client import profiles
from postroom_client.results import Inbox
from tests.client.live import API_KEY, DOMAIN, LiveServer, Shell, plain_environment
from tests.client.terminal import Seen, run_in_terminal

Run = Callable[..., Seen]


@pytest.fixture
def person(shell: Shell) -> Run:
    """Runs a command in a terminal."""

    def run(*arguments: str, answers: dict[str, str] | None = None, columns: int = 120) -> Seen:
        environment = {**plain_environment(), **shell.environment()}
        return run_in_terminal(list(arguments), environment, answers=answers, columns=columns)

    return run


def find(pattern: str, seen: Seen) -> str:
    found = re.search(pattern, seen.text)
    assert found, seen.text
    return found[0]


def test_two_inboxes_write_to_each_other(person: Run, tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("apple,1\npear,2\n")
    ann = find(r"inb_\w+", person("inbox", "create", "first-ann", "--display-name", "Ann"))
    bob = find(r"inb_\w+", person("inbox", "create", "first-bob"))
    assert f"first-bob@{DOMAIN}" in person("inbox", "list").text

    sent = person(
        *("send", "--to", f"first-bob@{DOMAIN}", "--subject", "Prices", "--body", "As you asked."),
        *("--attach", "prices.csv"),
    )
    assert sent.exit_code == 0, sent.text
    first = find(r"thr_\w+", sent)

    came = person("wait", "--inbox-id", bob, "--unread", "--timeout", "120")
    assert "prices.csv (15 B)" in came.text
    assert "As you asked." in came.text
    thread, message = find(r"thr_\w+", came), find(r"msg_\w+", came)

    assert "apple" in person("attachments", "text", message, "prices.csv").text
    unread = person("threads", "list", "--unread", "--inbox-id", bob)
    assert thread in unread.text
    assert "just now" in unread.text

    assert person("reply", thread, "--body", "Thank you.").exit_code == 0
    assert "No thread here" in person("threads", "list", "--unread", "--inbox-id", bob).text
    answer = person("wait", "--inbox-id", ann, "--unread", "--timeout", "120")
    assert "Re: Prices" in answer.text
    assert "> As you asked." in answer.text
    conversation = person("threads", "get", first)
    assert conversation.text.index("As you asked.") < conversation.text.index("Thank you.")
    assert "unread" in person("threads", "unread", first).text

    status = person("status")
    assert "connected as default" in status.text
    assert f"first-ann@{DOMAIN}" in status.text
    doctor = person("doctor")
    assert (doctor.exit_code, "FAIL" in doctor.text) == (0, False), doctor.text


def test_the_profile_that_the_server_leaves_is_enough(live: LiveServer, inbox: Inbox) -> None:
    environment = {**plain_environment(), "XDG_CONFIG_HOME": str(live.config)}
    seen = run_in_terminal(["inbox", "get", inbox.id], environment)
    assert (seen.exit_code, inbox.address in seen.text) == (0, True), seen.text


def test_json_on_a_terminal_is_indented_and_safe_to_look_at(
    live: LiveServer, person: Run, inbox: Inbox
) -> None:
    hostile = "Subject: =?utf-8?q?a=C2=9B2J=E2=80=AE?=\r\n\r\nbody\x1b]0;owned\x07\r\n"
    live.deliver(f"From: a@example.com\r\nTo: {inbox.address}\r\n{hostile}".encode(), inbox.address)
    [came] = live.arrived(inbox)
    for form in ("--json", "--no-json"):
        seen = person("messages", "get", came.id, form)
        assert not re.search("\x1b\\]|\x07|\u202e|\x9b", seen.raw)
    shown = person("messages", "get", came.id, "--json")
    assert json.loads(shown.text)["id"] == came.id
    assert '\n  "id"' in shown.text
    raw = person("messages", "raw", came.id)
    assert "\\x1b]0;owned\\x07" in raw.text


def test_an_id_stays_whole_on_a_narrow_terminal(person: Run, inbox: Inbox) -> None:
    seen = person("inbox", "get", inbox.id, columns=30)
    assert inbox.id in "".join(part.strip() for part in seen.text.split("\n"))


def test_deleting_asks_first(person: Run, inbox: Inbox) -> None:
    kept = person("inbox", "delete", inbox.id, answers={"all its email?": "n"})
    assert kept.exit_code == 1
    assert person("inbox", "get", inbox.id).exit_code == 0
    assert person("inbox", "delete", inbox.id, answers={"all its email?": "y"}).exit_code == 0
    assert person("inbox", "get", inbox.id).exit_code == 1


def test_login_asks_for_the_key_and_does_not_show_it(live: LiveServer, person: Run) -> None:
    # The space is printed once the terminal has stopped to echo; what is typed before is dropped.
    answers = {f"API key for {live.base_url}: ": API_KEY}
    seen = person("login", "--base-url", live.base_url, "--profile", "asked", answers=answers)
    assert seen.exit_code == 0, seen.text
    assert API_KEY not in seen.raw
    profile = profiles.load().find("asked")
    assert profile is not None
    assert profile.api_key == API_KEY


@pytest.mark.share(2)
def test_a_large_file_shows_its_progress_both_ways(
    live: LiveServer, person: Run, inbox: Inbox, tmp_path: Path
) -> None:
    content = b"0123456789abcdef" * 256 * 1024
    (tmp_path / "large.bin").write_bytes(content)
    order = ("send", "--inbox-id", inbox.id, "--to", inbox.address, "--subject", "s", "--body", "t")
    up = person(*order, "--attach", "large.bin")
    assert up.exit_code == 0, up.text
    assert "/4.2 MB" in up.text
    [came] = live.arrived(inbox)
    down = person("attachments", "get", came.id, "large.bin", "-o", "copy.bin")
    assert "/4.2 MB" in down.text
    assert (tmp_path / "copy.bin").read_bytes() == content
    assert "Sending" not in person(*order).text  # too small for a bar
