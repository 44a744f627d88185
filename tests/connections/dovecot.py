"""Debian's Dovecot as the mailbox elsewhere: on loopback, in a folder of its own, any user, one password."""

import asyncio
import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from postroom.external_mailboxes.imap_client import ImapClient, MailServerAddress, open_client
from tests import programs
from tests.ports import free_port

PASSWORD = "a-password-for-tests"
CONFIGURATION = """
protocols = imap
listen = 127.0.0.1
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
ssl = no
disable_plaintext_auth = no
auth_failure_delay = 0
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
mail_location = maildir:{folder}/mail/%u
mailbox_list_index = no
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/home/%u
}}
service anvil {{
  chroot =
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service auth {{
  inet_listener of-postfix {{
    port = {auth_port}
  }}
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
namespace inbox {{
  inbox = yes
  mailbox Sent {{
    special_use = \\Sent
    auto = create
  }}
  mailbox Done {{
    auto = create
  }}
}}
"""


# Debian's Postfix as the server of the same mailbox: it puts mail there, and lets its user send.
OF_POSTFIX = """
virtual_mailbox_domains = {domain}
virtual_mailbox_base = {folder}/mail
virtual_mailbox_maps = static:{user}/
virtual_minimum_uid = 1
virtual_uid_maps = static:{uid}
virtual_gid_maps = static:{gid}
virtual_mailbox_limit = 0
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = inet:127.0.0.1:{auth_port}
"""


@dataclass
class Dovecot:
    port: int
    folder: Path
    auth_port: int

    def of_postfix(self, user: str) -> str:
        """What Postfix has to know to deliver into the mailbox of a user, and to ask here for passwords."""
        owner = self.folder.stat()
        (self.folder / "mail").mkdir(exist_ok=True)
        os.chown(self.folder / "mail", owner.st_uid, owner.st_gid)
        return OF_POSTFIX.format(
            domain=user.partition("@")[2],
            folder=self.folder,
            user=user,
            uid=owner.st_uid,
            gid=owner.st_gid,
            auth_port=self.auth_port,
        )

    def mails_of(self, user: str, folder: str = "") -> list[Path]:
        inside = self.folder / "mail" / user / folder
        return [path for part in ("cur", "new") for path in (inside / part).glob("*")]

    async def client(self, user: str) -> ImapClient:
        here = MailServerAddress("127.0.0.1", ("127.0.0.1",), self.port, is_loopback=True)
        client = await open_client(here)
        await client.log_in(user, PASSWORD)
        return client

    async def put(self, user: str, *mails: bytes) -> None:
        """As if they had arrived there."""
        client = await self.client(user)
        for raw in mails:
            await client.append("INBOX", raw)
        await client.log_out()

    def number_anew(self, user: str) -> None:
        """Another UIDVALIDITY, and other numbers for the mails that are there."""
        for path in (self.folder / "mail" / user).glob("dovecot*"):
            path.unlink()


@contextlib.asynccontextmanager
async def running_dovecot() -> AsyncIterator[Dovecot]:
    """Where nobody else may read; not below the folder of the run, which only its owner may enter."""
    folder = Path(tempfile.mkdtemp(prefix="postroom-dovecot-"))
    owner = pwd.getpwnam("nobody") if os.getuid() == 0 else pwd.getpwuid(os.getuid())
    port, auth_port = free_port(), free_port()
    if os.getuid() == 0:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    folder.chmod(0o755)
    (folder / "dovecot.conf").write_text(
        CONFIGURATION.format(
            folder=folder,
            user=owner.pw_name,
            group=subprocess.check_output(["id", "-gn", owner.pw_name], text=True).strip(),
            uid=owner.pw_uid,
            gid=owner.pw_gid,
            port=port,
            auth_port=auth_port,
            password=PASSWORD,
        )
    )
    process = subprocess.Popen([programs.path_of("dovecot"), "-F", "-c", str(folder / "dovecot.conf")])
    try:
        await until_it_listens(process, port)
        yield Dovecot(port, folder, auth_port)
    finally:
        process.terminate()
        process.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


async def until_it_listens(process: "subprocess.Popen[bytes]", port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            assert process.poll() is None, "dovecot has ended"
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.05)
