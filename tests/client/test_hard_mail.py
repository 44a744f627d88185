"""Every agent of the documents meets mail that breaks a careless one, and still hears the next."""

import re
import smtplib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import msgspec
import pytest

from postroom_client import Client
from postroom_client.results import Inbox
from postroom_client.tools import MailTools, work_off
from postroom_client.webhook_signature import sign
from tests.client.live import API_KEY, LiveServer
from tests.client.test_examples import running
from tests.plain_transport import trusting
from tests.ports import free_port
from tests.raw_mails import raw_mail
from tests.waiting import wait_until

pytestmark = pytest.mark.share(2)

ROOT = Path(__file__).parents[2]
AGENTS = ("quickstart", "polling", "stream", "tools")
SECRET = "a-secret-of-enough-characters"
FOR_A_PERSON = "for a person"
LONG = 110  # more than one page of a thread


@dataclass(frozen=True)
class Desk:
    """An agent's inbox, and the event behind which its hard day begins."""

    inbox: Inbox
    key: str
    place: str


@dataclass(frozen=True)
class Day:
    live: LiveServer
    desks: dict[str, Desk]

    def everybody(self) -> list[str]:
        return [desk.inbox.address for desk in self.desks.values()]

    def deliver(self, *mails: bytes, sender: str = "alice@example.com") -> None:
        """To every agent at once."""
        with smtplib.SMTP("127.0.0.1", self.live.smtp_port) as smtp:
            for mail in mails:
                smtp.sendmail(sender, self.everybody(), mail)


@pytest.fixture(scope="module")
def day(live: LiveServer) -> Day:
    with live.client() as client:
        day = Day(live, {name: new_desk(live, client, name) for name in AGENTS})
        fill(day, client)
    return day


def new_desk(live: LiveServer, client: Client, name: str) -> Desk:
    inbox = client.create_inbox(f"hard-{name}")
    key = client.create_api_key(inbox.id, "agent").token or ""
    live.deliver(raw_mail(subject="Before"), inbox.address)
    [event] = client.list_events(inbox_ids=[inbox.id], wait=60).data
    client.mark_thread(event.thread_id, is_read=True)
    rule = {"approval": {"when": ["links"]}}
    path = f"{live.base_url}/v1/inboxes/{inbox.id}"
    httpx2.patch(
        path, json=rule, headers={"Authorization": f"Bearer {API_KEY}"}, timeout=120, verify=trusting()
    ).raise_for_status()
    return Desk(inbox, key, event.event_id)


def fill(day: Day, client: Client) -> None:
    day.deliver(raw_mail("one", subject="First"))
    client.add_suppression("gone@example.com")
    day.deliver(raw_mail("one two", subject="Suppressed", **{"from": "Gone <gone@example.com>"}))
    day.deliver(raw_mail("away", subject="Machine", auto_submitted="auto-replied"))
    day.deliver(raw_mail("see https://example.com/held", subject="See https://example.com/held"))
    day.deliver(*long_thread())
    for agent, desk in day.desks.items():
        own = raw_mail("myself", subject="Loop", **{"from": desk.inbox.address})
        day.live.deliver(own, desk.inbox.address, desk.inbox.address)
        for name in (f"bounce+{agent}", "injection"):
            client.send(
                desk.inbox.id, to=f"{name}@simulator.postroom.localhost", subject=f"To {name}", body="hello"
            )
    for desk in day.desks.values():
        wait_for(client, desk, "message.bounced", 1)
        wait_for(client, desk, "message.received", LONG + 6)
    day.deliver(raw_mail("one", subject="Last"))
    for desk in day.desks.values():
        wait_for(client, desk, "message.received", LONG + 7)


def long_thread() -> Iterator[bytes]:
    yield raw_mail("old words", subject="Long", message_id="<long-0@example.com>")
    for number in range(1, LONG):
        words = "these are the newest words" if number == LONG - 1 else "old words"
        yield raw_mail(
            words,
            subject="Re: Long",
            message_id=f"<long-{number}@example.com>",
            in_reply_to=f"<long-{number - 1}@example.com>",
            references="<long-0@example.com>",
        )


def wait_for(client: Client, desk: Desk, kind: str, count: int) -> None:
    after, seen = desk.place, 0
    while seen < count:
        page = client.list_events(after=after, wait=60, inbox_ids=[desk.inbox.id], event_types=[kind])
        assert page.data, f"{seen} of {count}: {kind}"
        seen, after = seen + len(page.data), page.next or after


def answers(client: Client, desk: Desk) -> dict[str, str]:
    """What the agent wrote, by subject."""
    sent = client.list_messages(desk.inbox.id, direction="outbound", limit=100).data
    return {message.subject: message.reply_text for message in sent if message.subject.startswith("Re: ")}


def assert_went_well(day: Day, name: str, newest_words: str) -> None:
    desk = day.desks[name]
    with day.live.client() as client:
        written = answers(client, desk)
        assert set(written) == {
            *("Re: First", "Re: Long", "Re: Loop", "Re: Last"),
            "Re: See https://example.com/held",
        }
        assert newest_words in written["Re: Long"]
        aside = {thread.subject for thread in client.iter_threads(desk.inbox.id, label=FOR_A_PERSON)}
        assert aside == {"Suppressed", "To injection"}
        [held] = client.list_approvals(inbox_id=desk.inbox.id).data
        assert held.message.subject == "Re: See https://example.com/held"


