"""kill -9 while mail is being indexed: each mail is found, and found once.

POSTROOM_TEST_KILLS sets how often.
"""

import os
import smtplib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2

from tests.end_to_end.process import TOKEN, Running, serving_process
from tests.raw_mails import raw_mail

KILLS = int(os.environ.get("POSTROOM_TEST_KILLS", "2"))
MAILS_OF_A_LIFE = 30
PATIENCE_SECONDS = 180


def api(running: Running) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    base_url = f"http://127.0.0.1:{running.http_port}"
    return httpx2.Client(base_url=base_url, headers=headers, timeout=PATIENCE_SECONDS, verify=False)


def hand_over(running: Running, first: int, count: int) -> None:
    with smtplib.SMTP("127.0.0.1", running.smtp_port, timeout=PATIENCE_SECONDS) as smtp:
        for number in range(first, first + count):
            raw = raw_mail("weekly numbers", subject=f"mail {number}")
            smtp.sendmail("a@example.com", ["hello@postroom.localhost"], raw)


def wait_until_all_is_indexed(client: httpx2.Client) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while client.get("/ready").json()["search"] != {"waiting": 0, "earlierPercent": 100}:
        assert time.monotonic() < ends, "the index does not keep up"
        time.sleep(0.05)


def results(client: httpx2.Client) -> Iterator[dict[str, Any]]:
    query = {"q": "weekly", "limit": "50"}
    while True:
        page = client.get("/v1/search", params=query).json()
        yield from page["data"]
        if page["next"] is None:
            return
        query["cursor"] = page["next"]


def test_each_mail_is_found_once_whenever_the_server_was_killed(database_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    sent = 0
    for life in range(KILLS):
        with serving_process(folder, database_url, workers=0) as running, api(running) as client:
            if life == 0:
                client.post("/v1/inboxes", json={"mailboxName": "hello"}).raise_for_status()
            hand_over(running, sent, MAILS_OF_A_LIFE)
            sent += MAILS_OF_A_LIFE
            time.sleep(0.2 * life)  # killed before, while and after the first batch
            running.kill()
    with serving_process(folder, database_url, workers=0) as running, api(running) as client:
        wait_until_all_is_indexed(client)
        found = [result["message"]["subject"] for result in results(client)]
    assert sorted(found) == sorted(f"mail {number}" for number in range(sent))
