"""Scenarios: written conversations, played against an agent on both databases, and recorded from threads."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postroom_client import Client
from postroom_client.errors import PostroomError
from postroom_client.results import Inbox
from postroom_client.scenarios import playing, scenarios
from tests.client.live import LiveServer, Shell
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone  # a client speaks to no database

OWN = sorted((Path(__file__).parent.parent.parent / "examples" / "scenarios").glob("*.toml"))
SHORT = """
[people]
anna = "Anna"
[[steps]]
from = "anna"
subject = "Hello"
body = "Is it you, {inbox}?"
[[steps]]
expect = "anna"
within_seconds = 2
contains = ["yes"]
"""


@contextlib.contextmanager
def agent(client: Client, inbox_id: str, answer: str = "Yes, it is on its way.") -> Iterator[None]:
    """Answers every mail of an inbox until the block ends."""
    stopping = threading.Event()

    def work() -> None:
        after: str | None = None
        while not stopping.is_set():
            page = client.list_events(
                after=after, wait=1, inbox_ids=[inbox_id], event_types=["message.received"]
            )
            after = page.next
            for event in page.data:
                client.reply(event.thread_id, answer)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


@pytest.mark.parametrize("file", OWN, ids=lambda file: file.stem)
async def test_our_own_scenarios_pass_with_an_agent_that_answers(server: Server, file: Path) -> None:
    inbox_id = await server.new_inbox("support")

    def work() -> playing.Report:
        with (
            Client(server.token, server.base_url) as client,
            Client(server.token, server.base_url) as own,
            agent(own, inbox_id),
        ):
            return playing.play(client, scenarios.read(file.read_text()), inbox_id)

    report = await asyncio.to_thread(work)
    assert report.passed, report
    assert (await server.api.get("/v1/inboxes")).json()["total"] == 1


async def test_a_scenario_fails_where_nobody_answers_and_leaves_no_inbox(server: Server) -> None:
    inbox_id = await server.new_inbox("support")

    def work() -> playing.Report:
        with Client(server.token, server.base_url) as client:
            return playing.play(client, scenarios.read(SHORT), inbox_id)

    report = await asyncio.to_thread(work)
    assert [step.passed for step in report.steps] == [True, False]
    assert report.steps[1].reason == "no reply to anna within 2 s"
    assert (await server.api.get("/v1/inboxes")).json()["total"] == 1


def test_simulate_says_how_it_went_and_exits_with_it(shell: Shell, live: LiveServer, inbox: Inbox) -> None:
    file = shell.folder.parent / "short.toml"
    arguments = ("simulate", "--scenario", str(file), "--inbox-id", inbox.id)
    file.write_text(SHORT.replace("within_seconds = 2", "within_seconds = 120"))
    with live.client() as client, agent(client, inbox.id, "Yes."):
        result = shell.json(*arguments)
    assert result["passed"] is True
    file.write_text(SHORT)
    failed = shell.run(*arguments, "--no-json")
    assert failed.exit_code == 1
    assert "FAILED 2. anna is answered" in failed.stdout


def test_a_recorded_thread_has_no_address_and_can_be_played(
    shell: Shell, live: LiveServer, new_inbox: Callable[[], Inbox]
) -> None:
    inbox, customer = new_inbox(), new_inbox()
    with live.client() as client:
        text = f'Write to me: {customer.address} or "secret.person@corp.example".\nC:\\temp\x07'
        client.send(customer.id, to=inbox.address, subject="A question", body=text)
        (came,) = live.arrived(inbox)
        client.reply(came.thread_id, "yes, of course")
        written = shell.run("record", came.thread_id).stdout
        assert customer.address not in written
        assert "corp.example" not in written
        assert "{person1}" in written
        recorded = scenarios.read(written)
        assert [step.sender or step.expect for step in recorded.steps] == ["person1", "person1"]
        assert "other1@example.com" in recorded.steps[0].body
        with live.client() as own, agent(own, inbox.id):
            assert playing.play(client, recorded, inbox.id).passed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("people = 1", "cannot be read"),
        ("[people]\nanna = 'x'\n[[steps]]\nfrom = 'anna'\nexpect = 'anna'\nbody = 'x'", "exactly one"),
        ("steps = [{from = 'bob', body = 'x'}]\n[people]\n", "not among the people"),
        ("steps = [{from = 'anna'}]\n[people]\nanna = 'x'", "no body"),
        ("steps = []\n[people]\nInbox = 'x'", "cannot name a person"),
        ("steps = [{form = 'anna'}]\n[people]\nanna = 'x'", "form"),
    ],
)
def test_a_scenario_that_cannot_be_played_says_why(text: str, reason: str) -> None:
    with pytest.raises(PostroomError, match=reason):
        scenarios.read(text)
