"""The command line of an account: pods, keys, policies and the log of decisions."""

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

from postroom.upkeep.verification.audit_files import AuditLog
from tests.client.live import Shell


def test_pods_are_made_renamed_and_deleted(shell: Shell) -> None:
    client_id = f"tenant-{uuid.uuid4().hex}"
    made = shell.json("pods", "create", "--client-id", client_id, "--name", "Acme")
    assert shell.json("pods", "show", client_id)["id"] == made["id"]
    assert "Acme, Inc." in shell.human("pods", "rename", made["id"], "Acme, Inc.")
    assert client_id in shell.human("pods", "list")
    inside = shell.json("inbox", "create", f"i{uuid.uuid4().hex[:12]}", "--pod-id", client_id)["id"]
    assert [inbox["id"] for inbox in shell.json("inbox", "list", "--pod-id", client_id)["data"]] == [inside]
    assert shell.json("usage", "--group-by", "inbox", "--pod-id", client_id)["data"] == []
    assert shell.json("usage", "--group-by", "inbox", "--inbox-id", inside)["data"] == []
    bound = ("--approval", "always", "--per-day", "3")
    for key in (shell.json("keys", "create", *bound), shell.json("inbox", "keys", "create", inside, *bound)):
        assert (key["approval"]["when"], key["limits"]["perDay"]) == (["always"], 3)
    shell.json("inbox", "delete", inside, "--yes")
    assert shell.json("pods", "identify", made["id"], f"{client_id}-b")["clientId"] == f"{client_id}-b"
    assert shell.json("pods", "identify", made["id"], "")["clientId"] is None
    assert shell.run("pods", "delete", made["id"]).exit_code == 2
    assert shell.json("pods", "delete", made["id"], "--yes")["deleted"]
    assert "not_found" in shell.run("pods", "show", made["id"]).output


def test_keys_are_made_narrowed_and_revoked(shell: Shell) -> None:
    made = shell.json(
        "keys", "create", "--name", "reviewer", "--permission", "read", "--permission", "approve"
    )
    assert made["permissions"] == ["read", "approve"]
    assert shell.run("inbox", "create", "never", POSTROOM_API_KEY=made["token"]).exit_code == 4
    assert shell.json("keys", "change", made["id"], "--permission", "read")["permissions"] == ["read"]
    assert "reviewer" in shell.human("keys", "list")
    pod = shell.json("pods", "create")["id"]
    of_pod = shell.json("keys", "create", "--pod-id", pod, "--expires-at", "2100-01-01T00:00:00Z")
    assert (of_pod["podId"], of_pod["expiresAt"]) == (pod, "2100-01-01T00:00:00.000Z")
    sooner = shell.json("keys", "change", of_pod["id"], "--expires-at", "2099-01-01T00:00:00Z")
    assert sooner["expiresAt"] == "2099-01-01T00:00:00.000Z"
    assert [key["id"] for key in shell.json("keys", "list", "--pod-id", pod)["data"]] == [of_pod["id"]]
    assert shell.json("keys", "revoke", made["id"])["deleted"]
    assert shell.run("inbox", "list", POSTROOM_API_KEY=made["token"]).exit_code == 4


def test_a_policy_is_set_shown_and_its_stops_are_listed(shell: Shell) -> None:
    name = f"p{uuid.uuid4().hex[:12]}"
    inbox = ("--inbox-id", shell.json("inbox", "create", name)["id"])
    assert shell.json("policy", "mode", "outbound", "allowlist", *inbox)["outbound"]["mode"] == "allowlist"
    rule = shell.json("policy", "allow", "outbound", "example.com", *inbox)
    assert "evil.example" in shell.human("policy", "block", "inbound", "evil.example", *inbox)
    shown = shell.human("policy", "show", *inbox)
    assert "allowlist" in shown
    assert "example.com" in shown
    refused = shell.run("send", "--to", "a@other.example", "--subject", "s", "--body", "b", *inbox)
    assert "recipient_not_allowed" in refused.output
    assert "a@other.example" in shell.human("policy", "stops", "--action", "refused", *inbox)
    assert shell.json("policy", "remove", rule["id"], *inbox)["deleted"]
    assert shell.json("policy", "show", *inbox)["outbound"]["rules"] == []


