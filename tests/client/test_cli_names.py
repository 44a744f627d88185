"""Commands take names, and their help has sections and an example each."""

import shlex
from pathlib import Path

import pytest

from postroom.accounts import accounts
from postroom.storage.database import Database
from postroom_client.cli import app
from postroom_client.cli.command import in_order
from postroom_client.cli.words.examples import EXAMPLES
from postroom_client.cli.words.help_text import SECTIONS
from tests.client.live import Shell
from tests.client.test_cli_rules import leaves
from tests.command_tree import command_called, command_tree
from tests.doubles import START
from tests.samples import samples

pytestmark = pytest.mark.sqlite_alone

COMMANDS = sorted(leaves(command_tree()))


def test_things_are_found_by_what_they_are_called(shell: Shell) -> None:
    inbox = shell.json("inbox", "create", "support", "--display-name", "Acme Support")
    domain = shell.json("domains", "add", "mail.acme.example")
    pod = shell.json("pods", "create", "--name", "Acme", "--client-id", "acme")
    key = shell.json("keys", "create", "--name", "deploy")
    template = shell.json(
        "templates", "create", "welcome", "--body", "Hello {{name}}", "--inbox-id", "support"
    )
    user = shell.json("users", "invite", "ann@acme.example", "--role", "viewer")
    for called in ("support", "SUPPORT", inbox["address"], "acme support"):
        assert shell.json("inbox", "get", called)["id"] == inbox["id"]
    assert shell.json("domains", "show", "Mail.Acme.example")["id"] == domain["id"]
    assert shell.json("pods", "show", "acme")["id"] == pod["id"]
    assert shell.json("pods", "show", "Acme")["id"] == pod["id"]
    assert shell.json("templates", "show", "welcome")["fields"] == template["fields"] == ["name"]
    assert shell.json("users", "show", "ann@acme.example")["id"] == user["id"]
    assert shell.json("threads", "list", "--inbox-id", "Acme Support")["total"] == 0
    assert shell.json("keys", "change", "deploy", "--name", "release")["id"] == key["id"]


def test_of_several_with_one_name_none_is_chosen(shell: Shell) -> None:
    ids = [shell.json("inbox", "create", name, "--display-name", "Sales")["id"] for name in ("one", "two")]
    result = shell.run("inbox", "get", "Sales", "--no-json")
    assert result.exit_code == 1
    assert all(each in result.stderr for each in ids)
    missing = shell.run("inbox", "get", "nobody", "--no-json")
    assert (missing.exit_code, "postroom inboxes list" in missing.stderr) == (1, True)


def test_keys_are_listed_wherever_they_reach(shell: Shell) -> None:
    inbox = shell.json("inbox", "create", "reached")
    pod = shell.json("pods", "create", "--name", "Acme", "--client-id", "reached")
    narrow = shell.json("inbox", "keys", "create", "reached", "--name", "agent")["id"]
    of_pod = shell.json("keys", "create", "--name", "tenant", "--pod-id", "reached")["id"]
    listed = {each["id"]: each for each in shell.json("keys", "list")["data"]}
    assert (listed[narrow]["inboxId"], listed[of_pod]["podId"]) == (inbox["id"], pod["id"])
    assert len(listed) == shell.json("keys", "list")["total"]
    assert [each["id"] for each in shell.json("keys", "list", "--pod-id", "reached")["data"]] == [of_pod]


def test_help_has_sections_and_words_that_everybody_tries(shell: Shell) -> None:
    shown = shell.run("--help").stdout
    assert [f"\n{title}:" in shown for title in SECTIONS if title != "Server"] == [True] * (len(SECTIONS) - 1)
    assert "\nOthers:" not in shown


@pytest.fixture
def folder_of_the_examples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("pyproject.toml", "question.toml", "archive.mbox", "postroom.tar"):
        (tmp_path / file).write_text("x")
    for folder in ("Maildir", "acme-mail"):
        (tmp_path / folder).mkdir()


@pytest.mark.usefixtures("folder_of_the_examples")
@samples("name", COMMANDS)
def test_the_example_of_a_command_is_one_that_it_takes(name: str) -> None:
    command, example = command_called(*name.split()), EXAMPLES.get(name, "")
    command.make_context("postroom", shlex.split(example))
    assert command.epilog == f"Example: postroom {name} {example}".rstrip()


def test_every_example_is_of_a_command() -> None:
    assert set(COMMANDS) >= EXAMPLES.keys()


def test_words_that_everybody_tries_are_understood(shell: Shell) -> None:
    for words in (("help",), ("help", "domains", "show"), ("version",), ("-v",)):
        assert (
            in_order(app, list(words))
            == {
                "help": ["domains", "get", "--help"] if len(words) > 1 else ["--help"],
                "version": ["--version"],
                "-v": ["-v"],
            }[words[0]]
        )
    assert shell.run("-v").stdout.startswith("postroom ")


async def test_the_first_account_is_called_default_whatever_its_name(db: Database) -> None:
    first = await db.write(accounts.add, "default", "free", START)
    other = await db.write(accounts.add, "other", "free", START + 1)
    await db.write(accounts.rename, first, "Acme")
    for called in ("default", "Acme", first.id):
        assert (await db.read(accounts.find, called)) == await db.read(accounts.get, first.id)
    await db.write(accounts.rename, other, "default")  # who is called so is meant
    assert (await db.read(accounts.find, "default")) == await db.read(accounts.get, other.id)
