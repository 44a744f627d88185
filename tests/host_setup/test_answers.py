"""What setup asks, what it writes, and what it leaves alone."""

import json
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from postroom import config
from postroom.commands.setup_steps import SetupSteps
from postroom.config import ConfigError
from postroom.dns_providers.dynamic_updates import DynamicUpdates
from postroom.host_setup import questions, settings_file
from postroom.host_setup.questions import SetupOptions
from postroom.host_setup.records import WantedRecord, find_missing, set_records
from postroom.host_setup.settings_file import Host, merge, settings_of
from postroom.host_setup.systemd import Service, SetupFailed
from postroom.net.dns import Resolver
from tests import knot
from tests.samples import samples

HOST, OWNER = "mail.example.com", "ops@example.net"
KEY = "hmac-sha256:setup:c2VjcmV0LW9mLXRoZS10ZXN0LW9mLXVwZGF0ZXM="
OTHER_SECRET, OTHER_NAME = f"{KEY[:-8]}YWJjZA==", KEY.replace("setup", "other")
NOTHING = SetupOptions(HOST, "", "", "", "", "", asks=True)


class Person:
    def __init__(self, *answers: str) -> None:
        self._answers, self.asked = list(answers), list[str]()

    def ask(self, question: str, default: str, is_secret: bool) -> str:
        self.asked.append(question)
        return self._answers.pop(0) or default


def test_at_most_five_questions_are_asked_and_none_again() -> None:
    person = Person(OWNER, "", "desec", "secret", "smtp://u:p@relay.example:587")
    host = questions.ask_all(NOTHING, {}, person.ask, "/d")
    assert host == Host(HOST, OWNER, "/d", "on", "desec", "secret")
    relay = questions.ask_relay(person.ask)
    assert len(person.asked) == 5
    there = settings_of(Host(HOST, OWNER, "/d", "on", "desec", "secret", relay))
    again = Person()
    known = questions.ask_all(NOTHING, there, again.ask, "/d")
    assert (settings_of(known), again.asked) == (there, [])
    shown = settings_of(Host(HOST, OWNER, "/d"))
    assert questions.ask_all(NOTHING, shown, again.ask, "/d").dns == ""


@samples("owner", ["", "ops", f"ops@{HOST}", "ops@localhost", "a@b.c\nX: y"])
def test_an_owner_needs_an_address_elsewhere(owner: str) -> None:
    with pytest.raises(SetupFailed):
        questions.ask_all(NOTHING, {}, Person(owner).ask, "/d")


def test_settings_of_a_host_are_valid_and_open_it_to_the_internet() -> None:
    given = settings_of(Host(HOST, OWNER, "/d"))
    known = {setting.name for setting in config.SETTINGS}
    strict = {"POSTROOM_JUNK": "folder", "POSTROOM_DMARC": "junk"}
    assert {name: given.get(name) for name in strict.keys() & known} == {
        name: strict[name] for name in strict.keys() & known
    }
    found = config.load(given)
    assert (found.domain, found.base_url, found.outbound) == (HOST, f"https://{HOST}", "mx")
    assert [each.port for each in found.submission] == [465, 587]
    behind = config.load(settings_of(Host(HOST, OWNER, "/d", "off")))
    assert (str(behind.http), behind.acme) == ("127.0.0.1:8025", "")


