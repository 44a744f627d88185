"""The examples of the frameworks, run by the real framework with a scripted model against a real server."""

import json
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from postroom_client import Client
from postroom_client.cli import app
from postroom_client.cli.command import narrowed
from postroom_client.results import Inbox
from tests import generators
from tests.agentmail.test_every_method import FILE
from tests.agentmail.test_mail import mail
from tests.client.conftest import live  # noqa: F401 (a fixture)
from tests.client.live import API_KEY, LiveServer, plain_environment
from tests.frameworks import environment
from tests.raw_mails import raw_mail

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "frameworks"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
KITS = "toolkits"
IN_TURN = pytest.mark.share(3, turn=0)  # one process loads and plays them all


@dataclass(frozen=True, slots=True)
class Played:
    """What each play came to, and in which inbox."""

    inboxes: dict[str, Inbox]
    results: dict[str, Any]


@pytest.fixture(scope="module")
def played(live: LiveServer) -> Played:  # noqa: F811
    with live.client() as client:
        inboxes = {name: prepare(live, client, name) for name in NAMES}
        plays = {name: [create_key(live, inbox), inbox.id] for name, inbox in inboxes.items()}
        plays[KITS] = [prepare_kits(live, client)]
    program = str(Path(__file__).with_name("play.py"))
    given = json.dumps({"url": live.base_url, "plays": plays})
    return Played(inboxes, json.loads(play(str(environment.PYTHON), program, given=given)))


@IN_TURN
@pytest.mark.needs("frameworks for agents")
@pytest.mark.parametrize("name", NAMES)
def test_an_agent_answers_what_it_was_asked_and_leaves_the_rest_to_a_person(
    name: str,
    live: LiveServer,  # noqa: F811
    played: Played,
) -> None:
    assert played.results[name] == [2, 0]
    with live.client() as client:
        check_answer(live, client, played.inboxes[name])


@IN_TURN
@pytest.mark.needs("frameworks for agents")
def test_the_kits_for_the_other_vocabulary_do_their_work(played: Played) -> None:
    assert played.results[KITS] == [13, 11]


@pytest.mark.needs("frameworks for Node")
def test_the_same_with_the_sdk_of_vercel(live: LiveServer, tmp_path: Path) -> None:  # noqa: F811
    """In a project of its own, whose client is the one of this checkout."""
    packages = tmp_path / "node_modules"
    packages.mkdir()
    for package in (environment.NODE_FOLDER / "node_modules").iterdir():
        (packages / package.name).symlink_to(package)
    client_package = tmp_path / "client"
    client_package.mkdir()
    (client_package / "package.json").write_text('{"type": "module", "exports": "./src/index.ts"}')
    (client_package / "src").symlink_to(ROOT / "clients" / "typescript" / "src")
    (packages / "@postroom").mkdir()
    (packages / "@postroom" / "client").symlink_to(client_package)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    for path in (EXAMPLES / "with_vercel_ai.ts", Path(__file__).with_name("play_vercel_ai.ts")):
        shutil.copy(path, tmp_path)
    with live.client() as client:
        inbox = prepare(live, client, "with_vercel_ai")
        key = create_key(live, inbox)
        program = str(tmp_path / "play_vercel_ai.ts")
        assert play(str(generators.NEWEST_NODE), program, live.base_url, key, inbox.id).split() == ["2", "0"]
        check_answer(live, client, inbox)


def prepare(live: LiveServer, client: Client, name: str) -> Inbox:  # noqa: F811
    """An inbox with a mail that can be answered, and one whose sender must not be written to."""
    inbox = client.create_inbox(name.replace("_", "-"))
    client.add_suppression("gone@example.com")
    live.deliver(raw_mail("What now?", subject="Lamp"), inbox.address)
    live.deliver(raw_mail("Hello?", subject="Gone", **{"from": "gone@example.com"}), inbox.address)
    live.arrived(inbox, 2)
    return inbox


def prepare_kits(live: LiveServer, client: Client) -> str:  # noqa: F811
    """The key of an account with a mail that carries a file."""
    inbox = client.create_inbox("support")
    live.deliver(mail("Lamp", more=FILE), inbox.address)
    live.arrived(inbox, 1)
    return client.create_account_key("kits").token or ""


def create_key(live: LiveServer, inbox: Inbox) -> str:  # noqa: F811
    """As the page says: one whose mail a person approves."""
    return str(json.loads(run_of_page(live, "postroom inboxes keys create", inbox.id))["token"])


def check_answer(live: LiveServer, client: Client, inbox: Inbox) -> None:  # noqa: F811
    """It waits for a person, and leaves once it was approved, by the commands of the page."""
    [answer] = client.list_messages(inbox.id, direction="outbound").data
    assert (answer.subject, answer.reply_text) == ("Re: Lamp", "You wrote: What now?")
    assert answer.automated
    assert answer.hold is not None
    assert answer.hold.state == "held"
    assert answer.id in run_of_page(live, "postroom approvals list")
    run_of_page(live, "postroom approvals approve", answer.id, "--yes")  # a person is asked
    approved = client.get_message(answer.id)
    assert approved.hold is not None
    assert approved.hold.state == "approved"
    [aside] = client.list_threads(inbox.id, label="for a person").data
    assert aside.subject == "Gone"


def run_of_page(live: LiveServer, beginning: str, named: str = "", *more: str) -> str:  # noqa: F811
    """The command of a page that begins so, with the id in the place of the one that it leaves open."""
    lines = (ROOT / "docs" / "frameworks.md").read_text().splitlines()
    [line] = [line for line in lines if line.startswith(beginning)]
    words = shlex.split(re.sub(r"\b(inb|msg)_…", named, line))
    arguments = [*words[1:], *more]
    settings = {"POSTROOM_API_KEY": API_KEY, "POSTROOM_BASE_URL": live.base_url}
    done = CliRunner().invoke(narrowed(app, arguments), arguments, env=settings)
    assert done.exit_code == 0, done.output
    return done.stdout


def play(*command: str, given: str | None = None) -> str:
    quiet = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}
    done = subprocess.run(
        command,
        env={**plain_environment(), **quiet, **generators.kept_by_node(), "PYTHONPATH": str(ROOT / "src")},
        input=given,
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(keepends=True)[-1]
