"""postroom wait, listen and webhook …, in both forms."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from postroom_client import verify_signature
from postroom_client.results import Inbox
from tests.client.live import LiveServer, Shell
from tests.client.peers import Answer, HttpPeer, http_peer

SECRET = "a-secret-of-enough-characters"


def mail(inbox: Inbox, subject: str) -> bytes:
    return f"From: Ann <ann@example.com>\r\nTo: {inbox.address}\r\nSubject: {subject}\r\n\r\nhi\r\n".encode()


@pytest.fixture
def default(shell: Shell, inbox: Inbox) -> Inbox:
    shell.json("inbox", "use", inbox.id)
    return inbox


@pytest.fixture
def first_event(live: LiveServer, default: Inbox) -> str:
    """The id of an event that lies behind; its inbox is the default."""
    live.deliver(mail(default, "earlier"), default.address)
    live.arrived(default)
    with live.client() as client:
        return client.list_events(inbox_ids=[default.id]).data[0].event_id


def test_wait_shows_the_mail_that_comes(live: LiveServer, shell: Shell, default: Inbox) -> None:
    with live.client() as client, ThreadPoolExecutor() as pool:
        waiting = pool.submit(client.wait, default.id, timeout=120, subject="wanted")
        while not waiting.done():
            live.deliver(mail(default, "Wanted indeed"), default.address)
        found = waiting.result()
    assert found is not None
    assert found.subject == "Wanted indeed"


def test_wait_finds_what_arrived_after_a_message(live: LiveServer, shell: Shell, default: Inbox) -> None:
    for subject in ("one", "two", "three"):
        live.deliver(mail(default, subject), default.address)
    first = live.arrived(default, 3)[0]
    assert shell.json("wait", "--after", first.id, "--timeout", "120")["subject"] == "two"
    assert shell.json("wait", "--after", "0", "--timeout", "120")["subject"] == "one"
    filtered = ("wait", "--after", first.id, "--subject", "THREE", "--from", "ann@", "--timeout", "120")
    assert "three" in shell.human(*filtered)


def test_wait_takes_a_mail_that_is_unread_already(live: LiveServer, shell: Shell, default: Inbox) -> None:
    for subject in ("first", "second"):
        live.deliver(mail(default, subject), default.address)
    first, second = live.arrived(default, 2)
    assert shell.json("wait", "--unread", "--timeout", "0")["id"] == first.id
    assert second.id in shell.human("wait", "--unread", "--subject", "SECOND", "--timeout", "0")
    shell.json("threads", "read", first.thread_id)
    shell.json("threads", "read", second.thread_id)
    assert shell.run("wait", "--unread", "--timeout", "0").exit_code == 1


NOTHING = {"data": [], "total": 0}
NEWEST_EVENT = {"data": [{"event": "message.received", "event_id": "evt_1", "message": {"id": "msg_0"}}]}
THREAD = {"data": [{"id": "thr_1", "inboxId": "inb_1", "messageCount": 1}], "total": 1}


def thread_page(message: dict[str, Any]) -> dict[str, Any]:
    return {"threadId": "thr_1", "inboxId": "inb_1", "data": [message], "total": 1}


def test_a_wait_in_an_account_where_nothing_happened_takes_all_that_happens() -> None:
    came = {"id": "msg_1", "threadId": "thr_1"}
    answers = (
        Answer(200, NOTHING),
        Answer(200, NOTHING),
        Answer(204),
        Answer(200, NOTHING),
        Answer(200, came),
    )
    with http_peer(*answers) as peer, LiveServer(peer.url, 0).client() as client:
        found = client.wait("inb_1", timeout=150, unread=True)
    assert found is not None
    assert found.id == "msg_1"
    asked = [request.path.partition("?")[2] for request in peer.seen]
    assert (asked[2], asked[4]) == ("timeout=120.0&after=0", "timeout=30.0&after=0")


@pytest.mark.parametrize("state", [{"verdict": None}, {"verdict": "clean", "attachmentsRead": False}])
def test_a_mail_examined_between_the_look_and_the_wait_is_waited_for(state: dict[str, Any]) -> None:
    """It is listed before its event is told: the wait goes on behind an event, never behind a message."""
    early = {"id": "msg_1", "threadId": "thr_1", **state}
    done = {"id": "msg_1", "threadId": "thr_1", "verdict": "clean", "attachmentsRead": True}
    answers = [Answer(200, body) for body in (NEWEST_EVENT, THREAD, thread_page(early), done)]
    with http_peer(*answers) as peer, LiveServer(peer.url, 0).client() as client:
        found = client.wait("inb_1", timeout=60, unread=True)
    assert found is not None
    assert found.is_examined
    assert peer.seen[0].path == "/v1/events?limit=1&order=desc"
    assert peer.seen[3].path.endswith("/wait?timeout=60&after=evt_1")


@pytest.mark.parametrize("form", ["--json", "--no-json"])
def test_wait_exits_with_1_when_nothing_comes(shell: Shell, default: Inbox, form: str) -> None:
    result = shell.run("wait", "--timeout", "0.1", form)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "No email came within 0.1 s" in result.stderr


def test_a_wait_longer_than_the_server_s_goes_on_behind_the_newest_event() -> None:
    came = {"id": "msg_2", "threadId": "thr_1"}
    gone = Answer(404, {"error": "not_found", "message": "It may be older than 30 days."})
    answers = (Answer(200, NEWEST_EVENT), Answer(204), gone, Answer(200, came))
    with http_peer(*answers) as peer, LiveServer(peer.url, 0).client() as client:
        found = client.wait("inb_1", timeout=200, thread_id="thr_1")
    assert found is not None
    assert found.id == "msg_2"
    asked = [request.path.partition("?")[2] for request in peer.seen[1:]]
    assert asked == [
        "timeout=120.0&after=evt_1&thread_id=thr_1",
        "timeout=80.0&after=evt_1&thread_id=thr_1",
        "timeout=80.0&after=0&thread_id=thr_1",
    ]


def test_listen_prints_an_event_a_line(
    live: LiveServer, shell: Shell, default: Inbox, first_event: str
) -> None:
    live.deliver(mail(default, "later one"), default.address)
    live.deliver(mail(default, "later two"), default.address)
    order = ("listen", "--inbox-id", default.id, "--after", first_event, "--count", "2")
    piped = shell.run(*order, "--event-type", "message.received")
    assert piped.exit_code == 0, piped.output
    events = [json.loads(line) for line in piped.stdout.splitlines()]
    assert [event["message"]["subject"] for event in events] == ["later one", "later two"]
    shown = shell.human(*order)
    assert "message.received" in shown
    assert "Ann <ann@example.com>: later two" in shown


def test_listen_hands_events_to_a_local_endpoint_signed(
    live: LiveServer, shell: Shell, default: Inbox, first_event: str
) -> None:
    live.deliver(mail(default, "forward me"), default.address)
    with http_peer() as endpoint:
        order = ("listen", "--after", first_event, "--inbox-id", default.id, "--count", "1")
        result = shell.run(*order, "--forward-to", f"{endpoint.url}/hook", "--secret", SECRET)
    assert result.exit_code == 0, result.output
    assert "answered 200" in result.stderr
    [request] = endpoint.seen
    assert request.body == result.stdout_bytes.strip()
    assert request.headers["x-event-id"] == json.loads(request.body)["event_id"]
    assert verify_signature(
        request.body, request.headers["x-timestamp"], request.headers["x-signature"], SECRET
    )


def test_listen_makes_a_secret_and_says_when_the_endpoint_is_away(
    live: LiveServer, shell: Shell, default: Inbox, first_event: str
) -> None:
    live.deliver(mail(default, "nobody there"), default.address)
    order = ("listen", "--after", first_event, "--inbox-id", default.id, "--count", "1")
    result = shell.run(*order, "--forward-to", "http://127.0.0.1:1/hook")
    assert result.exit_code == 0
    assert "signed with this secret" in result.stderr
    assert "did not answer" in result.stderr


def test_listen_to_a_foreign_inbox_is_refused(shell: Shell) -> None:
    result = shell.run("listen", "--inbox-id", "inb_nobodys", "--no-json")
    assert result.exit_code == 1
    assert "unknown" in result.stderr


def posted(live: LiveServer, shell: Shell, endpoint: HttpPeer, inbox: Inbox) -> str:
    """The id of a delivery to the endpoint, once it was made."""
    live.deliver(mail(inbox, "for the hook"), inbox.address)
    while True:
        for delivery in shell.json("webhook", "deliveries")["data"]:
            if delivery["inboxId"] == inbox.id and delivery["attempts"]:
                found: str = delivery["id"]
                return found


def test_the_webhook_is_set_shown_tested_and_removed(live: LiveServer, shell: Shell, inbox: Inbox) -> None:
    unset = shell.run("webhook", "show", "--no-json")
    assert unset.exit_code == 1
    assert "postroom webhook set URL" in unset.stderr
    with http_peer() as endpoint:
        made = shell.run("webhook", "set", f"{endpoint.url}/hook", "--no-json")
        assert "secret" in made.stdout
        assert "save it" in made.stderr
        again = shell.json(
            "webhook", "set", endpoint.url, "--event-type", "message.received", "--secret", SECRET
        )
        assert "secret" not in again
        assert endpoint.url in shell.human("webhook", "show")
        assert shell.json("webhook", "show")["eventTypes"] == ["message.received"]
        assert "answered 200" in shell.human("webhook", "test")
        assert shell.json("webhook", "test")["ok"] is True
        proof = endpoint.seen[-1]
        assert verify_signature(
            proof.body, proof.headers["x-timestamp"], proof.headers["x-signature"], SECRET
        )
        delivery = posted(live, shell, endpoint, inbox)
        assert delivery in shell.human("webhook", "deliveries", "--limit", "100")
        assert shell.json("webhook", "deliveries", "--state", "failed")["data"] == []
        assert shell.json("webhook", "retry", delivery)["id"] == delivery
        assert delivery in shell.human("webhook", "retry", delivery)
        assert shell.json("webhook", "retry", "--failed-since", "2026-01-01")["retried"] == 0
        assert "0 retried" in shell.human("webhook", "retry", "--failed-since", "2026-01-01T10:00:00")
        assert shell.json("webhook", "rotate")["secret"] != SECRET
        assert "secret" in shell.human("webhook", "rotate")
        assert shell.json("webhook", "delete") == {"deleted": True}
        shell.json("webhook", "set", endpoint.url)
        assert shell.run("webhook", "delete", "--no-json").stdout == ""


def test_a_retry_needs_one_delivery_or_a_moment(shell: Shell) -> None:
    assert shell.run("webhook", "retry").exit_code == 2
    assert shell.run("webhook", "retry", "whd_1", "--failed-since", "2026-01-01").exit_code == 2


def test_an_inbox_has_a_webhook_of_its_own(shell: Shell, inbox: Inbox) -> None:
    with http_peer() as endpoint:
        shown = shell.human("inbox", "update", inbox.id, "--webhook-url", endpoint.url)
        assert endpoint.url in shown
        assert "webhook secret" in shown
        assert shell.json("inbox", "update", inbox.id, "--webhook-url", "")["webhookUrl"] is None


def test_empty_deliveries_name_the_next_command(new_inbox: Callable[[], Inbox], shell: Shell) -> None:
    result = shell.run("webhook", "deliveries", "--state", "failed", "--no-json")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "postroom webhook test" in result.stderr