def test_lines_of_the_operator_stay_and_a_second_write_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "postroom.env"
    path.write_text("# mine\nPOSTROOM_IMAP=off\nSSL_CERT_FILE=/etc/ca.pem\nPOSTROOM_ACME=off\n")
    wanted = settings_of(Host(HOST, OWNER, "/d", dns_token='k:a b;#$`%/+="'[:-1]))
    merged = merge(
        wanted, settings_file.read(path), {"POSTROOM_ACME": "on"}, {"POSTROOM_SMTP": "0.0.0.0:2525"}
    )
    assert settings_file.write(path, merged, None)
    lines = path.read_text().splitlines()
    assert lines[:4] == ["# mine", "POSTROOM_IMAP=off", "SSL_CERT_FILE=/etc/ca.pem", "POSTROOM_ACME=on"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert settings_file.read(path) == merged
    assert "POSTROOM_SMTP" not in merged
    assert not settings_file.write(path, merged, None)
    assert list(tmp_path.iterdir()) == [path]
    for value in ('a"b', "a\\b", "a\nPOSTROOM_API_KEY=x", "a\0b"):
        with pytest.raises(ConfigError, match="POSTROOM_DNS_TOKEN"):
            settings_file.write(path, {**merged, "POSTROOM_DNS_TOKEN": value}, None)
    assert settings_file.read(path) == merged


def test_the_environment_wins_over_the_settings_file(tmp_path: Path) -> None:
    path = tmp_path / "settings"
    path.write_text("\n; note\nPOSTROOM_DOMAIN='mail.example.com'\n POSTROOM_SMTP=0.0.0.0:25 \n")
    around = {"POSTROOM_SETTINGS": str(path), "POSTROOM_SMTP": "127.0.0.1:2526", "POSTROOM_DOMAIN": ""}
    found = config.load(around)
    assert (found.domain, found.smtp.port) == (HOST, 2526)
    missing = str(tmp_path / "none")
    assert config.load({"POSTROOM_SETTINGS": f"-{missing}"}).domain == config.HOME_DOMAIN
    path.write_bytes(b"POSTROOM_DOMAIN\n")
    for given, reason in (
        (missing, "there is no file"),
        (str(path), "line 1"),
        (str(tmp_path), "cannot be read"),
    ):
        with pytest.raises(ConfigError, match=reason):
            config.load({"POSTROOM_SETTINGS": given})


@pytest.mark.needs("knotd")
async def test_records_of_others_stay_unless_they_shall_be_replaced(tmp_path: Path) -> None:
    lines = ["mail 60 IN TXT proof=1", "mail 60 IN MX 10 old.example.org.", "mail 60 IN A 192.0.2.1"]
    zone = [*lines, '_dmarc.mail 60 IN TXT "v=DMARC1; p=none"']
    wanted = [
        WantedRecord(HOST, "A", "192.0.2.1"),
        WantedRecord(HOST, "MX", f"10 {HOST}."),
        WantedRecord(HOST, "TXT", "v=spf1 mx ~all"),
        WantedRecord(f"_dmarc.{HOST}", "TXT", "v=DMARC1; p=quarantine"),
        WantedRecord(f"mta-sts.{HOST}", "CNAME", f"{HOST}."),
        WantedRecord("mail.example.org", "A", "192.0.2.1"),
    ]
    async with knot.running(tmp_path, {"example.com": zone}, KEY) as port:
        server = f"127.0.0.1:{port}"
        provider = DynamicUpdates(Resolver([server]), "127.0.0.1", port, KEY)
        found = await set_records(provider, wanted, replaces=False)
        assert [each.state for each in found] == ["there", "kept", "set", "kept", "set", "failed"]
        assert found[1].detail == "10 old.example.org."
        assert [each.type for each in await find_missing(wanted[:5], Resolver([server]))] == ["MX", "TXT"]
        found = await set_records(provider, wanted, replaces=True)
        assert [each.state for each in found] == ["there", "set", "there", "set", "there", "failed"]
        for key, reason in (
            (OTHER_SECRET, "its secret or algorithm is another one"),
            (OTHER_NAME, "of this name"),
        ):
            stranger = DynamicUpdates(Resolver([server]), "127.0.0.1", port, key)
            refused = await set_records(stranger, [WantedRecord(HOST, "A", "192.0.2.9")] * 9, replaces=True)
            assert [each.state for each in refused] == ["failed"] * 9
            assert reason in refused[-1].detail
        steps = SetupSteps(Service("", None, tmp_path, None, ""), NOTHING, "agent", (), False)
        steps._report_records(9, refused, [])
        assert [each.name for each in steps.findings[:3]] == ["DNS provider", *[f"DNS A {HOST}"] * 2]
        assert "POSTROOM_DNS_TOKEN" in steps.findings[0].next_step
        shown = Resolver([server])
        assert await find_missing(wanted[:5], shown) == []
        assert sorted(await shown.txt(HOST)) == [b"proof=1", b"v=spf1 mx ~all"]


def test_a_person_is_asked_at_the_terminal_and_told_what_is_wrong(tmp_path: Path) -> None:
    """Nothing is written before all answers are there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "postroom", "setup", HOST, "--json"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "POSTROOM_SETTINGS": f"-{tmp_path}/s.env"},
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.write(ours, f"ops@{HOST}\n".encode())
    told, _ = process.communicate(timeout=120)
    asked = os.read(ours, 4096).decode()
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 1
    assert "Your email address" in asked
    assert f"ops@{HOST} is an address of this server" in json.loads(told)["checks"][0]["detail"]
    assert list(tmp_path.iterdir()) == []
