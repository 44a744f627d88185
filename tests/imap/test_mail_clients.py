"""Mail programs that other people wrote, each as it is installed: they read, keep in step, and send.

POSTROOM_TEST_SYNCED_MAILS makes the run with mbsync larger: 2000 is what is promised.
"""

import asyncio
import mailbox
import os
import random
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.imap.live import HasImap, aside, log_in, ok
from tests.programs import path_of
from tests.raw_mails import raw_mail
from tests.stored import SERVICE

OWN = "agent@postroom.localhost"
SYNCED = int(os.environ.get("POSTROOM_TEST_SYNCED_MAILS", "24"))
SECONDS = 300


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    folder = tmp_path / "server"
    folder.mkdir()
    config = settings(folder, DATABASE_URL=database_url, IMAP="127.0.0.1:0", SUBMISSION="127.0.0.1:0")
    async with running_server(config, clock) as running:
        yield running


async def run(home: Path, program: str, *arguments: str, given: bytes = b"") -> bytes:
    """With a home of its own; what it says where it failed."""
    command = [path_of(program), *arguments]
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    done = await asyncio.to_thread(
        subprocess.run,
        command,
        cwd=home,
        env=environment,
        input=given,
        capture_output=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
    output: bytes = done.stdout
    return output


async def sent_text(server: Server, inbox_id: str) -> str:
    """Of the one mail that was sent."""
    path, query = f"/v1/inboxes/{inbox_id}/messages", {"direction": "outbound"}
    (sent,) = (await server.api.get(path, params=query)).json()["data"]
    return str(sent["bodyText"]).strip()


def write_private(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def append_all(server: HasImap, raws: list[bytes], name: str = "agent") -> None:
    client = log_in(server, name)
    for raw in raws:
        ok(client.append("INBOX", None, None, raw))
    client.logout()


def mails(first: int, count: int) -> list[bytes]:
    """Of several kinds: plain, with eight bits, with long lines and with files."""
    return [
        raw_mail(
            f"Text of {number}\r\n" + ("\u00e4\u00f6\u00fc " * (number % 7)) + "x" * (number % 5 * 900),
            subject=f"Mail {number}",
            message_id=f"<{number}@sync.example>",
        )
        for number in range(first, first + count)
    ]


# --- mbsync: two sides that change in between


def sync_settings(server: HasImap, home: Path) -> Path:
    (home / "mail").mkdir(exist_ok=True)
    text = f"""
IMAPAccount postroom
Host 127.0.0.1
Port {server.imap_port}
User {OWN}
Pass {server.token}
SSLType None
AuthMechs LOGIN

IMAPStore there
Account postroom

MaildirStore here
Path {home}/mail/
Inbox {home}/mail/INBOX
SubFolders Verbatim

Channel both
Far :there:
Near :here:
Patterns INBOX Work
Create Both
Expunge Both
SyncState *
Sync All
CopyArrivalDate yes
"""
    return write_private(home / ".mbsyncrc", text)


class Sides:
    """What both sides hold, by subject: how often, with which flags, and which text."""

    def __init__(self, server: HasImap, home: Path, folder: str = "INBOX", name: str = "agent") -> None:
        self.server, self.home, self.folder, self.name = server, home, folder, name

    def near(self) -> dict[str, tuple[frozenset[str], bytes]]:
        box = mailbox.Maildir(str(self.home / "mail" / self.folder), create=False)
        found: list[tuple[str, tuple[frozenset[str], bytes]]] = []
        for key in box.iterkeys():
            raw = box.get_bytes(key).replace(b"\r\n", b"\n")
            flags = frozenset(str(box.get_message(key).get_flags())) & frozenset("SFR")
            found.append((subject_of(raw), (flags, without_own_fields(raw))))
        assert_once(subject for subject, _ in found)
        return dict(found)

    def far(self) -> dict[str, tuple[frozenset[str], bytes]]:
        client = log_in(self.server, self.name)
        ok(client.select(self.folder, readonly=True))
        answered: list[Any] = ok(client.uid("FETCH", "1:*", "(FLAGS BODY.PEEK[])"))
        client.logout()
        found = []
        for each in answered:
            if isinstance(each, tuple):
                raw = each[1].replace(b"\r\n", b"\n")
                letters = {"S": b"\\Seen", "F": b"\\Flagged", "R": b"\\Answered"}
                flags = frozenset(letter for letter, word in letters.items() if word in each[0])
                found.append((subject_of(raw), (flags, without_own_fields(raw))))
        assert_once(subject for subject, _ in found)
        return dict(found)


def subject_of(raw: bytes) -> str:
    return next(line for line in raw.decode(errors="replace").split("\n") if line.startswith("Subject: "))


def without_own_fields(raw: bytes) -> bytes:
    """mbsync marks what it copies by a field of its own."""
    return b"\n".join(line for line in raw.split(b"\n") if not line.startswith(b"X-TUID: "))


def assert_once(subjects: Any) -> None:
    assert [subject for subject, count in Counter(subjects).items() if count > 1] == []


def change_near(home: Path, chance: random.Random, first: int) -> None:
    """New mails, flags, and deletions, as a program does that works on the folder."""
    box = mailbox.Maildir(str(home / "mail" / "INBOX"), create=False)
    known = sorted(box.keys(), key=lambda key: subject_of(box.get_bytes(key)))
    for key in chance.sample(known, len(known) // 5):
        message = box.get_message(key)
        message.add_flag(chance.choice("FSR"))
        message.set_subdir("cur")
        box[key] = message
    for key in chance.sample(known, len(known) // 10):
        message = box.get_message(key)
        message.add_flag("T")
        message.set_subdir("cur")
        box[key] = message
    for raw in mails(first, 5):
        box.add(raw.replace(b"\r\n", b"\n"))


def change_far(server: HasImap, chance: random.Random, first: int) -> None:
    client = log_in(server, "agent")
    ok(client.select("INBOX"))
    uids = ok(client.uid("SEARCH", "ALL"))[0].split()
    for uid in chance.sample(uids, len(uids) // 5):
        ok(client.uid("STORE", uid.decode(), "+FLAGS.SILENT", chance.choice(("\\Flagged", "\\Seen"))))
    gone = b",".join(chance.sample(uids, len(uids) // 10)).decode()
    ok(client.uid("STORE", gone, "+FLAGS.SILENT", "\\Deleted"))
    ok(client.expunge())
    client.logout()
    append_all(server, mails(first, 5))


@pytest.mark.needs("mbsync")
async def test_mbsync_keeps_both_sides_in_step(server: Server, tmp_path: Path) -> None:
    await server.new_inbox("agent")
    await aside(lambda: append_all(server, mails(0, SYNCED)))
    rc = sync_settings(server, tmp_path)
    sides, chance = Sides(server, tmp_path), random.Random(7)
    await run(tmp_path, "mbsync", "-c", str(rc), "both")
    assert len(sides.near()) == SYNCED
    for round_ in range(3):
        change_near(tmp_path, chance, 10_000 + 100 * round_)
        await aside(lambda number=round_: change_far(server, chance, 20_000 + 100 * number))  # type: ignore[misc]
        await run(tmp_path, "mbsync", "-c", str(rc), "both")
        near, far = sides.near(), await aside(sides.far)
        assert near == far
        assert {f"Subject: Mail {10_000 + 100 * round_ + number}" for number in range(5)} <= set(far)
        assert {f"Subject: Mail {20_000 + 100 * round_ + number}" for number in range(5)} <= set(near)
    said = await run(tmp_path, "mbsync", "-c", str(rc), "both")
    assert sides.near() == await aside(sides.far), said


# --- the others, all with one server


async def offlineimap_takes_and_brings(server: Server, home: Path) -> None:
    await server.new_inbox("offlineimap")
    await aside(lambda: append_all(server, mails(0, 7), "offlineimap"))
    rc = write_private(
        home / "offlineimaprc",
        f"""
[general]
accounts = agent
ui = quiet
metadata = {home}/meta

[Account agent]
localrepository = here
remoterepository = there

[Repository here]
type = Maildir
localfolders = {home}/mail

[Repository there]
type = IMAP
remotehost = 127.0.0.1
remoteport = {server.imap_port}
remoteuser = offlineimap@{SERVICE}
remotepass = {server.token}
ssl = no
starttls = no
folderfilter = lambda name: name == 'INBOX'
""",
    )
    await run(home, "offlineimap", "-c", str(rc), "-o")
    box = mailbox.Maildir(str(home / "mail" / "INBOX"), create=False)
    assert len(box) == 7
    box.add(mails(100, 1)[0].replace(b"\r\n", b"\n"))
    await run(home, "offlineimap", "-c", str(rc), "-o")
    sides = Sides(server, home, name="offlineimap")
    assert sides.near() == await aside(sides.far)
    assert len(sides.near()) == 8


async def neomutt_opens_marks_and_files(server: Server, home: Path) -> None:
    await server.new_inbox("neomutt")
    await aside(lambda: append_all(server, mails(0, 5), "neomutt"))
    commands = "push '<tag-pattern>~s Mail<enter><tag-prefix><set-flag>!<sync-mailbox><quit>'"
    rc = write_private(
        home / "neomuttrc",
        f"""
set folder = "imap://127.0.0.1:{server.imap_port}/"
set spool_file = "+INBOX"
set imap_user = "neomutt@{SERVICE}"
set imap_pass = "{server.token}"
set imap_authenticators = "login"
set ssl_starttls = no
set ssl_force_tls = no
set quit = yes
{commands}
""",
    )
    shell = f"script -qec '{path_of('neomutt')} -n -F {rc}' /dev/null"
    await run(home, "sh", "-c", shell)
    flagged = [flags for flags, _ in (await aside(Sides(server, home, name="neomutt").far)).values()]
    assert all("F" in flags for flags in flagged)
    assert len(flagged) == 5


async def fetchmail_takes_what_is_unread(server: Server, home: Path) -> None:
    await server.new_inbox("fetchmail")
    await server.deliver(raw_mail("By fetchmail", subject="Fetched"), "fetchmail")
    rc = write_private(
        home / "fetchmailrc",
        f"poll 127.0.0.1 service {server.imap_port} protocol imap auth password\n"
        f'user "fetchmail@{SERVICE}" password "{server.token}" sslproto "" keep mda "cat >> {home}/got"\n',
    )
    await run(home, "fetchmail", "-f", str(rc), "--pidfile", str(home / "pid"), "--nodetach")
    assert b"By fetchmail" in (home / "got").read_bytes()


GETMAIL_WAITS = "while grep -qs '^State:.[RD]' /proc/$PPID/status; do sleep 0.01; done"


async def getmail_takes_all(server: Server, home: Path) -> None:
    """It misses the end of a program that ends before it waits for it."""
    await server.new_inbox("getmail")
    await aside(lambda: append_all(server, mails(0, 3), "getmail"))
    for name in ("new", "cur", "tmp"):
        (home / "box" / name).mkdir(parents=True)
    folder = home / "getmail"
    folder.mkdir()
    write_private(
        folder / "getmailrc",
        f"""
[retriever]
type = SimpleIMAPRetriever
server = 127.0.0.1
port = {server.imap_port}
username = getmail@{SERVICE}
password = {server.token}
mailboxes = ("INBOX",)

[destination]
type = MDA_external
path = /bin/sh
arguments = ("-c", "{GETMAIL_WAITS}; cat > {home}/box/new/$$")
allow_root_commands = true

[options]
delete = false
verbose = 0
""",
    )
    await run(home, "getmail", f"--getmaildir={folder}", "--rcfile=getmailrc")
    assert len(mailbox.Maildir(str(home / "box"), create=False)) == 3


async def msmtp_sends_and_shows_why_not(server: Server, home: Path) -> None:
    inbox_id = await server.new_inbox("msmtp")
    rc = write_private(
        home / "msmtprc",
        f"""
account default
host 127.0.0.1
port {server.submission_port}
tls on
tls_starttls on
tls_certcheck off
auth plain
user msmtp@{SERVICE}
password {server.token}
from msmtp@{SERVICE}
""",
    )
    raw = raw_mail("By msmtp", subject="Sent", **{"from": f"msmtp@{SERVICE}", "to": "bob@example.com"})
    await run(home, "msmtp", "-C", str(rc), "bob@example.com", given=raw.replace(b"\r\n", b"\n"))
    assert await sent_text(server, inbox_id) == "By msmtp"
    foreign = raw_mail("No", **{"from": "boss@example.com"}).replace(b"\r\n", b"\n")
    with pytest.raises(AssertionError, match="forbidden: From must be"):
        await run(home, "msmtp", "-C", str(rc), "bob@example.com", given=foreign)


async def curl_lists_and_fetches(server: Server, home: Path) -> None:
    await server.new_inbox("curl")
    await server.deliver(raw_mail("By curl", subject="Fetched"), "curl")
    url = f"imap://127.0.0.1:{server.imap_port}"
    who = ("--silent", "--show-error", "--user", f"curl@{SERVICE}:{server.token}")
    assert b"Trash" in await run(home, "curl", *who, f"{url}/")
    assert b"SEARCH 1" in await run(home, "curl", *who, f"{url}/INBOX?SUBJECT%20fetched")
    for options in ((), ("--ssl-reqd", "--insecure")):
        mail = await run(home, "curl", *who, *options, f"{url}/INBOX/;MAILINDEX=1")
        assert b"Subject: Fetched\r\n" in mail
        assert mail.endswith(b"By curl\r\n")


async def swaks_sends_and_hears_why_not(server: Server, home: Path) -> None:
    inbox_id, own = await server.new_inbox("swaks"), f"swaks@{SERVICE}"
    who = (
        *("--server", f"127.0.0.1:{server.submission_port}", "--auth-user", own),
        *("--auth-password", server.token, "--auth", "PLAIN", "--to", "bob@example.com", "--from", own),
    )
    assert b"250 2.0.0 Accepted as msg_" in await run(home, "swaks", *who, "--body", "By swaks")
    assert await sent_text(server, inbox_id) == "By swaks"
    with pytest.raises(AssertionError, match="forbidden: From must be"):
        await run(home, "swaks", *who, "--h-From", "boss@example.com", "--header", "X-Test: 1")


PLAYS = {
    "offlineimap": offlineimap_takes_and_brings,
    "neomutt": neomutt_opens_marks_and_files,
    "fetchmail": fetchmail_takes_what_is_unread,
    "getmail": getmail_takes_all,
    "msmtp": msmtp_sends_and_shows_why_not,
    "curl": curl_lists_and_fetches,
    "swaks": swaks_sends_and_hears_why_not,
}


@pytest.mark.needs(*PLAYS)
@pytest.mark.sqlite_alone
async def test_programs_do_what_they_do_elsewhere(server: Server, tmp_path: Path) -> None:
    for program, play in PLAYS.items():
        home = tmp_path / program
        home.mkdir()
        await play(server, home)
