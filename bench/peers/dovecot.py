"""Postfix handing over to a private Dovecot by LMTP, which stores each mail and indexes its text."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.peers import postfix

NAME = "Postfix + Dovecot, stored and indexed"
COMMAND = shutil.which("dovecot", path="/usr/sbin:/usr/local/sbin")
DOVEADM = shutil.which("doveadm", path="/usr/bin:/usr/local/bin")
PARTS = ("/usr/lib/dovecot/lmtp", "/usr/lib/dovecot/modules/lib21_fts_xapian_plugin.so")
USER = "bench"

CONFIGURATION = """\
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
protocols = lmtp
ssl = no
mail_location = maildir:{folder}/mail
mail_plugins = fts fts_xapian
mail_fsync = always
auth_username_format = {user}
passdb {{
  driver = static
  args = nopassword=y
}}
userdb {{
  driver = static
  args = uid=nobody gid=nogroup home={folder}/mail allow_all_users=yes
}}
first_valid_uid = 1
first_valid_gid = 1
service lmtp {{
  unix_listener {folder}/lmtp {{
    mode = 0666
  }}
}}
service indexer-worker {{
  vsz_limit = 1 G
}}
plugin {{
  fts = xapian
  fts_xapian = partial=3 full=20
  fts_autoindex = yes
}}
"""


@dataclass(frozen=True, slots=True)
class Handover:
    """The port of Postfix, both master processes, and the folder of the mails."""

    port: int
    pids: tuple[int, int]
    folder: Path

    def is_done(self, count: int) -> bool:
        """All of them are stored, and indexed: who asks for the index waits until it is complete."""
        if sum(1 for part in ("new", "cur") for _ in (self.folder / "mail" / part).glob("*")) < count:
            return False
        assert DOVEADM is not None
        indexing = [DOVEADM, "-c", str(self.folder / "dovecot.conf"), "index", "-u", USER, "INBOX"]
        return subprocess.run(indexing, capture_output=True, check=False).returncode == 0


def can_run() -> bool:
    is_there = COMMAND is not None and DOVEADM is not None and all(Path(part).is_file() for part in PARTS)
    return is_there and postfix.can_run()


@contextlib.contextmanager
def running(folder: Path, domain: str) -> Iterator[Handover]:
    assert COMMAND is not None
    for part in (folder / "run", folder / "state", folder / "mail"):
        part.mkdir(parents=True)
    folder.parent.chmod(0o711)  # for its users
    shutil.chown(folder / "mail", "nobody", "nogroup")
    (folder / "dovecot.conf").write_text(CONFIGURATION.format(folder=folder, user=USER))
    server = subprocess.Popen([COMMAND, "-F", "-c", str(folder / "dovecot.conf")])
    try:
        with postfix.running_postfix(folder / "postfix", domain, f"lmtp:unix:{folder}/lmtp") as port:
            yield Handover(port, (postfix.master_pid(folder / "postfix"), server.pid), folder)
    finally:
        server.terminate()
        server.wait()
