"""A private Postfix that takes mail into its queue, on disk as ever, and holds it there."""

import contextlib
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
START_DEADLINE_SECONDS = 20.0

MAIN = """\
compatibility_level = 3.6
config_directory = {folder}/config
queue_directory = {folder}/queue
data_directory = {folder}/data
mail_owner = postfix
setgid_group = postdrop
myhostname = bench.example
mydestination = {domain}
local_recipient_maps =
alias_maps =
inet_interfaces = {host}
inet_protocols = ipv4
mynetworks = {host}/32
smtpd_peername_lookup = no
smtpd_data_restrictions = check_client_access static:HOLD
smtpd_client_connection_count_limit = 0
message_size_limit = 40000000
mailbox_size_limit = 0
"""

# The services that accepting a mail needs. No delivery: held mail costs Postfix nothing more.
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
local unix - n n - - local
smtp unix - - n - - smtp
"""


def master_pid(folder: Path) -> int:
    return int((folder / "queue" / "pid" / "master.pid").read_text())


@contextlib.contextmanager
def running_postfix(folder: Path, domain: str) -> Iterator[int]:
    """Gives the port. Needs root: Postfix changes users by itself."""
    assert COMMAND is not None
    port = free_port()
    _configure(folder, domain, port)
    control = [COMMAND, "-c", str(folder / "config")]
    start = subprocess.run([*control, "start"], capture_output=True, text=True)
    if start.returncode != 0:
        raise RuntimeError(f"Postfix did not start: {start.stderr}")
    try:
        _wait_until_listening(port)
        yield port
    finally:
        subprocess.run([*control, "stop"], check=False, capture_output=True)


def _configure(folder: Path, domain: str, port: int) -> None:
    for name in ("config", "queue", "data"):
        (folder / name).mkdir(parents=True, mode=0o755)
    folder.parent.chmod(0o711)  # its own users must be able to pass
    shutil.chown(folder / "data", "postfix")
    values = {"folder": folder, "domain": domain, "host": HOST, "port": port}
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
