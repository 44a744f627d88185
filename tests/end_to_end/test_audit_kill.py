"""kill -9 between an entry of the audit log and its signed head, and during the daily export."""

import os
from pathlib import Path
from typing import Any

from postroom.upkeep.verification.audit_files import AuditLog
from tests import warm_start
from tests.deaths import OF_THE_AUDIT_LOG, Life
from tests.end_to_end.process import Running, serving_process
from tests.end_to_end.test_erasure_kill import api
from tests.waiting import LIMIT_SECONDS, wait_until


def test_the_audit_log_is_whole_signed_and_exported_after_a_death_at_each_step(
    database_url: str, tmp_path: Path
) -> None:
    folder, exported, go = tmp_path / "data", tmp_path / "exported", tmp_path / "go"
    more = {"AUDIT_EXPORT": str(exported)}
    for day, step in enumerate(OF_THE_AUDIT_LOG):
        life = Life(day, go, step)
        with serving_process(folder, database_url, workers=0, more=more, before=life.begin) as running:
            make_inbox(running, f"box{day}")
            go.touch()
            assert running.process.wait(LIMIT_SECONDS) == -9, step
        go.unlink()
    day = len(OF_THE_AUDIT_LOG)
    with serving_process(folder, database_url, workers=0, more=more, before=Life(day, go).begin) as running:
        make_inbox(running, f"box{day}")
        go.touch()
        with api(running) as client:
            head = client.get("/v1/audit/head").json()
            entries = client.get("/v1/audit?limit=100").json()["data"]
            last = f"-{head['count']}-{head['hash'][:8]}.jsonl"
            wait_until(
                lambda: any(each.name.endswith(last) for each in exported.rglob("*")), "it is exported"
            )
    require_whole(entries, head, day + 1)
    require_verified(exported, head)


def make_inbox(running: Running, name: str) -> None:
    with api(running) as client:
        client.post("/v1/inboxes", json={"mailboxName": name}).raise_for_status()


def require_whole(entries: list[dict[str, Any]], head: dict[str, Any], made: int) -> None:
    """No entry twice, none missing: one chain from the first to the last."""
    assert [each["sequence"] for each in entries] == list(range(head["count"], 0, -1))
    names = [each["after"]["address"] for each in entries if each["action"] == "inbox.created"]
    assert sorted(names) == [f"box{day}@postroom.localhost" for day in range(made)]


def require_verified(exported: Path, head: dict[str, Any]) -> None:
    """As anybody checks the exported files, without a server."""
    checked = warm_start.run(["audit", "verify", str(exported)], os.environ)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    log = AuditLog()
    for path in exported.rglob("*.jsonl"):
        log.read(path.read_bytes())
    assert log.verify() == []
    assert sorted(log.entries) == list(range(1, head["count"] + 1))
    assert max(each["count"] for each in log.heads) == head["count"]
