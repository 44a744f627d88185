"""A private Postfix that takes mail into its queue, on disk as ever, and holds it there or hands it over."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench.processes import HOST
from tests.ports import free_port

NAME = "Postfix, into its queue"
COMMAND = shutil.which("postfix", path="/usr/sbin:/usr/local/sbin:/usr/bin")
START_DEADLINE_SECONDS = 120.0

MAIN = """\
compatibility_level = 3.6
config_directory = {folder}/config
queue_directory = {folder}/queue
data_directory = {folder}/data
mail_owner = postfix
setgid_group = postdrop
myhostname = bench.example
mydestination =
virtual_mailbox_domains = {domain}
virtual_mailbox_maps = static:here
virtual_transport = {transport}
alias_maps =
inet_interfaces = {host}
inet_protocols = ipv4
mynetworks = {host}/32
smtpd_peername_lookup = no
smtpd_data_restrictions = {restriction}
smtpd_client_connection_count_limit = 0
message_size_limit = 40000000
mailbox_size_limit = 0
"""

# The services that accepting a mail needs, and one that hands it over: held mail costs Postfix nothing more.
MASTER = """\
{host}:{port} inet n - n - 100 smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
proxymap unix - - n - - proxymap
anvil unix - - n - 1 anvil
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
error unix - - n - - error
lmtp unix - - n - - lmtp
smtp unix - - n - - smtp
"""


def can_run() -> bool:
    return COMMAND is not None and os.geteuid() == 0


def master_pid(folder: Path) -> int:
    return int((folder / "queue" / "pid" / "master.pid").read_text())


@contextlib.contextmanager
def running_postfix(folder: Path, domain: str, transport: str | None = None) -> Iterator[int]:
    """Gives the port. Without a transport it holds what it takes. Needs root: it changes users by itself."""
    assert COMMAND is not None
    port = free_port()
    _configure(folder, domain, port, transport)
    control = [COMMAND, "-c", str(folder / "config")]
    start = subprocess.run([*control, "start"], capture_output=True, text=True)
    if start.returncode != 0:
        raise RuntimeError(f"Postfix did not start: {start.stderr}")
    try:
        _wait_until_listening(port)
        yield port
    finally:
        subprocess.run([*control, "stop"], check=False, capture_output=True)


def _configure(folder: Path, domain: str, port: int, transport: str | None) -> None:
    for name in ("config", "queue", "data"):
        (folder / name).mkdir(parents=True, mode=0o755)
    folder.parent.chmod(0o711)  # its own users must be able to pass
    shutil.chown(folder / "data", "postfix")
    values = {
        "folder": folder,
        "domain": domain,
        "host": HOST,
        "port": port,
        "transport": transport or "smtp",
        "restriction": "" if transport else "check_client_access static:HOLD",
    }
    (folder / "config" / "main.cf").write_text(MAIN.format(**values))
    (folder / "config" / "master.cf").write_text(MASTER.format(**values))


def _wait_until_listening(port: int) -> None:
    deadline = time.monotonic() + START_DEADLINE_SECONDS
    while True:
        try:
            with socket.create_connection((HOST, port), timeout=5) as connection:
                if connection.recv(3) == b"220":
                    return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
