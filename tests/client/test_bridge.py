"""The bridge in a process of its own, against the real server and real handlers."""

import contextlib
import json
import signal
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from postroom_client.bridge import files
from postroom_client.bridge.files import Place
from postroom_client.results import Inbox
from tests import warm_start
from tests.client.live import LiveServer, Shell, plain_environment
from tests.client.peers import Answer, http_peer
from tests.ports import free_port
from tests.waiting import wait_until
from tests.warm_start import Process

PROFILE = "local"
PATIENCE_SECONDS = 120

APPEND = """
import os, sys
event = sys.stdin.read()
with open(sys.argv[1], "a") as file:
    file.write(event)
"""
HANG_ONCE = """
import pathlib, sys, time
event = sys.stdin.read()
first = pathlib.Path(sys.argv[1])
if not first.exists():
    first.write_text(event)
    time.sleep(60)
    sys.exit(1)
with open(sys.argv[2], "a") as file:
    file.write(event)
"""


@contextlib.contextmanager
def bridge(shell: Shell, *arguments: str, **more: str) -> Iterator[Process]:
    environment = plain_environment() | shell.environment(**more)
    process = warm_start.start_command(["bridge", "run", *arguments], environment)
    assert process.stderr is not None
    kill = partial(process.send_signal, signal.SIGKILL)
    end = threading.Timer(2 * PATIENCE_SECONDS, kill)  # so that no test waits for its words for ever
    end.start()
    with process.stderr:
        try:
            yield process
        finally:
            end.cancel()
            kill()
            process.wait()


def started() -> None:
    """From here on it misses nothing."""
    wait_until(lambda: files.find_place(PROFILE), "the bridge has not found its place")


