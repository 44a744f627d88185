"""A judge of one's own: it adds what speaks against a mail, and can do nothing else, however it behaves."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from postroom import config
from postroom.external_mailboxes.fetching import Fetched
from postroom.inward import screening
from postroom.llm_judge import judge_arrivals
from postroom.llm_judge.question import read_opinion
from postroom.mailbox.documents import Signal
from tests.api.test_send import MAIL, first_message
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.filled_inbox import document
from tests.samples import samples
from tests.waiting import until

JSON_URL, CHAT_URL = "http://judge.example/ask", "http://judge.example/v1/chat/completions"
Answer = Callable[[bytes], bytes]


def http(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n".encode() + body


def verdict(word: str, reason: str = "It gives orders.") -> bytes:
    return json.dumps({"verdict": word, "reason": reason}).encode()


def chat(content: str) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()


class StandIn:
    """A server on this machine that answers as it was told, and keeps what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.hold = asyncio.Event()
        self.hold.set()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length:")[2].split()[0])
        body = await reader.readexactly(length)
        self.asked.append((head, json.loads(body)))
        await self.hold.wait()
        with contextlib.suppress(ConnectionError):
            writer.write(self.answer(body))
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def judged_server(
    tmp_path: Path, clock: FakeClock, answer: Answer, path: str = "/ask", **more: str
) -> AsyncIterator[tuple[Server, StandIn]]:
    stand_in = StandIn(answer)
    listener = await asyncio.start_server(stand_in.serve, "127.0.0.1", 0)
    stand_in.port = listener.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{stand_in.port}{path}"
    wanted = settings(tmp_path, JUDGE_URL=url, JUDGE_KEY="secret-of-the-judge", JUDGE_SECONDS="120", **more)
    try:
        async with running_server(wanted, clock) as server:
            yield server, stand_in
    finally:
        stand_in.hold.set()
        listener.close()


async def until_asked(stand_in: StandIn, times: int = 1) -> None:
    await until(lambda: len(stand_in.asked) >= times)


async def judged_event(server: Server) -> dict[str, Any]:
    event: dict[str, Any] = {}
    while event.get("event") != "message.judged":
        event = await server.next_event(event.get("event_id"))
    return event