def settings(day: Day, name: str) -> dict[str, str]:
    desk = day.desks[name]
    return {
        "POSTROOM_API_KEY": desk.key,
        "POSTROOM_BASE_URL": day.live.base_url,
        "POSTROOM_INBOX_ID": desk.inbox.id,
    }


def read_until(next_line: "Iterator[str]", wanted: str) -> list[str]:
    lines = []
    for line in next_line:
        lines.append(line)
        if wanted in line:
            return lines
    raise AssertionError(f"it ended: {lines}")


def test_the_agent_of_the_quickstart_works_through_it(day: Day, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "quickstart.md").read_text()
    [code] = re.findall(r"^cat > agent\.py <<'END'\n(.*?)^END$", text, re.MULTILINE | re.DOTALL)
    agent, desk = tmp_path / "agent.py", day.desks["quickstart"]
    agent.write_text(code)
    command = [sys.executable, "-I", str(agent), day.live.base_url, desk.key, desk.inbox.id]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "set aside Suppressed HTTP Error 422" in first.stdout
    assert_went_well(day, "quickstart", "We read: these are the newest words")
    assert "answered" not in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_polling_agent_works_through_it(day: Day) -> None:
    with running("polling_agent.py", "0.2", **settings(day, "polling")) as next_line:
        lines = read_until(iter(next_line, ""), "'First'")  # the newest threads come first
        assert_went_well(day, "polling", "your 5 words")
        assert_hears_the_next(day, "polling", next_line)
    assert any("set aside: 'Suppressed'" in line for line in lines)
    assert any("held', which waits for a person" in line for line in lines)


def test_the_stream_agent_works_through_it(day: Day, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.write_text(day.desks["stream"].place)
    with running("stream_agent.py", str(place), **settings(day, "stream")) as next_line:
        lines = read_until(iter(next_line, ""), "'Last'")
        assert_went_well(day, "stream", "I heard 5 words")
        assert_hears_the_next(day, "stream", next_line)
    assert any("set aside: 'Suppressed'" in line for line in lines)
    assert place.read_text() != day.desks["stream"].place


def assert_hears_the_next(day: Day, name: str, next_line: Callable[[], str]) -> None:
    day.live.deliver(raw_mail("one", subject="After"), day.desks[name].inbox.address)
    read_until(iter(next_line, ""), ": 'After'")


def test_the_tools_for_frameworks_work_through_it(day: Day) -> None:
    desk = day.desks["tools"]
    with Client(desk.key, day.live.base_url) as client:
        tools = MailTools(client, desk.inbox.id)
        seen: dict[str, str] = {}

        def run(thread_id: str) -> None:
            seen[thread_id] = tools.read_thread(thread_id)
            body = f"Read: {seen[thread_id][-200:]}"
            said = [tools.reply_to_thread(thread_id, body) for _ in range(2)]
            assert said[0] == said[1]  # a model that repeats itself sends once
            seen[thread_id] += said[0]

        assert work_off(client, desk.inbox.id, run) >= 8
        wait_for(client, desk, "message.received", LONG + 8)
        work_off(client, desk.inbox.id, run)  # what it wrote to itself
        assert_went_well(day, "tools", "these are the newest words")
        assert tools.list_unread_threads() == "Nothing is unread."
        assert "unknown" in tools.read_thread("thr_unknown") or "not_found" in tools.read_thread(
            "thr_unknown"
        )
        wait_until(lambda: "newest words" in tools.search_messages("newest"), "it was not indexed")
    shown = "".join(seen.values())
    assert "That did not work (recipient_suppressed): gone@example.com is on the suppression list" in shown
    assert "It waits (held)" in shown


def test_a_run_that_raises_sets_its_thread_aside(day: Day) -> None:
    with day.live.client() as owner:
        desk = new_desk(day.live, owner, "breaking")
    day.live.deliver(raw_mail("one", subject="Breaks"), desk.inbox.address)
    with Client(desk.key, day.live.base_url) as client:
        client.wait(desk.inbox.id, unread=True, timeout=120)

        def run(thread_id: str) -> None:
            raise ValueError(thread_id)

        assert work_off(client, desk.inbox.id, run) == 1
        assert "Breaks" in {
            thread.subject for thread in client.list_threads(desk.inbox.id, label=FOR_A_PERSON).data
        }


def test_the_webhook_receiver_works_through_it(day: Day) -> None:
    """Each event twice, between bodies that are no event."""
    port = free_port()
    with day.live.client() as client:
        events = list(client.iter_events(inbox_ids=[day.desks["stream"].inbox.id]))
    with running("webhook_receiver.py", str(port), POSTROOM_WEBHOOK_SECRET=SECRET) as next_line:
        assert next_line() == "receiving\n"
        base_url = f"http://127.0.0.1:{port}"
        with httpx2.Client(base_url=base_url, timeout=120, verify=trusting()) as sender:
            for body in (b"no JSON", b"[]", *map(msgspec.json.encode, events * 2), END):
                assert post(sender, body) == 200
        lines = read_until(iter(next_line, ""), "the.end")
    assert lines[-1] == "the.end from nobody\n"
    assert len([line for line in lines if line.startswith("set aside")]) == 2
    assert len(lines) == len(events) + 3
    assert any(line.endswith(("(suspicious)\n", "(malicious)\n")) for line in lines)


END = b'{"event": "the.end", "event_id": "evt_end"}'


def post(sender: httpx2.Client, body: bytes) -> int:
    timestamp = str(int(time.time()))
    headers = {"X-Timestamp": timestamp, "X-Signature": sign(body, timestamp, SECRET)}
    return sender.post("/", content=body, headers=headers).status_code
