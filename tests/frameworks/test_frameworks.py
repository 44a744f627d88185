"""The examples of the frameworks, run by the real framework with a scripted model against a real server."""

import subprocess
from pathlib import Path

import pytest

from tests.client.conftest import live  # noqa: F401 (a fixture)
from tests.client.live import LiveServer, plain_environment
from tests.frameworks import environment
from tests.letters import letter

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "examples" / "frameworks").glob("*.py"))


@pytest.mark.needs("frameworks for agents")
@pytest.mark.parametrize("name", NAMES)
def test_an_agent_answers_what_it_was_asked_and_leaves_the_rest_to_a_person(
    name: str,
    live: LiveServer,  # noqa: F811
) -> None:
    with live.client() as client:
        inbox = client.create_inbox(name.replace("_", "-"))
        key = client.create_api_key(inbox.id, "agent").token or ""
        client.add_suppression("gone@example.com")
        live.deliver(letter("What now?", subject="Lamp"), inbox.address)
        live.deliver(letter("Hello?", subject="Gone", **{"from": "gone@example.com"}), inbox.address)
        live.arrived(inbox, 2)
        assert play(name, live.base_url, key, inbox.id) == "2 0\n"
        [answer] = client.list_messages(inbox.id, direction="outbound").data
        assert answer.subject == "Re: Lamp"
        assert answer.reply_text == "You wrote: What now?"
        assert answer.automated
        [aside] = client.list_threads(inbox.id, label="for a person").data
        assert aside.subject == "Gone"


def play(*arguments: str) -> str:
    done = subprocess.run(
        [str(environment.PYTHON), str(Path(__file__).with_name("play.py")), *arguments],
        env={**plain_environment(), "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
