"""The command line of an account: pods, keys, policies and the log of decisions."""

import uuid

from tests.client.live import Shell


def test_pods_are_made_renamed_and_deleted(shell: Shell) -> None:
    client_id = f"tenant-{uuid.uuid4().hex}"
    made = shell.json("pods", "create", "--client-id", client_id, "--name", "Acme")
    assert shell.json("pods", "show", client_id)["id"] == made["id"]
    assert "Acme, Inc." in shell.human("pods", "rename", made["id"], "Acme, Inc.")
    assert client_id in shell.human("pods", "list")
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


def test_what_was_decided_is_in_the_audit(shell: Shell) -> None:
    made = shell.json("keys", "create", "--name", f"audited-{uuid.uuid4().hex}")
    entries = shell.json("audit", "--limit", "100")["data"]
    assert made["id"] in {entry["target"] for entry in entries}
    assert made["id"] in shell.human("audit", "--limit", "100")
    action = next(entry["action"] for entry in entries if entry["target"] == made["id"])
    only = shell.json("audit", "--action", action, "--limit", "100")["data"]
    assert {entry["action"] for entry in only} == {action}
