"""`postroom NOUNS VERB`: other spellings are understood, and a wrong word names the right one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from postroom_client import profiles
from postroom_client.cli import app
from postroom_client.cli.command import in_order
from postroom_client.cli.words.grammar import VERBS
from postroom_client.results import Inbox
from tests.client.live import API_KEY, LiveServer, Shell, plain_environment
from tests.client.terminal import run_in_terminal
from tests.client.test_cli_rules import leaves
from tests.command_tree import command_called, command_tree
from tests.samples import samples

pytestmark = pytest.mark.sqlite_alone

SAME = (
    ("inbox create support", "inboxes create support"),
    ("inbox keys revoke support key_1", "inboxes keys delete support key_1"),
    ("drafts show drf_1", "drafts get drf_1"),
    ("draft edit drf_1", "drafts update drf_1"),
    ("thread ls", "threads list"),
    ("policy show", "policies get"),
    ("user invite ann@example.org", "users create ann@example.org"),
    ("webhook update https://example.com", "webhook set https://example.com"),
    ("webhook create https://example.com", "webhooks create https://example.com"),
    ("calendar add Review", "calendar-events create Review"),
    ("calendar cancel cev_1", "calendar-events delete cev_1"),
    ("calendar create Interviews", "calendars create Interviews"),
    ("inboxes aliases create support a@b.example", "inboxes add-alias support a@b.example"),
    ("inbox aliases support", "inboxes aliases support"),
    ("thread notes list thr_1", "threads notes thr_1"),
    ("profile add", "login"),
    ("send show", "send show"),
    ("reply thr_1 remove", "reply thr_1 remove"),
)
OWN_VERBS = {"budgets set", "webhook set"}  # what they change is there without having been created


@samples("case", SAME)
def test_other_spellings_are_the_same_command(case: tuple[str, str]) -> None:
    given, meant = case
    assert in_order(app, given.split()) == meant.split()


def groups(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, child in command.commands.items():
        if hasattr(child, "commands"):
            yield f"{path}{name}", child
            yield from groups(child, f"{path}{name} ")


def test_every_noun_has_the_same_verbs() -> None:
    others = {word for verbs in VERBS for word in verbs[1:]}
    found = {f"{name} {verb}" for name, each in groups(command_tree()) for verb in each.commands}
    assert {each for each in found if each.split()[-1] in others} == OWN_VERBS


def test_every_command_answers_in_json_where_it_is_asked_to() -> None:
    options = {
        name: {each for one in command_called(*name.split()).params for each in one.opts}
        for name in leaves(command_tree())
    }
    assert {name for name, known in options.items() if "--json" not in known} == {"serve"}


def test_no_description_is_cut_off() -> None:
    context = command_tree().make_context("postroom", [], resilient_parsing=True)
    for name, each in [("postroom", command_tree()), *groups(command_tree())]:
        assert "..." not in each.get_help(context).replace("[ARGS]...", ""), name


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (("inbx", "list"), "postroom inboxes"),
        (("list", "inbox"), "postroom inboxes list"),
        (("drafts", "shw"), "postroom drafts get"),
        (("mails", "list"), "postroom messages"),
        (("events",), "postroom listen"),
        (("approve", "msg_1"), "postroom approvals"),
        (("send", "--subjct", "x"), "--subject"),
    ],
)
def test_a_wrong_word_names_the_right_one(given: tuple[str, ...], meant: str, shell: Shell) -> None:
    for_people, for_programs = shell.run(*given, "--no-json"), shell.run(*given)
    assert (for_people.exit_code, for_programs.exit_code) == (2, 2)
    assert f"Did you mean '{meant}'" in for_people.stderr
    told = json.loads(for_programs.stderr)
    assert (told["error"], f"Did you mean '{meant}'" in told["message"]) == ("usage", True)
    assert for_programs.stdout == ""


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--calendar", '{"summary": 1', "line 1, column 14"),
        ("--calendar", "[1]", "an object of JSON"),
        ("--follow-ups", "{}", "a list of JSON"),
        ("--follow-ups", "[" * 100_000, "nested too deeply"),
    ],
)
def test_json_that_cannot_be_read_gets_a_sentence_of_ours(
    option: str, value: str, said: str, shell: Shell
) -> None:
    done = shell.run("send", "--to", "a@b.example", "--subject", "s", "--body", "b", option, value)
    message = json.loads(done.stderr)["message"]
    assert (said in message, f"{option} takes" in message, "such as" in message) == (True, True, True)
    assert "delimiter" not in message
    assert len(message) < 300


def test_a_reply_takes_its_text_as_an_argument_and_a_message_for_its_thread(
    shell: Shell, inbox: Inbox
) -> None:
    sent = shell.json("send", "--to", inbox.address, "--subject", "Hi", "--body", "x", "--inbox-id", inbox.id)
    shell.json("wait", "--inbox", inbox.id, "--unread")  # understood, as `--inbox=` is
    assert shell.json("threads", "list", f"--inbox={inbox.id}")["total"] >= 1
    answer = shell.json("reply", sent["threadId"], "Thank you.")
    assert answer["threadId"] == sent["threadId"]
    assert "Thank you." in shell.human("messages", "get", answer["id"])
    assert shell.json("reply", sent["id"], "Again.")["threadId"] == sent["threadId"]
    twice = shell.run("reply", sent["threadId"], "one", "--body", "two")
    assert (twice.exit_code, "given twice" in twice.stderr) == (2, True)


def test_usage_starts_at_the_first_day_with_numbers(shell: Shell, inbox: Inbox) -> None:
    shell.json("send", "--to", inbox.address, "--subject", "Hi", "--body", "x", "--inbox-id", inbox.id)
    days = [line for line in shell.human("usage").splitlines() if line[:2] == "20"]
    assert (len(days), len(shell.json("usage")["data"])) == (1, 30)
    early = shell.run("usage", "--from", "2001-01-01", "--to", "2001-01-03", "--no-json")
    assert (early.stdout, "Nothing was received or sent" in early.stderr) == ("", True)


def test_status_shows_what_the_key_sees_and_may_do(shell: Shell, inbox: Inbox) -> None:
    token = shell.json("inboxes", "keys", "create", inbox.id, "--name", "n", "--permission", "read")["token"]
    assert f"inbox {inbox.id}: read" in shell.human("status", POSTROOM_API_KEY=token)
    assert shell.json("status", POSTROOM_API_KEY=token)["api"]["key"]["inboxId"] == inbox.id


def test_a_server_that_is_gone_is_replaced_by_the_running_one_after_asking(
    live: LiveServer, shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = profiles.Profile("http://127.0.0.1:1", "pr_1")
    running = profiles.Profile(live.base_url, API_KEY)
    profiles.save(profiles.Profiles("local", {"local": gone, "local-2": running}))
    environment = {**plain_environment(), **shell.environment()}
    question = "Use it from now on?"
    refused = run_in_terminal(["inboxes", "list"], environment, answers={question: "n"})
    assert (refused.exit_code, "postroom serve" in refused.text) == (1, True)
    assert profiles.load().current == "local"
    agreed = run_in_terminal(["inboxes", "list"], environment, answers={question: "y"})
    assert (agreed.exit_code, "http://127.0.0.1:1 (profile 'local') does not answer" in agreed.text) == (
        0,
        True,
    )
    assert profiles.load().current == "local-2"
    assert "Use it" not in shell.run("inboxes", "list", "--profile", "local").output  # a program is not asked
