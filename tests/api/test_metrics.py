"""What a node tells its operator: metrics that move with what happens, and a log in either form."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from postroom import log
from postroom.processes import process_metrics
from postroom.processes.process_metrics import Histogram
from tests.api.test_stream import mail
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "metrics.md"


async def read_metrics(server: Server) -> dict[str, float]:
    lines = (await server.api.get("/metrics")).text.splitlines()
    pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name: float(value) for name, _, value in pairs}


async def test_metrics_move_with_what_happens(server: Server) -> None:
    before = await read_metrics(server)
    inbox_id = await server.new_inbox("hello")
    await server.deliver(mail(1), "hello")
    await server.next_event()
    body = {"to": "far@example.org", "subject": "s", "body": "b"}
    await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers={"Idempotency-Key": "a"})
    after = await read_metrics(server)

    def grown(name: str) -> float:
        return after[name] - before.get(name, 0.0)

    assert grown('postroom_events_total{kind="message.received"}') == 1
    assert after['postroom_queue_depth{kind="mail"}'] == 1
    assert after['postroom_queue_depth{kind="webhook"}'] == 0
    assert {'postroom_queue_age_seconds{kind="examination"}', "postroom_streams"} <= after.keys()
    assert grown("postroom_write_batch_size_count") >= 3  # whatever else is written may share them
    assert grown("postroom_write_wait_seconds_count") >= 3
    assert after["postroom_smtp_sessions"] == 0
    assert after["postroom_certificate_expiry_timestamp_seconds"] > 1_700_000_000
    assert after['postroom_pool_threads{pool="files"}'] == 8


async def test_every_metric_that_is_documented_is_there_and_no_other_is(server: Server) -> None:
    text = (await server.api.get("/metrics")).text
    shown = set(re.findall(r"^# TYPE (postroom_\w+) (?:counter|gauge|histogram)$", text, re.MULTILINE))
    shown = {name for name in shown if not name.endswith("_created")}
    documented = set(re.findall(r"^\| `(postroom_\w+)`", DOCUMENT.read_text(), re.MULTILINE))
    assert documented == shown


def test_a_spread_counts_values_up_to_and_with_a_bound() -> None:
    histogram = Histogram("s", (1, 2), "")
    for value in (0.5, 1, 1.5, 2, 3):
        histogram.observe(value)
    assert histogram.read() == ([2, 2, 1], 8.0)


def test_a_log_in_json_has_one_object_a_line_whatever_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    log.use("json")
    try:
        log.get().info("mail\nreceived", size=3, peer='a"b', path=Path("/x"), code=None)
    finally:
        log.use("logfmt")
    log.get().info("plain", size=3)
    first, second = capsys.readouterr().err.splitlines()
    told = json.loads(first)
    del told["at"]
    assert told == {
        "level": "info",
        "event": "mail\nreceived",
        "size": 3,
        "peer": 'a"b',
        "path": "/x",
        "code": None,
    }
    assert second.endswith("level=info event=plain size=3")


def test_a_counter_is_exact_with_several_threads() -> None:
    counter = process_metrics.LabelCounter("t", "l", "")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: counter.increment("a"), range(2000)))
    assert counter.counts() == {"a": 2000}
