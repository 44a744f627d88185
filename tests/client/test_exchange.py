"""How a client meets faults: what it repeats, how long it waits, when it gives up."""

from collections.abc import Callable
from typing import Any

import pytest

from postroom_client import AsyncClient, Client, OutgoingFile, Patience, errors
from postroom_client.transport.exchange import (
    Call,
    Reply,
    backoff,
    nothing,
    pause_before_next,
    read_retry_after,
)
from tests.client.peers import Answer, http_peer
from tests.samples import samples

QUICK = Patience(attempts=4, longest_wait_seconds=5, first_pause_seconds=0.001)
INBOX = {"id": "inb_1", "address": "a@example.com", "createdAt": "2026-11-14T10:05:00.000Z"}
SENT = {"id": "msg_1", "threadId": "thr_1"}
BUSY = Answer(503, {"error": "unavailable", "message": "Later."})
DROPPED = Answer(is_dropped=True)


def refusal(status: int, code: str, **headers: str) -> Answer:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answer(status, {"error": code, "message": "No."}, named)


@samples("fault", [BUSY, DROPPED, Answer(502, b"<html>")])
def test_a_question_is_asked_again_after_a_passing_fault(fault: Answer) -> None:
    with (
        http_peer(fault, fault, Answer(200, INBOX)) as peer,
        Client("pr_1", peer.url, patience=QUICK) as client,
    ):
        assert client.get_inbox("inb_1").address == "a@example.com"
    assert len(peer.seen) == 3


async def test_the_awaited_client_does_the_same() -> None:
    with http_peer(BUSY, DROPPED, Answer(200, INBOX)) as peer:
        async with AsyncClient("pr_1", peer.url, patience=QUICK) as client:
            assert (await client.get_inbox("inb_1")).id == "inb_1"
    assert len(peer.seen) == 3


def test_a_send_repeats_itself_with_the_same_key_and_the_same_bytes() -> None:
    file = OutgoingFile("a.txt", b"hello " * 40_000, "text/plain")
    with (
        http_peer(BUSY, DROPPED, Answer(200, SENT)) as peer,
        Client("pr_1", peer.url, patience=QUICK) as client,
    ):
        sent = client.send("inb_1", to="b@example.com", subject="s", body="t", attachments=[file])
    assert sent.id == "msg_1"
    assert len({request.headers["idempotency-key"] for request in peer.seen}) == 1
    assert len({request.body for request in peer.seen}) == 1
    assert file.content in peer.seen[0].body


def test_each_send_has_a_key_of_its_own_unless_one_is_given() -> None:
    with http_peer(Answer(200, SENT)) as peer, Client("pr_1", peer.url) as client:
        for key in (None, None, "mine"):
            client.send("inb_1", to="b@example.com", subject="s", body="t", idempotency_key=key)
    first, second, third = (request.headers["idempotency-key"] for request in peer.seen)
    assert first != second
    assert third == "mine"


@samples("fault", [BUSY, DROPPED])
def test_what_must_not_happen_twice_is_not_repeated(fault: Answer) -> None:
    with (
        http_peer(fault, Answer(201, INBOX)) as peer,
        Client("pr_1", peer.url, patience=QUICK) as client,
        pytest.raises(errors.PostroomError),
    ):
        client.create_inbox("a")
    assert len(peer.seen) == 1


def test_a_rate_limit_is_waited_out_when_the_wait_is_short() -> None:
    limited = refusal(429, "rate_limit_exceeded", Retry_After="1")
    told: list[tuple[str, float]] = []
    with (
        http_peer(limited, Answer(201, INBOX)) as peer,
        Client("pr_1", peer.url, patience=QUICK, on_wait=lambda *pause: told.append(pause)) as client,
    ):
        assert client.create_inbox("a").id == "inb_1"
    assert told == [("No.", 1.0)]


async def test_a_client_that_waits_for_a_limit_says_so_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    limited = refusal(429, "rate_limit_exceeded", Retry_After="1")
    with http_peer(limited, Answer(201, INBOX)) as peer:
        async with AsyncClient("pr_1", peer.url, patience=QUICK) as client:
            await client.create_inbox("a")
    assert caplog.messages == ["POST /v1/inboxes: No. Trying again in 1 s."]


def test_a_long_wait_is_left_to_the_caller() -> None:
    limited = refusal(429, "cold_outreach_limit", Retry_After="3600")
    with (
        http_peer(limited) as peer,
        Client("pr_1", peer.url, patience=QUICK) as client,
        pytest.raises(errors.ColdOutreachLimit) as caught,
    ):
        client.send("inb_1", to="b@example.com", subject="s", body="t")
    assert caught.value.retry_after == 3600
    assert len(peer.seen) == 1


def test_patience_ends() -> None:
    with (
        http_peer(BUSY) as peer,
        Client("pr_1", peer.url, patience=QUICK) as client,
        pytest.raises(errors.Unavailable),
    ):
        client.me()
    assert len(peer.seen) == 4


def test_a_refusal_is_not_repeated_and_keeps_what_it_named() -> None:
    refused = Answer(
        422, {"error": "recipient_suppressed", "message": "No.", "recipient": "b@x", "type": "bounce"}
    )
    with (
        http_peer(refused) as peer,
        Client("pr_1", peer.url, patience=QUICK) as client,
        pytest.raises(errors.RecipientSuppressed) as caught,
    ):
        client.send("inb_1", to="b@example.com", subject="s", body="t")
    assert (caught.value.status, caught.value.code) == (422, "recipient_suppressed")
    assert caught.value.extras == {"recipient": "b@x", "type": "bounce"}
    assert len(peer.seen) == 1