def test_what_was_decided_is_in_the_audit(shell: Shell, tmp_path: Path) -> None:
    made = shell.json("keys", "create", "--name", f"audited-{uuid.uuid4().hex}")
    entries = shell.json("audit", "list", "--limit", "100")["data"]
    assert made["id"] in {entry["target"] for entry in entries}
    assert made["id"] in shell.human("audit", "list", "--limit", "100")
    action = next(entry["action"] for entry in entries if entry["target"] == made["id"])
    only = shell.json("audit", "list", "--action", action, "--limit", "100")["data"]
    assert {entry["action"] for entry in only} == {action}
    exported, log = shell.json("audit", "export", str(tmp_path / "audit.jsonl")), AuditLog()
    log.read((tmp_path / "audit.jsonl").read_bytes())
    assert log.verify() == []
    assert (len(log.entries), len(log.heads)) == (exported["entries"], 1)


def test_rules_of_approval_are_set_at_every_level_and_taken_away(shell: Shell) -> None:
    inbox = shell.json("inbox", "create", f"r{uuid.uuid4().hex[:12]}")["id"]
    pod, key = shell.json("pods", "create")["id"], shell.json("keys", "create")["id"]
    rules = (
        "strangers",
        "links",
        "--over-per-day",
        "5",
        "--reviewer",
        "ann@example.com",
        "--expires-hours",
        "8",
    )
    for scope in (("--inbox-id", inbox), ("--pod-id", pod), ("--key-id", key), ()):
        wanted = {
            "when": ["strangers", "links", {"overPerDay": 5}],
            "expiresHours": 8,
            "reviewers": ["ann@example.com"],
            "approvals": 1,
        }
        assert shell.json("approvals", "require", *rules, *scope)["approval"] == wanted
        shown = shell.human("approvals", "rules", *scope)
        for part in ("strangers", "more than 5 sends a day", "8 hours", "ann@example.com"):
            assert part in shown, part
        assert shell.json("approvals", "free", *scope)["approval"] is None
        assert "nothing" in shell.human("approvals", "rules", *scope)
    assert (
        "is not an approval rule"
        in shell.run("approvals", "require", "sometimes", "--inbox-id", inbox).output
    )
    assert shell.run("approvals", "require", "--inbox-id", inbox).exit_code == 2
    assert shell.run("approvals", "rules", "--inbox-id", inbox, "--key-id", key).exit_code == 2


def test_a_rule_that_was_set_holds_a_send(shell: Shell) -> None:
    inbox = ("--inbox-id", shell.json("inbox", "create", f"h{uuid.uuid4().hex[:12]}")["id"])
    shell.json("approvals", "require", "always", *inbox)
    sent = shell.json("send", "--to", "a@example.com", "--subject", "s", "--body", "b", *inbox)
    assert sent["hold"]["reasons"] == ["always"]


def test_inboxes_and_keys_take_what_tenants_need(shell: Shell) -> None:
    pod = shell.json("pods", "create")["id"]
    inbox = shell.json("inbox", "create", f"t{uuid.uuid4().hex[:12]}", "--pod-id", pod)
    assert inbox["podId"] == pod
    key = shell.json("inbox", "keys", "create", inbox["id"], "--permission", "read", "--permission", "draft")
    assert key["permissions"] == ["read", "draft"]
    assert "no_webhook_url" in shell.run("webhook", "test", "--inbox-id", inbox["id"]).output
    shell.json("inbox", "update", inbox["id"], "--webhook-url", "http://127.0.0.1:9/")
    rotated = shell.json("webhook", "rotate", "--inbox-id", inbox["id"])
    assert rotated["webhookSecret"].startswith("whsec_")


def test_what_is_deleted_is_gone_and_a_scheduled_mail_can_be_moved(shell: Shell) -> None:
    inbox = ("--inbox-id", shell.json("inbox", "create", f"d{uuid.uuid4().hex[:12]}")["id"])
    later = (datetime.now(UTC) + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    mail = ("--to", "a@example.com", "--subject", "s", "--body", "b", "--send-at", later)
    first, second = shell.json("send", *mail, *inbox), shell.json("send", *mail, *inbox)
    sooner = later.replace("Z", "+01:00")
    assert shell.json("messages", "reschedule", first["id"], sooner)["hold"]["sendAt"] < later
    assert shell.json("messages", "delete", first["id"], "--yes")["deleted"]
    assert shell.json("threads", "delete", second["threadId"], "--yes")["deleted"]
    assert shell.run("threads", "delete", second["threadId"]).exit_code == 2
    assert shell.json("messages", "list", "--include", "blocked", *inbox)["data"] == []
    assert "not_found" in shell.run("messages", "release", first["id"]).output
