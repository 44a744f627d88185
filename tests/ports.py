"""Ports for servers that a test starts, and starts again, each given out once.

They lie below those that the kernel gives to connections and to whoever asks for any port: one of these
could be taken by a stranger between the choice and the start.
"""

import fcntl
import os
import socket
import tempfile
from pathlib import Path

FIRST, END = 12_000, 32_000
COUNTER = Path(tempfile.gettempdir()) / f"postroom-test-ports-{os.getuid()}"


def free_port() -> int:
    while not is_free(port := next_port()):
        pass
    return port


def next_port() -> int:
    """One after the other, for all runs on this machine."""
    descriptor = os.open(COUNTER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        given = int(os.pread(descriptor, 20, 0) or FIRST)
        following = given + 1 if given + 1 < END else FIRST
        os.pwrite(descriptor, f"{following:05}".encode(), 0)
    finally:
        os.close(descriptor)
    return given


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
