import asyncio
import hashlib
import hmac
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.couriers.webhook import HttpCourier, WebhookLimits, parse_retry_after
from postroom.events.webhook_signature import sign
from postroom.external_mailboxes.fetching import FetchError
from postroom.net.dns import Resolver
from postroom.outward.courier import WebhookAnswer
from tests.couriers.certificates import make_certificate, server_context, trusting_context
from tests.couriers.conftest import failure_of
from tests.couriers.http_peer import OK, Answer, HttpPeer, repeat, say, say_and_stall
from tests.doubles_dns import DnsServer
from tests.samples import samples

BODY = '{"event":"message.received","text":"Grüße"}'.encode()
HEADERS = {"Content-Type": "application/json", "X-Signature": "abc"}
QUICK = WebhookLimits(deadline_seconds=0.4)
LONG_ENOUGH_FOR_A_STATUS = WebhookLimits(deadline_seconds=3)

MakeWebhooks = Callable[..., HttpCourier]


@pytest.fixture
async def make_webhooks(resolver: Resolver) -> AsyncIterator[MakeWebhooks]:
    made: list[HttpCourier] = []

    def make(
        *,
        allow_private: bool = True,
        limits: WebhookLimits | None = None,
        trusted: ssl.SSLContext | None = None,
    ) -> HttpCourier:
        trusted = trusted or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        courier = HttpCourier(
            resolver, allow_private=allow_private, limits=limits, trusted=trusted, now=lambda: 1_000_000_000.0
        )
        made.append(courier)
        return courier

    yield make
    for courier in made:
        await courier.close()


async def test_the_endpoint_gets_the_very_bytes_and_headers(make_webhooks: MakeWebhooks) -> None:
    async with HttpPeer() as peer:
        answer = await make_webhooks().post(peer.url("/a%20b?x=1#part"), BODY, HEADERS)
    assert (answer.status, answer.excerpt, answer.is_success) == (200, "ok", True)
    assert answer.milliseconds >= 0
    (request,) = peer.requests
    assert request.body == BODY
    assert request.head.startswith(b"POST /a%20b?x=1 HTTP/1.1\r\n")
    assert request.header("Host") == f"127.0.0.1:{peer.port}"
    assert request.header("X-Signature") == "abc"
    assert request.header("Content-Type") == "application/json"
    assert request.header("Accept-Encoding") == "identity"


@pytest.mark.parametrize("status", [200, 201, 204, 299])
async def test_any_2xx_is_success(make_webhooks: MakeWebhooks, status: int) -> None:
    async with HttpPeer(say(b"HTTP/1.1 %d Fine\r\nContent-Length: 0\r\n\r\n" % status)) as peer:
        answer = await make_webhooks().post(peer.url(), BODY, HEADERS)
    assert (answer.status, answer.is_success) == (status, True)


@samples("status", [199, 300, 400, 401, 410, 500, 503])
def test_another_status_is_a_failure(status: int) -> None:
    assert not WebhookAnswer(status, 5, "").is_success


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_told_and_not_followed(make_webhooks: MakeWebhooks, status: int) -> None:
    async with HttpPeer() as other:
        redirect = f"HTTP/1.1 {status} Moved\r\nLocation: {other.url()}\r\nContent-Length: 0\r\n\r\n"
        async with HttpPeer(say(redirect.encode())) as peer:
            answer = await make_webhooks().post(peer.url(), BODY, HEADERS)
    assert (answer.status, answer.is_success) == (status, False)
    assert other.connections == 0


async def test_the_retry_after_header_is_passed_on(make_webhooks: MakeWebhooks) -> None:
    busy = b"HTTP/1.1 429 Busy\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n"
    async with HttpPeer(say(busy)) as peer:
        answer = await make_webhooks().post(peer.url(), BODY, HEADERS)
    assert (answer.status, answer.retry_after_seconds) == (429, 120)


@samples(
    ("value", "seconds"),
    [
        ("0", 0),
        (" 30 ", 30),
        ("9" * 60, 86400),
        ("Sun, 09 Sep 2001 01:46:50 GMT", 10),
        ("Sun, 09 Sep 2001 01:46:30 GMT", 0),
        ("Sun, 09 Sep 2101 01:46:30 GMT", 86400),
        ("", None),
        ("-5", None),
        ("soon", None),
        ("\uff11\uff12", None),
        ("9" * 5000, None),
        ("Sun, 99 Sep 99999 01:46:30 GMT", None),
    ],
)
def test_retry_after_is_a_count_or_a_date(value: str, seconds: int | None) -> None:
    assert parse_retry_after(value, 1_000_000_000.0) == seconds