def said(process: Process, text: str) -> str:
    """Reads what the bridge says, up to a line with `text`."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"the bridge never said: {text}")


def deliver(live: LiveServer, inbox: Inbox, subject: str) -> None:
    raw = f"From: alice@example.com\r\nTo: {inbox.address}\r\nSubject: {subject}\r\n\r\nHi\r\n"
    live.deliver(raw.encode(), inbox.address)


def log_of(live: LiveServer, inbox: Inbox, count: int) -> list[str]:
    """The ids of the events of an inbox, as the server numbers them."""
    with live.client() as client:
        wait_until(
            lambda: len(client.list_events(inbox_ids=[inbox.id], limit=100).data) >= count, "no event came"
        )
        return [event.event_id for event in client.list_events(inbox_ids=[inbox.id], limit=100).data]


def script(folder: Path, text: str, *arguments: Path) -> str:
    place = folder / "handler.py"
    place.write_text(text)
    return " ".join(map(str, (sys.executable, "-I", "-S", place, *arguments)))


def lines(path: Path) -> list[dict[str, Any]]:
    """The whole ones: a handler may be writing the last."""
    written = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in written if line.endswith("\n")]


def ids(path: Path) -> list[str]:
    return [event["event_id"] for event in lines(path)]


def has_taken(path: Path, count: int) -> bool:
    return len(lines(path)) >= count


def test_every_event_reaches_the_endpoint_in_order_with_the_token(
    shell: Shell, live: LiveServer, inbox: Inbox
) -> None:
    with http_peer() as peer:
        arguments = ("--forward-to", f"{peer.url}/hook", "--inbox-id", inbox.id)
        with bridge(shell, *arguments, POSTROOM_BRIDGE_TOKEN="secret-token"):
            started()
            for number in range(5):
                deliver(live, inbox, f"mail {number}")
            wait_until(lambda: len(peer.seen) == 5, "not all events came")
    assert [seen.headers["x-event-id"] for seen in peer.seen] == log_of(live, inbox, 5)
    assert {seen.headers["authorization"] for seen in peer.seen} == {"Bearer secret-token"}
    assert {seen.path for seen in peer.seen} == {"/hook"}
    event = json.loads(peer.seen[0].body)
    assert (event["event"], event["message"]["subject"]) == ("message.received", "mail 0")


def test_a_command_reads_the_event_on_its_standard_input(
    shell: Shell, live: LiveServer, inbox: Inbox, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    with bridge(shell, "--command", script(tmp_path, APPEND, taken), "--inbox-id", inbox.id):
        started()
        deliver(live, inbox, "for the command")
        wait_until(lambda: lines(taken), "the command was not run")
    assert lines(taken)[0]["message"]["subject"] == "for the command"


def test_an_event_that_is_not_taken_is_offered_again_and_none_is_skipped(
    shell: Shell, live: LiveServer, inbox: Inbox
) -> None:
    with (
        http_peer(Answer(500), Answer(is_dropped=True), Answer(204)) as peer,
        bridge(shell, "--forward-to", peer.url, "--inbox-id", inbox.id) as process,
    ):
        started()
        deliver(live, inbox, "first")
        deliver(live, inbox, "second")
        assert "answered 500" in said(process, "Again in")
        wait_until(lambda: len(peer.seen) == 4, "the event was given up")
        said(process, "handed over")
        said(process, "handed over")
    first, second = log_of(live, inbox, 2)
    assert [seen.headers["x-event-id"] for seen in peer.seen] == [first, first, first, second]
    place = files.find_place(PROFILE)
    assert place is not None
    assert (place.last_event_id, place.failing) == (second, None)


def test_a_bridge_that_was_killed_offers_the_event_again_and_what_came_meanwhile(
    shell: Shell, live: LiveServer, inbox: Inbox, tmp_path: Path
) -> None:
    begun, taken = tmp_path / "begun", tmp_path / "taken"
    arguments = ("--command", script(tmp_path, HANG_ONCE, begun, taken), "--inbox-id", inbox.id)
    with bridge(shell, *arguments) as process:
        started()
        deliver(live, inbox, "in the hands of the handler")
        wait_until(begun.exists, "the handler was not run")
        process.send_signal(signal.SIGKILL)
    deliver(live, inbox, "while nobody listened")
    with bridge(shell, *arguments):
        wait_until(lambda: len(lines(taken)) == 2, "an event was lost")
    assert ids(taken) == log_of(live, inbox, 2)


def test_no_event_is_lost_or_out_of_order_however_often_the_bridge_is_killed(
    shell: Shell, live: LiveServer, inbox: Inbox, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    arguments = ("--command", script(tmp_path, APPEND, taken), "--inbox-id", inbox.id)
    for enough in (0, 3, 6):
        with bridge(shell, *arguments) as process:
            started()
            for number in range(4):
                deliver(live, inbox, f"mail {number} after {enough}")  # the same mail twice is stored once
            wait_until(partial(has_taken, taken, enough), "the bridge stands still")
            process.send_signal(signal.SIGKILL)
    with bridge(shell, *arguments):
        wait_until(lambda: len(set(ids(taken))) == 12, "an event was lost")
    assert list(dict.fromkeys(ids(taken))) == log_of(live, inbox, 12)


def test_a_first_start_skips_what_was_there_unless_all_is_asked_for(
    shell: Shell, live: LiveServer, inbox: Inbox, tmp_path: Path
) -> None:
    deliver(live, inbox, "old")
    old = log_of(live, inbox, 1)
    taken = tmp_path / "taken"
    arguments = ("--command", script(tmp_path, APPEND, taken), "--inbox-id", inbox.id)
    with bridge(shell, *arguments):
        started()
        deliver(live, inbox, "new")
        wait_until(lambda: lines(taken), "no event came")
    assert ids(taken) == log_of(live, inbox, 2)[1:]
    files.remove(PROFILE)
    taken.unlink()
    with bridge(shell, *arguments, "--from-start"):
        wait_until(lambda: len(lines(taken)) == 2, "not all events came")
    assert ids(taken)[:1] == old


def test_a_place_that_the_server_has_forgotten_gives_way_to_the_oldest_event(
    shell: Shell, live: LiveServer, inbox: Inbox, tmp_path: Path
) -> None:
    deliver(live, inbox, "kept")
    kept = log_of(live, inbox, 1)
    with live.client() as client:
        place = Place(client.me().account_id, "evt_forgotten")
    files.save(files.place_path(PROFILE), place)
    taken = tmp_path / "taken"
    arguments = ("--command", script(tmp_path, APPEND, taken), "--inbox-id", inbox.id)
    with bridge(shell, *arguments) as process:
        said(process, "no longer keeps")
        wait_until(lambda: lines(taken), "no event came")
    assert ids(taken) == kept


def test_a_place_in_the_log_of_another_account_is_not_used(
    shell: Shell, live: LiveServer, inbox: Inbox, tmp_path: Path
) -> None:
    deliver(live, inbox, "before")
    log_of(live, inbox, 1)
    files.save(files.place_path(PROFILE), Place("acc_other", "evt_other"))
    taken = tmp_path / "taken"
    arguments = ("--command", script(tmp_path, APPEND, taken), "--inbox-id", inbox.id)
    with bridge(shell, *arguments) as process:
        said(process, "Continuing after")
        deliver(live, inbox, "after")
        wait_until(lambda: lines(taken), "no event came")
    assert ids(taken) == log_of(live, inbox, 2)[1:]


def test_one_bridge_runs_for_a_profile_and_status_shows_it(
    shell: Shell, inbox: Inbox, live: LiveServer
) -> None:
    assert shell.json("bridge", "status")["running"] is False
    with http_peer(Answer(500)) as peer, bridge(shell, "--forward-to", peer.url) as first:
        started()
        with bridge(shell, "--forward-to", peer.url) as second:
            assert "already running" in said(second, "running")
            assert second.wait(PATIENCE_SECONDS) == 1
        deliver(live, inbox, "stuck")
        said(first, "Again in")
        report = shell.json("bridge", "status")
        assert (report["running"], report["pid"], report["installed"]) == (True, first.pid, False)
        assert report["failing"]["attempts"] >= 1
        human = shell.human("bridge", "status")
        assert f"running (process {first.pid})" in human
        assert "answered 500" in human
        assert f"running (process {first.pid})" in shell.human("status")
        assert shell.json("status")["bridge"] == {"running": True, "pid": first.pid}
    wait_until(lambda: not shell.json("bridge", "status")["running"], "the lock outlived its bridge")


REFUSE_POISON = """
import sys
event = sys.stdin.read()
if "poison" in event:
    sys.exit(3)
