"""postroom suppressions …, domains …, status, doctor, login and profiles …, in both forms."""

import fcntl
import json
import os
import socket
import stat
import threading
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace

import pytest

from postroom_client import Client, profiles
from postroom_client.cli import doctor_checks
from postroom_client.cli.doctor_checks import (
    IMAP,
    SUBMISSION,
    App,
    check_port,
    grade,
    set_port,
    smtp_port,
)
from postroom_client.results import Inbox
from postroom_client.settings import Settings
from tests.client.live import API_KEY, Shell
from tests.client.peers import Answer, http_peer


def test_suppressions_are_added_listed_and_removed(shell: Shell) -> None:
    assert "manual" in shell.human("suppressions", "add", "one@example.com")
    assert shell.json("suppressions", "add", "two@example.com")["address"] == "two@example.com"
    assert "one@example.com" in shell.human("suppressions", "list")
    assert shell.json("suppressions", "list")["total"] == 2
    assert shell.json("suppressions", "remove", "two@example.com")["deleted"]
    assert (
        "removed from the list" in shell.run("suppressions", "remove", "one@example.com", "--no-json").stderr
    )
    empty = shell.run("suppressions", "list", "--no-json")
    assert "postroom suppressions create" in empty.stderr


def test_domains_are_added_shown_verified_and_deleted(shell: Shell) -> None:
    assert "postroom.localhost" in shell.human("domains", "list"), "the server's own"
    shown = shell.run("domains", "add", "one.example.com", "--no-json")
    assert "v=DKIM1" in shown.stdout
    assert "postroom domains verify one.example.com" in shown.stderr
    made = shell.json("domains", "add", "two.example.com")
    key = next(record["value"] for record in made["records"] if "DKIM1" in record["value"])
    assert key in shell.human("domains", "show", made["id"])
    assert shell.json("domains", "show", made["id"])["domain"] == "two.example.com"
    assert "two.example.com" in shell.human("domains", "list")
    assert shell.json("domains", "list")["total"] == 3
    looked_at = shell.run("domains", "health", made["id"], "--no-json")
    assert (looked_at.exit_code, "port 25 in" in looked_at.stdout) == (1, True)
    verified = shell.run("domains", "verify", made["id"], "--no-json")
    assert (verified.exit_code, "not found" in verified.stdout) == (1, True)
    assert shell.run("domains", "delete", made["id"]).exit_code == 2
    assert shell.json("domains", "delete", made["id"], "--yes")["deleted"]
    left = next(each for each in shell.json("domains", "list")["data"] if not each["system"])
    assert "is deleted" in shell.run("domains", "delete", left["id"], "--yes", "--no-json").stderr


RECORD = {"type": "MX", "name": "example.com", "value": "10 here.", "required": True, "found": False}
DOMAIN = {"id": "dom_1", "domain": "example.com", "status": "pending", "records": [RECORD]}


def test_verify_answers_a_program_with_the_domain(shell: Shell) -> None:
    with http_peer(Answer(200, DOMAIN)) as peer:
        result = shell.run("domains", "verify", "dom_1", "--base-url", peer.url, "--api-key", "pr_1")
    assert (result.exit_code, json.loads(result.stdout)) == (1, DOMAIN)


def test_verify_ends_with_0_when_the_domain_is_verified(shell: Shell) -> None:
    with http_peer(Answer(200, {**DOMAIN, "status": "verified"})) as peer:
        shell.json("domains", "verify", "dom_1", "--base-url", peer.url, "--api-key", "pr_1")


@pytest.mark.parametrize(("name", "verdict"), [("MX", "fail"), ("TLS-RPT", "warn")])
def test_doctor_names_the_records_that_are_missing(name: str, verdict: str) -> None:
    check = {"name": name, "state": "missing", "wanted": "", "found": "", "why": "", "paste": ""}
    at_home = {**DOMAIN, "id": "dom_0", "domain": "postroom.localhost", "system": True}
    health = {"data": [check, {**check, "name": "port 25 out", "state": "unknown"}]}
    answers = ({"accountId": "acc_1", "limits": {}}, {"data": [at_home, DOMAIN], "total": 2}, health)
    with http_peer(*(Answer(200, answer) for answer in answers)) as peer, Client("pr_1", peer.url) as client:
        found = doctor_checks.check_dns(client, Settings("local", peer.url, "pr_1", None))
    assert (found.verdict, found.detail) == (verdict, f"example.com: {name} missing")
    assert "postroom domains health dom_1" in found.next_step


