"""`postroom setup` makes a bare machine a mail host, in a world of programs that others wrote."""

import json
import pwd
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import mail_world
from tests.end_to_end.test_postfix import open_folder
from tests.mail_world import CA_PORT, FAR, HOST, KEY, OUTSIDE, OWN, OWN_IPV6, World
from tests.programs import path_of
from tests.waiting import wait_until

OWNER = f"ops@{OUTSIDE}"
INBOX = f"agent@{HOST}"
RECORDS = [f"DNS {kind} {HOST}" for kind in ("A", "AAAA", "MX")]
NEEDS = ("root", "network namespaces", "knotd", "pebble", "postfix", "setpriv")


@pytest.fixture
def world() -> Iterator[World]:
    with open_folder() as folder, mail_world.created(folder) as found:
        (folder / "home").mkdir()
        yield found


def service_user() -> str:
    """A user without rights, where one can run this Python at all."""
    uid = pwd.getpwnam("nobody").pw_uid
    again = "import subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True)"
    line = [path_of("setpriv"), f"--reuid={uid}", sys.executable, "-c", again]
    tried = subprocess.run(line, capture_output=True)
    return "nobody" if tried.returncode == 0 else "root"


def settings_file(world: World) -> Path:
    return world.folder / "postroom.env"


def set_up(world: World, *options: str) -> tuple[int, dict[str, dict[str, Any]], list[str]]:
    """The exit code, each finding by its name, and what was changed."""
    done = world.run(
        *(sys.executable, "-m", "postroom", "setup", HOST, "--json", "--yes", "--owner", OWNER),
        *("--unit", str(world.folder / "postroom.service"), "--data-dir", str(world.folder / "data")),
        *("--user", service_user(), "--acme", f"https://ca.example:{CA_PORT}/dir", *options),
        HOME=str(world.folder / "home"),
        POSTROOM_SETTINGS=f"-{settings_file(world)}",
        POSTROOM_DNS_TOKEN=KEY,
        POSTROOM_PACE_SECONDS="0",
    )
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    return done.returncode, {each["name"]: each for each in told["checks"]}, told["changed"]


def not_passed(found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in found.values() if each["verdict"] != "pass"]


@pytest.mark.share(3, turn=0)
@pytest.mark.needs(*NEEDS)
def test_a_bare_machine_becomes_a_mail_host_and_a_second_run_changes_nothing(world: World) -> None:
    code, found, changed = set_up(world, "--dns", "show")
    assert code == 1
    assert "refused" in found["port 25 out"]["detail"]
    assert "relay" in found["port 25 out"]["nextStep"]
    assert found[f"DNS A {HOST}"]["nextStep"] == f"Set: {HOST}. 3600 IN A 45.0.0.25"
    assert found[f"DNS AAAA {HOST}"]["nextStep"] == f"Set: {HOST}. 3600 IN AAAA 2a0e:45::25"
    assert "not started" in found["server"]["detail"]  # an order of a certificate would only fail
    assert "certificate" not in found
    assert str(settings_file(world)) in changed
    assert settings_file(world).stat().st_mode & 0o777 == 0o640

    with world.postfix():
        started = time.monotonic()
        code, found, changed = set_up(world, "--dns", f"rfc2136://{FAR}")
        took = time.monotonic() - started
        assert not_passed(found) == [], log_of(world)
        assert code == 0
        assert {"API key", "owner", "inbox", "test email", *RECORDS} <= set(changed)
        assert found["test email"]["detail"].startswith("delivered")
        assert all(each in found["reverse name"]["detail"] for each in (OWN, OWN_IPV6))
        print(f"from a bare machine to green: {took:.1f} s")
        letters = wait_until(
            lambda: held if len(held := world.held()) == 2 else None
        )  # one is the invitation
        assert all("DKIM-Signature" in each for each in letters)
        assert any(f"From: {INBOX}" in each and f"To: {OWNER}" in each for each in letters)

        serving = shlex.split(found["service"]["nextStep"].removeprefix("Start it: "))
        with world.running(world.near, *serving, SSL_CERT_FILE=str(world.trusted)):
            world.wait_for_ports(25, 80, 443, 465, 587, 993, addresses=(OWN, OWN_IPV6))
            code, found, changed = set_up(world)
            assert (code, changed, not_passed(found)) == (0, [], [])
            assert "this server has them" in found["ports"]["detail"]
            assert "service" not in found
            assert len(world.held()) == len(letters)
            assert_emails_come_in(world)


def assert_emails_come_in(world: World) -> None:
    """By IPv4 and by IPv6, each with the address of its sender, which SPF allows."""
    known = "--unread"
    for number, address in enumerate((OWN, OWN_IPV6)):
        content = f"From: ann@{OUTSIDE}\nTo: {INBOX}\nSubject: Hello\nMessage-ID: <{number}@x>\n\nhi\n"
        world.send(INBOX, content, address)
        waiting = [sys.executable, "-m", "postroom", "wait", "--inbox-id", INBOX, known, "--json"]
        done = world.run(*waiting, HOME=str(world.folder / "home"))
        message = json.loads(done.stdout)
        assert (message["subject"], message["auth"]["spf"]) == ("Hello", "pass"), message
        known = f"--after={message['id']}"


def log_of(world: World) -> str:
    return (world.folder / "pebble.log").read_text()[-3000:]