with open(sys.argv[1], "a") as file:
    file.write(event)
"""


def test_an_event_that_fails_often_enough_is_put_aside_when_told_so(
    shell: Shell, live: LiveServer, inbox: Inbox, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    command = script(tmp_path, REFUSE_POISON, taken)
    with bridge(shell, "--command", command, "--inbox-id", inbox.id, "--aside-after", "2"):
        started()
        deliver(live, inbox, "poison")
        deliver(live, inbox, "wholesome")
        wait_until(lambda: has_taken(taken, 1), "the event behind it was not taken")
    poison, wholesome = log_of(live, inbox, 2)
    assert ids(taken) == [wholesome]
    report = shell.json("bridge", "status")
    assert report["failing"] is None
    [path] = [Path(path) for path in report["aside"]]
    assert path == files.aside_folder(PROFILE) / f"{poison}.json"
    assert json.loads(path.read_text())["event_id"] == poison
    assert "set aside" in shell.human("bridge", "status")


def test_a_stuck_event_is_skipped_by_hand(
    shell: Shell, live: LiveServer, inbox: Inbox, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    command = script(tmp_path, REFUSE_POISON, taken)
    with bridge(shell, "--command", command, "--inbox-id", inbox.id) as process:
        started()
        refused = shell.run("bridge", "skip", "--no-json")
        assert (refused.exit_code, "is not stuck" in refused.output) == (1, True)
        deliver(live, inbox, "poison")
        said(process, "Again in")
        [poison] = log_of(live, inbox, 1)
        assert "postroom bridge skip" in shell.human("bridge", "status")
        assert shell.json("bridge", "skip") == {"eventId": poison, "skipped": True, "profile": PROFILE}
        assert poison in said(process, "set aside")
        deliver(live, inbox, "wholesome")
        wait_until(lambda: has_taken(taken, 1), "the event behind it was not taken")
    assert [path.stem for path in files.list_aside(PROFILE)] == [poison]
    assert not files.skip_path(PROFILE).exists()


def test_a_skip_is_remembered_until_the_next_start_and_an_odd_id_stays_in_its_folder(shell: Shell) -> None:
    files.ask_to_skip(PROFILE, "evt_1")
    assert files.is_to_skip(PROFILE, "evt_1")
    assert not files.is_to_skip(PROFILE, "evt_2")
    path = files.put_aside(PROFILE, "../../evil", "{}")
    assert path.parent == files.aside_folder(PROFILE)


def test_a_server_that_is_away_is_waited_for(shell: Shell) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    with bridge(shell, "--command", "cat", "--base-url", away, "--api-key", "pr_x") as process:
        assert "Again in" in said(process, "connection broke")
        assert process.poll() is None


def test_a_refused_key_ends_the_bridge(shell: Shell) -> None:
    with bridge(shell, "--command", "cat", "--api-key", "pr_wrong") as process:
        assert process.wait(PATIENCE_SECONDS) == 4


def test_an_unknown_inbox_ends_the_bridge(shell: Shell, live: LiveServer, inbox: Inbox) -> None:
    deliver(live, inbox, "so that the log is not empty")
    log_of(live, inbox, 1)
    with bridge(shell, "--command", "cat", "--inbox-id", "inb_unknown") as process:
        assert process.wait(PATIENCE_SECONDS) == 1


def test_a_request_to_stop_ends_the_command_too(
    shell: Shell, live: LiveServer, inbox: Inbox, tmp_path: Path
) -> None:
    begun, taken = tmp_path / "begun", tmp_path / "taken"
    command = script(tmp_path, HANG_ONCE, begun, taken)
    with bridge(shell, "--command", command, "--inbox-id", inbox.id) as process:
        started()
        deliver(live, inbox, "slow")
        wait_until(begun.exists, "the handler was not run")
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0
    assert not any("handler.py" in command for command in running_commands(str(begun)))


def running_commands(argument: str) -> list[str]:
    texts = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            texts.append(place.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [text for text in texts if argument in text]


def test_a_command_that_takes_too_long_counts_as_failed(
    shell: Shell, live: LiveServer, inbox: Inbox, tmp_path: Path
) -> None:
    begun, taken = tmp_path / "begun", tmp_path / "taken"
    command = script(tmp_path, HANG_ONCE, begun, taken)
    with bridge(shell, "--command", command, "--inbox-id", inbox.id, "--timeout", "3") as process:
        started()
        deliver(live, inbox, "slow")
        said(process, "took longer than 3 s")
        wait_until(lambda: lines(taken), "the event was not offered again")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--forward-to", "http://127.0.0.1:1", "--command", "cat"),
        ("--command", "cat 'unclosed"),
    ],
)
def test_a_bridge_without_one_clear_handler_is_a_usage_error(
    shell: Shell, arguments: tuple[str, ...]
) -> None:
    assert shell.run("bridge", "run", *arguments).exit_code == 2


def test_a_handler_that_cannot_be_is_said_at_once(shell: Shell) -> None:
    result = shell.run("bridge", "run", "--forward-to", "ftp://example.com")
    assert result.exit_code == 1
    assert "not an http or https URL" in result.output