@pytest.mark.sqlite_alone
async def test_what_it_says_against_a_mail_is_a_signal_told_after_the_arrival(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with judged_server(tmp_path, clock, lambda body: http(verdict("malicious"))) as (server, judge):
        bob = await server.new_inbox("bob")
        await server.deliver(MAIL, "bob")
        arrival = await server.next_event()
        assert (arrival["event"], arrival["message"]["verdict"]) == ("message.received", "clean")
        event = await judged_event(server)
        assert event["message"]["verdict"] == "malicious"
        assert event["message"]["auto_replyable"] is False
        message = await first_message(server, bob)
        assert [(each["name"], each["reason"]) for each in message["signals"]] == [
            ("judge", "It gives orders.")
        ]
        head, asked = judge.asked[0]
        assert "authorization: bearer secret-of-the-judge" in head.lower()
        assert asked == {
            "from": "Alice <alice@example.com>",
            "subject": "Question",
            "text": "What is the price?\n",
            "links": [],
        }


@pytest.mark.sqlite_alone
async def test_a_chat_is_asked_with_the_mail_as_data(tmp_path: Path, clock: FakeClock) -> None:
    said = 'Sure!\n```json\n{"verdict": "suspicious", "reason": "Odd."}\n```'
    path, model = "/v1/chat/completions", "small"
    async with judged_server(tmp_path, clock, lambda body: http(chat(said)), path, JUDGE_MODEL=model) as (
        server,
        judge,
    ):
        await server.new_inbox("bob")
        await server.deliver(MAIL, "bob")
        assert (await judged_event(server))["message"]["verdict"] == "suspicious"
        asked = judge.asked[0][1]
        assert asked["model"] == "small"
        system, user = asked["messages"]
        assert (system["role"], user["role"]) == ("system", "user")
        assert "price" not in system["content"]
        assert json.loads(user["content"])["text"] == "What is the price?\n"


@pytest.mark.sqlite_alone
async def test_a_judge_that_misbehaves_changes_nothing_and_holds_up_nobody(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow, failing, huge, garbage, and one that praises: the mail is told at once, and stays as it was."""
    monkeypatch.setattr(judge_arrivals, "FAILURES_IN_A_ROW", 100)
    answers = iter(
        [
            http(b"oops", "500 Internal Server Error"),
            http(b"x" * 1_000_000),
            http(b"\xff\x00 not json"),
            http(verdict("clean")),
            http(b"{}", length=5_000),
            http(b"", "302 Found\r\nLocation: http://127.0.0.1:1/"),
            http(verdict("trusted")),
            b"garbage\r\n\r\n",
            http(verdict("malicious")),
        ]
    )
    async with judged_server(tmp_path, clock, lambda body: next(answers)) as (server, judge):
        bob = await server.new_inbox("bob")
        judge.hold.clear()
        after = None
        for number in range(8):
            await server.deliver(MAIL.replace(b"q1@", b"q%d@" % number), "bob")
            event = await server.next_event(after)
            after = event["event_id"]
            assert event["event"] == "message.received"
        await until_asked(judge)
        judge.hold.set()
        await until_asked(judge, 8)
        await server.deliver(MAIL.replace(b"q1@", b"last@"), "bob")  # asked about when all others are done
        judged = await judged_event(server)
        assert judged["message"]["rfc_message_id"] == "<last@example.com>"
        found = (await server.api.get(f"/v1/inboxes/{bob}/messages")).json()["data"]
        others = [each for each in found if each["id"] != judged["message"]["id"]]
        assert [(each["verdict"], each["signals"]) for each in others] == [("clean", [])] * 8
        events = (await server.api.get("/v1/events")).json()["data"]
        assert Counter(each["event"] for each in events) == {"message.received": 9, "message.judged": 1}


@pytest.mark.sqlite_alone
async def test_it_is_asked_no_more_often_than_its_share(tmp_path: Path, clock: FakeClock) -> None:
    async with judged_server(
        tmp_path, clock, lambda body: http(verdict("suspicious")), JUDGE_PER_MINUTE="2"
    ) as (server, judge):
        await server.new_inbox("bob")
        for number in range(4):
            await server.deliver(MAIL.replace(b"q1@", b"q%d@" % number), "bob")
        found: Counter[str] = Counter()
        event: dict[str, Any] = {}
        while found != {"message.received": 4, "message.judged": 2}:
            event = await server.next_event(event.get("event_id"))
            found[event["event"]] += 1
        assert len(judge.asked) == 2
        another = Praising()
        looker = judge_arrivals.Judge(server.resources, another)
        await looker.look(clock.now())
        assert (len(looker.seen), another.asked) == (4, 2)


class Praising:
    """Finds every mail good, and counts them."""

    def __init__(self) -> None:
        self.asked = 0

    async def fetch(self, *asked: object, **more: object) -> Fetched:
        self.asked += 1
        return Fetched(200, verdict("clean"))


@samples(
    ("body", "url"),
    [
        (verdict("clean"), JSON_URL),
        (verdict("safe"), JSON_URL),
        (b'{"verdict": ["malicious"]}', JSON_URL),
        (b"[" * 100_000, JSON_URL),
        (b"null", CHAT_URL),
        (b'{"choices": []}', CHAT_URL),
        (chat(""), CHAT_URL),
        (chat("}{"), CHAT_URL),
        (chat("{" * 50_000), CHAT_URL),
        (verdict("malicious"), CHAT_URL),
    ],
)
def test_what_is_no_opinion_counts_for_nothing(body: bytes, url: str) -> None:
    assert read_opinion(body, url) is None


def test_a_reason_is_one_short_line() -> None:
    opinion = read_opinion(verdict("malicious", "a\u202eb\r\n" + "x" * 5000), JSON_URL)
    assert opinion is not None
    assert opinion.reason.startswith("a b x")
    assert len(opinion.reason) == 300


def test_no_opinion_makes_a_verdict_better() -> None:
    bad = screening.judged(
        document("inb_1", "bob@example.com"),
        screening.Screening("malicious", [Signal("overrides", 6, "Why", "…")]),
    )
    judged = screening.with_opinion(bad, "suspicious", "Hm")
    assert judged is not None
    assert (judged.verdict, [each.name for each in judged.signals]) == ("malicious", ["overrides", "judge"])
    assert screening.with_opinion(judged, "malicious", "Again") is None


@samples(
    ("name", "value"),
    [("URL", "ftp://x"), ("URL", "judge"), ("SECONDS", "0"), ("SECONDS", "x"), ("PER_MINUTE", "601")],
)
def test_a_wrong_setting_stops_the_start(name: str, value: str) -> None:
    with pytest.raises(config.ConfigError, match=f"POSTROOM_JUDGE_{name}"):
        config.load({f"POSTROOM_JUDGE_{name}": value})


def test_nobody_is_asked_by_default() -> None:
    assert config.load({}).judge_url == ""
