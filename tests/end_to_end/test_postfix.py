"""Servers that other people wrote: mail arrives whole at smtp-sink and through a real Postfix."""

import asyncio
import contextlib
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from postroom_mail.mime.parse import ParsedMail, parse_mail
from tests.conftest import Server
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.outbound import is_signed, running, send, settled
from tests.ports import free_port
from tests.postgres_engine import unprivileged_user
from tests.programs import path_of
from tests.waiting import until

MAILS: list[dict[str, Any]] = [
    {"body": "plain text\n.\n..dots\n.\nend"},
    {"body": "<p>Hello <b>you</b></p>", "subject": "Grüße aus München, lang genug zum Falten " * 4},
    {"body": "Zürich 😀 " * 300},
    {"body": "file", "attachments": [{"filename": "ä ö.bin", "data": "AAEC/w==" * 1, "contentType": "x/y"}]},
    {"body": "x" * 20_000},
]
MAIN_CF = """\
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
maillog_file = {folder}/log
maillog_file_prefixes = {folder}
myhostname = relay.example
mydestination =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
smtpd_relay_restrictions = permit_mynetworks, reject
relayhost = [127.0.0.1]:{next_port}
alias_maps =
alias_database =
local_recipient_maps =
multi_instance_enable = no
"""
MASTER_CF = """\
127.0.0.1:{port} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
flush unix n - n 1000? 0 flush
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
scache unix - - n - 1 scache
anvil unix - - n - 1 anvil
tlsmgr unix - - n 1000? 1 tlsmgr
proxymap unix - - n - - proxymap
postlog unix-dgram n - n - 1 postlogd
virtual unix - n n - - virtual
"""


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """One that other users can reach: neither program runs as root."""
    with tempfile.TemporaryDirectory(prefix="postroom-mta-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.asynccontextmanager
async def running_sink(program: str, folder: Path) -> AsyncIterator[int]:
    port = free_port()
    user = unprivileged_user()
    if user:
        shutil.chown(folder, user)
    sink = subprocess.Popen(
        [program, "-d", f"{folder}/mail-%s.", f"127.0.0.1:{port}", "100"], user=user, cwd=folder
    )
    try:
        await until(lambda: is_listening(port), "smtp-sink listens")
        yield port
    finally:
        sink.terminate()
        sink.wait()


@contextlib.asynccontextmanager
async def running_postfix(program: str, folder: Path, next_port: int, more: str = "") -> AsyncIterator[int]:
    """An instance of its own: nothing of the machine's Postfix is read or touched."""
    port = free_port()
    settings = folder / "config"
    for name in ("config", "queue", "data"):
        (folder / name).mkdir(mode=0o755)
    shutil.chown(folder / "data", "postfix")
    (settings / "main.cf").write_text(MAIN_CF.format(folder=folder, next_port=next_port) + more)
    (settings / "master.cf").write_text(MASTER_CF.format(port=port))
    await asyncio.to_thread(run_postfix, program, settings, "start")
    try:
        await until(lambda: is_listening(port), "Postfix listens")
        yield port
    finally:
        await asyncio.to_thread(run_postfix, program, settings, "stop")


def run_postfix(program: str, settings: Path, action: str) -> None:
    run = subprocess.run([program, "-c", str(settings), action], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr


async def send_all(server: Server) -> dict[str, bytes]:
    """Message-ID and raw bytes of each, once all are handed over."""
    bob = await server.new_inbox("bob")
    sent = {}
    for fields in MAILS:
        message = await settled(server, await send(server, bob, "carol@there.example", **fields))
        assert message["status"] == "sent", message
        raw = (await server.api.get(f"/v1/messages/{message['id']}/raw")).content
        sent[message["rfcMessageId"]] = raw
    return sent


def content_of(mail: ParsedMail) -> tuple[object, ...]:
    return mail.subject, mail.from_addr, mail.header_to, mail.body_text, mail.body_html, mail.attachments


def assert_equal_content(arrived: dict[str, ParsedMail], sent: dict[str, bytes]) -> None:
    assert arrived.keys() == sent.keys()
    for message_id, raw in sent.items():
        assert content_of(arrived[message_id]) == content_of(parse_mail(raw))


@pytest.mark.needs("smtp-sink")
async def test_mails_arrive_whole_at_smtp_sink(tmp_path: Path, clock: FakeClock) -> None:
    with open_folder() as folder:
        async with running_sink(path_of("smtp-sink"), folder) as port:
            async with running(tmp_path, "", clock, f"smtp://127.0.0.1:{port}") as server:
                sent = await send_all(server)
            await until(lambda: len(list(folder.glob("mail-*"))) >= len(sent), "smtp-sink wrote the mails")
            # A dump ends with an empty line of its own.
            mails = [parse_mail(path.read_bytes().removesuffix(b"\n")) for path in folder.glob("mail-*")]
    assert_equal_content({mail.message_id: mail for mail in mails}, sent)


@pytest.mark.needs("root", "postfix")
async def test_mails_pass_a_real_postfix_unchanged_and_their_signatures_hold(
    tmp_path: Path, clock: FakeClock
) -> None:
    with open_folder() as folder:
        async with (
            SmtpPeer() as peer,
            running_postfix(path_of("postfix"), folder, peer.port) as port,
            running(tmp_path, "", clock, f"smtp://127.0.0.1:{port}") as server,
        ):
            sent = await send_all(server)
            await until(lambda: len(peer.mails) >= len(sent), "Postfix passed the mails on")
            for mail in peer.mails:
                assert await is_signed(server, mail.raw, "postroom.localhost")
                assert mail.mail_line.startswith(b"MAIL FROM:<bounces+")
    arrived = {mail.message_id: mail for mail in (parse_mail(received.raw) for received in peer.mails)}
    assert_equal_content(arrived, sent)