def test_doctor_names_users_with_the_address_of_an_inbox() -> None:
    me = {"accountId": "acc_1", "scope": "account", "permissions": ["manage"], "limits": {}}
    people = [{"id": "usr_1", "email": "ann@x.example", "addressIsAnInbox": True}, {"id": "usr_2"}]
    answers = (me, {"data": people, "total": 2}, me, {"data": people[1:], "total": 1})
    with http_peer(*(Answer(200, answer) for answer in answers)) as peer, Client("pr_1", peer.url) as client:
        asked = Settings("local", peer.url, "pr_1", None)
        found = [doctor_checks.check_people(client, asked) for _ in range(2)]
    assert [each.verdict for each in found] == ["fail", "pass"]
    assert "ann@x.example" in found[0].detail


def test_status_shows_connection_inbox_and_bridge(shell: Shell, inbox: Inbox) -> None:
    assert "none: postroom inboxes use" in shell.human("status")
    shell.json("inbox", "use", inbox.id)
    shown = shell.human("status")
    assert "connected as default (free)" in shown
    assert inbox.address in shown
    assert "not running" in shown
    report = shell.json("status")
    assert report["api"]["connected"] is True
    assert report["inbox"] == {"id": inbox.id, "address": inbox.address, "unreadThreads": 0}
    assert report["bridge"] == {"running": False}


def test_status_sees_a_bridge_that_holds_its_lock(shell: Shell) -> None:
    with profiles.bridge_lock_path("local").open("w+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711")
        lock.flush()
        assert shell.json("status")["bridge"] == {"running": True, "pid": 4711}
        assert "process 4711" in shell.human("status")
    assert shell.json("status")["bridge"] == {"running": False}


def test_status_without_a_server_still_says_what_it_knows(shell: Shell) -> None:
    result = shell.run("status", "--base-url", "http://127.0.0.1:1", "--api-key", "pr_1", "--no-json")
    assert result.exit_code == 1
    assert "not connected" in result.stdout
    assert "postroom serve" in result.stderr


def test_doctor_finds_a_healthy_server(shell: Shell) -> None:
    result = shell.run("doctor")
    checks = {check["name"]: check["verdict"] for check in json.loads(result.stdout)["checks"]}
    for name in ("profile", "connection", "key", "clock", "storage", "DNS records", "SMTP port"):
        assert checks[name] == "pass", result.stdout
    assert checks.keys() >= {"disk", "queue"}
    assert checks["incoming"] == "pass"
    assert result.exit_code == 0
    assert "SMTP port" in shell.human("doctor")


def test_doctor_sends_a_test_letter_and_says_what_became_of_it(
    shell: Shell, new_inbox: Callable[[], Inbox]
) -> None:
    result = shell.run("doctor", "--send-to", "ok@simulator.postroom.localhost", "--inbox-id", new_inbox().id)
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert checks["test email"]["verdict"] == "pass", result.stdout
    assert checks["letter: DKIM"]["verdict"] == "fail", "the server's own domain is in no DNS here"
    assert result.exit_code == 1


def test_doctor_without_a_server_names_the_next_step(shell: Shell) -> None:
    result = shell.run("doctor", "--base-url", "http://127.0.0.1:1", "--no-json")
    assert result.exit_code == 1
    assert "FAIL" in result.stdout
    assert "postroom serve" in result.stderr


def test_doctor_names_a_wrong_key_and_a_closed_port(shell: Shell) -> None:
    result = shell.run("doctor", "--api-key", "pr_wrong", POSTROOM_SMTP="127.0.0.1:1")
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert checks["key"]["verdict"] == "fail"
    assert "postroom login" in checks["key"]["nextStep"]
    assert "DNS records" not in checks
    assert checks["SMTP port"]["verdict"] == "fail"
    assert result.exit_code == 1


