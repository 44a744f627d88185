"""Settings of account, pod, inbox and key that decide what leaves, and the proof of what left."""

import json
from pathlib import Path

import pytest

from postroom.upkeep.verification.audit_files import AuditLog
from postroom_client.results import Inbox
from tests.client.live import Shell

pytestmark = pytest.mark.sqlite_alone
LINE = '{"text": "Written by an AI agent.", "header": true}'


def test_the_settings_of_the_account_are_changed_and_cleared(shell: Shell) -> None:
    try:
        given = ("--origin-guard", "hold", "--trusted-value", "acme.example", "--disclosure", LINE)
        changed = shell.json("settings", "update", *given, "--junk", '{"action": "folder"}')
        assert (changed["originGuard"], changed["trustedValues"]) == ("hold", ["acme.example"])
        assert (changed["disclosure"]["header"], changed["junk"]["action"]) == (True, "folder")
        shown = shell.human("settings", "get")
        assert ("hold" in shown, "folder" in shown, "Written by" in shown) == (True, True, True)
    finally:
        cleared = shell.json("settings", "set", "--origin-guard", "off", "--disclosure", "", "--junk", "")
    assert (cleared["disclosure"], cleared["junk"]) == (None, None)
    wrong = shell.run("settings", "update", "--junk", "folder")
    assert (wrong.exit_code, '{"action": "folder"' in json.loads(wrong.stderr)["message"]) == (2, True)


def test_an_inbox_a_pod_and_a_key_have_them_too(shell: Shell, inbox: Inbox) -> None:
    junk = ("--junk", '{"action": "reject", "rejectThreshold": 0.999}')
    assert shell.json("inboxes", "update", inbox.id, *junk, "--disclosure", LINE)["disclosure"]["header"]
    shown = shell.human("inboxes", "update", inbox.id, "--origin-guard", "hold")
    assert ("hold" in shown, "reject" in shown, "Written by" in shown) == (True, True, True)
    pod = shell.json("pods", "create", "--name", "p", *junk)
    assert pod["junk"]["rejectThreshold"] == 0.999
    made = shell.json("keys", "create", "--name", "guarded", "--origin-guard", "refuse")
    assert made["originGuard"] == "refuse"


def test_a_receipt_is_shown_and_saved_as_it_is_signed(shell: Shell, inbox: Inbox, tmp_path: Path) -> None:
    mail = ("--to", inbox.address, "--subject", "Hi", "--body", "x", "--inbox-id", inbox.id)
    sent = shell.json("send", *mail)["id"]
    assert sent in shell.human("messages", "receipt", sent)
    shell.json("audit", "export", str(tmp_path / "audit.jsonl"))
    log = (tmp_path / "audit.jsonl").read_bytes()
    receipt = json.dumps(shell.json("messages", "receipt", sent))
    assert faults(log, receipt) == []
    assert faults(log, receipt.replace(inbox.address, "eve@evil.example")) == [
        "changed: its signature does not match"
    ]


def faults(log: bytes, receipt: str) -> list[str]:
    read = AuditLog()
    read.read(log)
    read.read(receipt.encode())
    return [found.what for found in read.verify()]


def test_a_rule_is_changed_and_junk_is_searched(shell: Shell, inbox: Inbox) -> None:
    of = ("--inbox-id", inbox.id)
    rule = shell.json("rules", "create", "First", "from:a@b.example", "--do", "label=one", *of)
    changed = shell.json("rules", "update", rule["id"], "--query", "from:c@d.example", "--name", "Second")
    assert (changed["name"], changed["query"]) == ("Second", "from:c@d.example")
    assert shell.json("search", "plumbus", "--include", "junk", *of)["data"] == []
    missing = shell.run("attachments", "get", "msg_" + "0" * 32, "x.exe", "--infected")
    assert json.loads(missing.stderr)["error"] == "not_found"