@given(st.text(max_size=80))
def test_any_retry_after_is_read_or_ignored(value: str) -> None:
    seconds = parse_retry_after(value, 1_000_000_000.0)
    assert seconds is None or 0 <= seconds <= 86400


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("answer", "excerpt"),
    [
        (say(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n3\r\n yo\r\n0\r\n\r\n"), "hi yo"),
        (say(HEAD + b"\r\nuntil the end"), "until the end"),
        (say(HEAD + b"Content-Length: 100\r\n\r\ncut off"), "cut off"),
        (say_and_stall(HEAD + b"Content-Length: 100\r\n\r\nstalled"), "stalled"),
        (repeat(HEAD + b"Content-Length: 99999999999\r\n\r\n", b"x" * 5000), "x" * 2048),
        (
            repeat(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b"x" * 4096 + b"\r\n"),
            "x" * 2048,
        ),
        (say(HEAD + b"Content-Length: 6\r\n\r\na\x00\xff\x1b\nb"), "a \N{REPLACEMENT CHARACTER} \nb"),
        (say(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope"), "nope"),
        (say(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 50, OK), "ok"),
        (say(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\nnonsense"), "hi"),
    ],
    ids=[
        "chunked",
        "no length",
        "cut off",
        "stalled",
        "huge",
        "endless",
        "binary",
        "gzip",
        "early",
        "broken",
    ],
)
async def test_the_status_counts_and_the_body_is_only_an_excerpt(
    make_webhooks: MakeWebhooks, answer: Answer, excerpt: str
) -> None:
    async with HttpPeer(answer) as peer:
        result = await make_webhooks(limits=LONG_ENOUGH_FOR_A_STATUS).post(peer.url(), BODY, HEADERS)
    assert (result.status, result.excerpt) == (200, excerpt)


@pytest.mark.parametrize(
    "answer",
    [
        say(),
        say(b"HTTP/1.1 200"),
        say(b"what?\r\n\r\n"),
        say(b"\xff\x00" * 1000),
        say(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        say_and_stall(b""),
        say_and_stall(b"HTTP/1.1 200 OK\r\n"),
        repeat(b"HTTP/1.1 200 OK\r\n", b"X-Header: y\r\n"),
        repeat(b"HTTP/1.1 200 OK\r\nX: ", b"y" * 4096),
        repeat(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        repeat(b"HTTP/1.1 200 OK\r\nX: ", b"y", pause_seconds=0.05),
    ],
    ids=[
        "drop",
        "drop amid the status",
        "nonsense",
        "binary",
        "bad length",
        "silence",
        "silence amid headers",
        "endless headers",
        "endless header",
        "endless early hints",
        "trickle",
    ],
)
async def test_no_answer_is_a_temporary_failure(make_webhooks: MakeWebhooks, answer: Answer) -> None:
    async with HttpPeer(answer) as peer:
        error = await failure_of(make_webhooks(limits=QUICK).post(peer.url(), BODY, HEADERS))
    assert (error.permanent, error.code) == (False, None)
    assert error.reason


async def test_no_connection_is_a_temporary_failure(make_webhooks: MakeWebhooks) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        error = await failure_of(make_webhooks().post(url, BODY, HEADERS))
    assert not error.permanent


async def test_a_request_that_nobody_reads_ends_with_the_deadline(make_webhooks: MakeWebhooks) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        error = await failure_of(make_webhooks(limits=QUICK).post(url, b"x" * 30_000_000, HEADERS))
    assert not error.permanent


async def test_the_certificate_must_be_of_the_named_host(
    make_webhooks: MakeWebhooks, dns: DnsServer, tmp_path: Path
) -> None:
    dns.records["hook.example", "A"] = ["127.0.0.1"]
    dns.records["other.example", "A"] = ["127.0.0.1"]
    pem = make_certificate(tmp_path, "hook.example")
    names: list[str | None] = []
    tls = server_context(pem)
    tls.sni_callback = lambda _, name, __: names.append(name)
    async with HttpPeer(tls=tls) as peer:
        courier = make_webhooks(trusted=trusting_context(pem))
        answer = await courier.post(peer.url(host="Hook.Example"), BODY, HEADERS)
        wrong_name = await failure_of(courier.post(peer.url(host="other.example"), BODY, HEADERS))
        unknown_issuer = await failure_of(make_webhooks().post(peer.url(host="hook.example"), BODY, HEADERS))
        for host, is_unproved in (("other.example", True), ("nowhere.example", False)):
            with pytest.raises(FetchError) as caught:
                await courier.fetch("GET", peer.url(host=host), {})
            assert caught.value.is_unproved is is_unproved
    assert answer.status == 200
    assert peer.requests[0].header("Host") == f"hook.example:{peer.port}"
    assert names[0] == "hook.example"
    assert len(peer.requests) == 1
    assert not wrong_name.permanent
    assert not unknown_issuer.permanent
    assert "certificate" in wrong_name.reason.lower()


async def test_a_certificate_of_an_address_is_checked_too(
    make_webhooks: MakeWebhooks, tmp_path: Path
) -> None:
    right, wrong = make_certificate(tmp_path, "127.0.0.1"), make_certificate(tmp_path, "hook.example")
    async with HttpPeer(tls=server_context(right)) as peer:
        answer = await make_webhooks(trusted=trusting_context(right)).post(peer.url(), BODY, HEADERS)
    async with HttpPeer(tls=server_context(wrong)) as peer:
        await failure_of(make_webhooks(trusted=trusting_context(wrong)).post(peer.url(), BODY, HEADERS))
    assert answer.status == 200
    assert peer.requests == []


async def test_a_dead_endpoint_delays_nobody(make_webhooks: MakeWebhooks) -> None:
    async with HttpPeer(say_and_stall(b"")) as dead, HttpPeer() as alive:
        courier = make_webhooks(limits=WebhookLimits(posts_per_endpoint=2))
        stuck = [asyncio.create_task(courier.post(dead.url(), BODY, HEADERS)) for _ in range(50)]
        answers = [await courier.post(alive.url(), BODY, HEADERS) for _ in range(5)]
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
    assert [answer.status for answer in answers] == [200] * 5
    assert dead.most_open == 2


async def test_a_wait_for_room_does_not_count_against_the_deadline(make_webhooks: MakeWebhooks) -> None:
    async def answer_slowly(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.4)
        writer.write(OK)

    async with HttpPeer(answer_slowly) as peer:
        limits = WebhookLimits(deadline_seconds=3, posts_per_endpoint=1)
        courier = make_webhooks(limits=limits)
        answers = await asyncio.gather(*(courier.post(peer.url(), BODY, HEADERS) for _ in range(8)))
    assert [answer.status for answer in answers] == [200] * 8


async def test_the_environment_cannot_put_a_proxy_between(
    make_webhooks: MakeWebhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with HttpPeer() as proxy, HttpPeer() as peer:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url(""))
        await make_webhooks().post(peer.url(), BODY, HEADERS)
    assert (proxy.connections, peer.connections) == (0, 1)


async def test_a_post_is_not_made_through_an_old_connection(make_webhooks: MakeWebhooks) -> None:
    async with HttpPeer(say_and_stall(OK)) as peer:
        courier = make_webhooks()
        for _ in range(3):
            await courier.post(peer.url(), BODY, HEADERS)
    assert peer.connections == 3


def test_the_signature_covers_the_timestamp_and_the_exact_bytes() -> None:
    expected = hmac.new(b"whsec_x", b"1700000000." + BODY, hashlib.sha256).hexdigest()
    assert sign("whsec_x", 1_700_000_000, BODY) == expected
    assert sign("whsec_x", 1_700_000_001, BODY) != expected
    assert sign("k", 1, b"") == sign("k", 1, b"").lower()


async def test_interim_answers_without_end_are_cut_off(make_webhooks: MakeWebhooks) -> None:
    webhooks = make_webhooks()
    async with HttpPeer(repeat(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 200)) as peer:
        failure = await failure_of(webhooks.post(peer.url(), BODY, HEADERS))
    assert "only interim answers came" in failure.reason


async def test_an_interim_answer_before_the_real_one_is_passed_over(make_webhooks: MakeWebhooks) -> None:
    webhooks = make_webhooks()
    async with HttpPeer(say(b"HTTP/1.1 100 Continue\r\n\r\n", OK)) as peer:
        assert (await webhooks.post(peer.url(), BODY, HEADERS)).status == 200