def test_doctor_warns_of_a_profile_that_others_can_read(shell: Shell) -> None:
    profiles.file_path().chmod(0o644)
    checks = {check["name"]: check for check in json.loads(shell.run("doctor").stdout)["checks"]}
    assert checks["profile"]["verdict"] == "warn"
    assert "chmod 600" in checks["profile"]["nextStep"]


def findings(url: str) -> dict[str, tuple[str, str]]:
    settings = Settings("local", url, "pr_1", None)
    return {item.name: (item.verdict, item.detail) for item in doctor_checks.examine(settings)}


def test_doctor_reads_disk_and_queue_from_the_metrics(shell: Shell) -> None:
    full = b"# HELP x\npostroom_disk_free_bytes 1.048576e+08\npostroom_queue_oldest_seconds 7200\n"
    with http_peer(Answer(200, full)) as peer:
        found = findings(peer.url)
    assert found["disk"] == ("fail", "0.1 GB free")
    assert found["queue"] == ("warn", "The oldest delivery has waited 7200 s")
    assert found["incoming"][0] == "pass"
    assert found["python"][0] == "pass"


def test_doctor_warns_of_a_python_without_optimization(shell: Shell) -> None:
    with http_peer(Answer(200, b'postroom_python{build="plain"} 1.0\n')) as peer:
        assert findings(peer.url)["python"][0] == "warn"


@pytest.mark.parametrize(
    ("metrics", "found"),
    [
        (b"postroom_journal_set_aside 2.0\n", ("fail", "2 accepted emails could not be stored")),
        (b"postroom_journal_damaged 1.0\n", ("fail", "1 pieces of journals are damaged")),
        (
            b'postroom_analysis_failures_total{reader="reply"} 2.0\n'
            b'postroom_analysis_failures_total{reader="codes"} 1.0\n',
            ("warn", "3 times a reader of email failed"),
        ),
    ],
)
def test_doctor_names_email_that_is_aside_or_was_not_analyzed(
    shell: Shell, metrics: bytes, found: tuple[str, str]
) -> None:
    with http_peer(Answer(200, metrics)) as peer:
        assert findings(peer.url)["incoming"] == found


@pytest.mark.parametrize(
    ("progress", "verdict", "detail"),
    [
        ({"waiting": 0, "earlierPercent": 37}, "warn", "Earlier email is being indexed: 37 %"),
        ({"waiting": 3, "earlierPercent": 100}, "pass", "3 messages are not indexed yet"),
        ({"waiting": 10_000, "earlierPercent": 100}, "warn", "10000 messages are not indexed yet"),
    ],
)
def test_doctor_says_how_far_the_search_index_is(progress: object, verdict: str, detail: str) -> None:
    with (
        http_peer(Answer(200, {"search": progress})) as peer,
        Client("pr_1", peer.url) as client,
    ):
        found = doctor_checks.check_search(client, Settings("local", peer.url, "pr_1", None))
    assert (found.verdict, found.detail) == (verdict, detail)


def test_doctor_is_not_upset_by_a_server_that_is_none_of_ours(shell: Shell) -> None:
    with http_peer(Answer(200, b"\xff<html>", (("Date", "never"),))) as peer:
        found = findings(peer.url)
    assert found["key"][0] == "fail"
    assert found["disk"][0] == "warn"


@pytest.mark.parametrize(("seconds", "verdict"), [(0, "pass"), (-60, "warn"), (60, "warn"), (-4000, "fail")])
def test_doctor_compares_the_clocks(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, seconds: int, verdict: str
) -> None:
    now = time.time()
    monkeypatch.setattr(doctor_checks, "time", SimpleNamespace(time=lambda: now))
    date = formatdate(now + seconds, usegmt=True)
    with http_peer(Answer(200, b"", (("Date", date),))) as peer:
        assert findings(peer.url)["clock"][0] == verdict


@pytest.mark.parametrize("headers", [(), (("Date", "never"),)])
def test_a_server_without_a_readable_time_is_a_warning(
    shell: Shell, headers: tuple[tuple[str, str], ...]
) -> None:
    with http_peer(Answer(200, b"", headers)) as peer:
        assert findings(peer.url)["clock"][0] == "warn"


