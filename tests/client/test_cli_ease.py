"""What makes the command and the client easy: short help, flags anywhere, inboxes by name, honest help()."""

import inspect
import io
import re

import pytest
from rich.console import Console

import postroom_client
from postroom_client import AsyncClient, Client, profiles, results
from postroom_client.cli import app, output
from postroom_client.cli.command import in_order
from postroom_client.results import Event, Inbox
from tests.client.live import LiveServer, Shell
from tests.client.terminal import run_in_terminal


@pytest.mark.parametrize("arguments", [("-h",), ("inbox", "-h"), ("inbox", "list", "-h")])
def test_h_is_help(shell: Shell, arguments: tuple[str, ...]) -> None:
    result = shell.run(*arguments)
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--json", "inbox", "list"], ["inboxes", "list", "--json"]),
        (["--profile", "x", "--no-json", "status"], ["status", "--profile", "x", "--no-json"]),
        (["--base-url=u", "send", "--", "-x"], ["send", "--base-url=u", "--", "-x"]),
        (["inboxes", "list", "--json"], ["inboxes", "list", "--json"]),
        (["--version"], ["--version"]),
        (["--profile"], ["--profile"]),
        ([], []),
    ],
)
def test_flags_for_every_command_may_stand_before_it(given: list[str], meant: list[str]) -> None:
    assert in_order(app, given) == meant


def test_an_inbox_is_found_by_id_address_or_name(shell: Shell, inbox: Inbox) -> None:
    name = inbox.address.partition("@")[0]
    for given in (inbox.id, inbox.address, inbox.address.upper(), name):
        assert shell.json("inbox", "get", given)["id"] == inbox.id
        assert shell.json("threads", "list", "--inbox-id", given)["total"] == 0
    assert shell.json("threads", "list", POSTROOM_INBOX_ID=name)["total"] == 0


def test_an_inbox_that_is_not_there_is_said(shell: Shell) -> None:
    result = shell.run("inbox", "get", "nobody-of-this-name", "--no-json")
    assert result.exit_code == 1
    assert "There is no inbox 'nobody-of-this-name'" in result.stderr


def test_a_row_shows_time_sender_and_subject_however_narrow_the_terminal(shell: Shell, inbox: Inbox) -> None:
    subject = "A subject of many words, which is longer than a narrow terminal can show on a line"
    shell.json("send", "--to", inbox.address, "--subject", subject, "--body", "x", "--inbox", inbox.id)
    shell.json("wait", "--inbox", inbox.id, "--unread")
    environment = {**shell.environment(), "PATH": "/usr/bin:/bin"}

    def rows(*command: str) -> list[str]:
        seen = run_in_terminal([*command], environment, columns=80)
        return seen.text.rstrip("\n").split("\n")[1:]

    assert {inbox.id, inbox.address} <= set(" ".join(rows("inboxes", "list", "--limit", "1")).split())
    row = rf"(?:unread|      )  \w+ \w+(?: ago)?  {inbox.address[:4]}\S*  +A subject of many[^…]*…\s*"
    found = rows("threads", "list", "--inbox", inbox.id)
    assert found
    for line, below in zip(found[::2], found[1::2], strict=True):
        assert re.fullmatch(row, line), line
        assert re.fullmatch(r"  thr_[0-9a-f]{32}\s*", below), below


def test_inboxes_of_a_list_are_given_by_name(shell: Shell, inbox: Inbox) -> None:
    name, day = inbox.address.partition("@")[0], ("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")
    assert list(shell.json("calendars", "busy", name, *day)["inboxes"]) == [inbox.id]
    assert shell.json("agenda", "--since", day[0], POSTROOM_INBOX_ID=name)["total"] == 0


def test_logout_forgets_the_key_and_a_profile_can_be_removed(shell: Shell) -> None:
    known = profiles.load()
    other = profiles.Profile("http://other.example", "pr_other")
    profiles.save(known.with_profile("other", other, make_current=False))
    assert shell.json("profiles", "remove", "other") == {"profile": "other", "removed": True}
    assert shell.run("profiles", "remove", "other").exit_code == 1
    shell.run("logout")
    assert profiles.load().profiles == {}


def test_open_names_the_pages_for_people(shell: Shell) -> None:
    assert shell.json("open")["url"] == f"{shell.server.base_url}/app"


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_method_is_documented_and_shows_its_real_result(kind: type) -> None:
    for name, method in vars(kind).items():
        if not name.startswith("_") and callable(method):
            assert inspect.getdoc(method), name
            shown = str(inspect.signature(method).return_annotation)
            assert "Call[" not in shown, name
            assert "Generator[postroom_client.transport.exchange" not in shown, name
    assert inspect.signature(getattr(kind, "get_inbox")).return_annotation is results.Inbox  # noqa: B009


def test_the_client_knows_its_version() -> None:
    assert postroom_client.__version__[0].isdigit()


def test_an_event_keeps_what_became_of_a_mail(live: LiveServer, inbox: Inbox) -> None:
    with live.client() as client:
        client.send(inbox.id, to="full@simulator.postroom.localhost", subject="s", body="b")
        page = client.list_events(wait=60, inbox_ids=[inbox.id], event_types=["message.failed"])
    event: Event = page.data[0]
    assert event.recipient == "full@simulator.postroom.localhost"
    assert event.reason is not None
    assert "full" in event.reason


def test_a_state_has_a_colour_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> str:
        file = io.StringIO()
        screen = Console(file=file, force_terminal=True, color_system="standard", width=80)
        screen.print(output.table(("SUBJECT", "STATUS"), [("failed", "failed"), ("sent", "sent")]))
        return file.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    red, green = "\x1b[31mfailed", "\x1b[32msent"
    assert (shown().count(red), shown().count(green)) == (1, 1)  # words of a mail stay plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in shown()