def test_a_delete_whose_answer_was_lost_is_done_when_the_thing_is_gone() -> None:
    gone = refusal(404, "not_found")
    with http_peer(DROPPED, gone) as peer, Client("pr_1", peer.url, patience=QUICK) as client:
        client.delete_inbox("inb_1")
    with (
        http_peer(gone) as peer,
        Client("pr_1", peer.url, patience=QUICK) as client,
        pytest.raises(errors.NotFound),
    ):
        client.delete_inbox("inb_1")


def test_a_server_that_is_away_is_a_failed_connection() -> None:
    with (
        Client("pr_1", "http://127.0.0.1:1", patience=QUICK) as client,
        pytest.raises(errors.ConnectionFailed, match=r"No answer from http://127\.0\.0\.1:1"),
    ):
        client.create_inbox("a")


@samples(
    "url",
    [
        "nonsense",
        "http://",
        "http://[",
        "http://[::1",
        "http://x:abc",
        "http://a\0b",
        "ftp://example.com",
        "http://a b/",
    ],
)
def test_an_address_that_is_none_is_a_failed_connection(url: str) -> None:
    with pytest.raises(errors.ConnectionFailed):
        Client("pr_1", url, patience=QUICK).me()


@samples(
    "answer", [Answer(200, b"<html>"), Answer(200, b"\xff"), Answer(200, []), Answer(200, b"[" * 100_000)]
)
def test_an_answer_that_is_not_ours_is_an_error_of_its_own(answer: Answer) -> None:
    with http_peer(answer) as peer, Client("pr_1", peer.url) as client, pytest.raises(errors.InvalidAnswer):
        client.me()


def test_an_error_page_of_a_proxy_is_an_error_of_its_own() -> None:
    with (
        http_peer(Answer(403, b"<html>Forbidden")) as peer,
        Client("pr_1", peer.url) as client,
        pytest.raises(errors.InvalidAnswer) as caught,
    ):
        client.me()
    assert caught.value.status == 403


def test_an_unknown_code_is_the_common_exception_with_that_code() -> None:
    with (
        http_peer(refusal(418, "teapot")) as peer,
        Client("pr_1", peer.url) as client,
        pytest.raises(errors.PostroomError) as caught,
    ):
        client.me()
    assert (type(caught.value), caught.value.code) == (errors.PostroomError, "teapot")


def test_the_key_goes_with_every_call_but_not_to_another_host() -> None:
    with http_peer(Answer(200, b"bytes")) as store:
        moved = Answer(302, b"", (("Location", store.url.replace("127.0.0.1", "localhost") + "/signed"),))
        with http_peer(moved) as peer, Client("pr_1", peer.url) as client:
            assert client.get_attachment("msg_1", "a b/c.txt") == b"bytes"
    assert peer.seen[0].path == "/v1/attachments/msg_1/a%20b%2Fc.txt"
    assert peer.seen[0].headers["authorization"] == "Bearer pr_1"
    assert "authorization" not in store.seen[0].headers


def test_upload_and_download_tell_how_far_they_are() -> None:
    from postroom_client.calls import calls

    steps: list[tuple[int, int | None]] = []
    file = OutgoingFile("a.bin", b"x" * 200_000)
    with (
        http_peer(Answer(200, SENT), Answer(200, b"y" * 300_000)) as peer,
        Client("pr_1", peer.url) as client,
    ):
        client.exchange(
            calls.send("inb_1", to="b@x.y", subject="s", body="t", attachments=[file]),
            lambda done, total: steps.append((done, total)),
        )
        assert steps[-1] == (200_000, 200_000)
        client.exchange(calls.get_attachment("msg_1", "a"), lambda done, total: steps.append((done, total)))
        assert steps[-1] == (300_000, 300_000)


def test_without_a_key_there_is_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POSTROOM_API_KEY", raising=False)
    for kind in (Client, AsyncClient):
        with pytest.raises(errors.Unauthorized, match="POSTROOM_API_KEY"):
            kind()


def test_the_environment_gives_server_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with http_peer(Answer(200, {"accountId": "acc_1", "limits": {}})) as peer:
        monkeypatch.setenv("POSTROOM_API_KEY", "pr_env")
        monkeypatch.setenv("POSTROOM_BASE_URL", peer.url)
        with Client() as client:
            assert client.me().account_id == "acc_1"
    assert peer.seen[0].headers["authorization"] == "Bearer pr_env"


@samples(
    ("value", "seconds"),
    [("7", 7), (None, None), ("-1", None), ("soon", None), ("٣", None), ("9" * 400, None), ("1.5", None)],
)
def test_only_whole_seconds_are_a_retry_after(value: str | None, seconds: int | None) -> None:
    assert read_retry_after(value) == seconds


def test_pauses_grow_and_stay_below_the_longest() -> None:
    assert 0.125 <= backoff(1, 0.25, 60) <= 0.25
    assert 0.5 <= backoff(3, 0.25, 60) <= 1
    assert backoff(10_000, 0.25, 60) <= 60


def test_a_success_has_no_next_attempt() -> None:
    call: Call[Any] = Call("GET", "/", nothing)
    reads: list[Callable[[], float | None]] = [
        lambda: pause_before_next(call, Reply(200, b""), 1, QUICK),
        lambda: pause_before_next(call, Reply(404, b""), 1, QUICK),
    ]
    assert [read() for read in reads] == [None, None]