@pytest.mark.parametrize(("value", "verdict"), [(0, "pass"), (5, "warn"), (299, "warn"), (300, "fail")])
def test_a_value_is_judged_by_its_bounds(value: float, verdict: str) -> None:
    assert grade(value, 5, 300) == verdict


def test_the_mail_port_is_the_setting_here_and_25_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_SMTP", "127.0.0.1:4025")
    assert (smtp_port("127.0.0.1"), smtp_port("post.example.com")) == (4025, 25)
    monkeypatch.setenv("POSTROOM_SMTP", "nonsense")
    assert smtp_port("localhost") == 2525


def test_login_keeps_a_checked_key_in_a_private_file(shell: Shell) -> None:
    base_url = shell.server.base_url
    done = shell.run("login", "--base-url", base_url, "--api-key", API_KEY, "--profile", "work", "--no-json")
    assert done.exit_code == 0, done.output
    assert "Signed in" in done.stderr
    assert API_KEY not in done.output
    assert stat.S_IMODE(profiles.file_path().stat().st_mode) == 0o600
    assert profiles.load().current == "work"
    piped = shell.run("login", "--base-url", base_url, "--api-key", "-", stdin=f"{API_KEY}\n")
    assert json.loads(piped.stdout)["profile"] == "default"
    assert shell.json("login", POSTROOM_API_KEY=API_KEY, POSTROOM_BASE_URL=base_url)["profile"] == "default"


def test_login_with_a_wrong_key_keeps_nothing(shell: Shell) -> None:
    before = profiles.load()
    result = shell.run(
        "login", "--base-url", shell.server.base_url, "--api-key", "pr_wrong", "--profile", "work"
    )
    assert result.exit_code == 4
    assert profiles.load() == before


def test_a_profile_cannot_be_named_like_a_path(shell: Shell) -> None:
    result = shell.run("login", "--api-key", API_KEY, "--profile", "../elsewhere")
    assert result.exit_code == 2


def test_login_never_asks_without_a_terminal(shell: Shell) -> None:
    result = shell.run("login")
    assert result.exit_code == 2
    assert "--api-key" in result.stderr


def test_profiles_are_listed_and_chosen(shell: Shell) -> None:
    shell.run("login", "--base-url", shell.server.base_url, "--api-key", API_KEY, "--profile", "work")
    listed = shell.human("profiles", "list")
    assert API_KEY not in listed
    assert "current" in next(line for line in listed.splitlines() if line.startswith("work"))
    assert [item["name"] for item in shell.json("profiles", "list")["data"]] == ["local", "work"]
    assert shell.json("profiles", "use", "local")["profile"] == "local"
    assert "Commands now use" in shell.run("profiles", "use", "work", "--no-json").stderr
    assert shell.run("profiles", "use", "nobody").exit_code == 1


def test_without_a_profile_the_list_names_the_next_command(shell: Shell, tmp_path: Path) -> None:
    result = shell.run("profiles", "list", "--no-json", XDG_CONFIG_HOME=str(tmp_path / "none"))
    assert "postroom login" in result.stderr


def test_a_broken_profile_is_an_error_and_not_a_crash(shell: Shell) -> None:
    os.truncate(profiles.file_path(), 3)
    result = shell.run("inbox", "list", "--no-json")
    assert result.exit_code == 1
    assert "profiles.json cannot be read" in result.stderr


@pytest.mark.parametrize(
    ("setting", "door", "greeting"),
    [
        ("POSTROOM_IMAP", IMAP, b"* OK ready\r\n"),
        ("POSTROOM_SUBMISSION", SUBMISSION, b"220 ready\r\n"),
    ],
)
def test_a_port_of_mail_programs_is_looked_at_where_one_is_set(
    monkeypatch: pytest.MonkeyPatch, setting: str, door: App, greeting: bytes
) -> None:
    assert set_port(door) is None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setenv(setting, f"127.0.0.1:{port}")
        assert set_port(door) == port

        def greet(words: bytes) -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(words)

        for words, verdict in ((greeting, "pass"), (b"SSH-2.0\r\n", "fail")):
            greeter = threading.Thread(target=greet, args=(words,))
            greeter.start()
            assert check_port(door, "127.0.0.1", port).verdict == verdict
            greeter.join(timeout=60)
    assert check_port(door, "127.0.0.1", port).verdict == "fail"
