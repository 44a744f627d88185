"""A pseudo-terminal with the command in it: what a person sees, and can answer."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
from dataclasses import dataclass

from tests import warm_start

LONGEST_SILENCE_SECONDS = 120
_STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@dataclass(frozen=True, slots=True)
class Seen:
    exit_code: int
    raw: str

    @property
    def text(self) -> str:
        """Without colours and cursor moves."""
        return _STYLE.sub("", self.raw).replace("\r\n", "\n")


def run_in_terminal(
    arguments: list[str],
    environment: dict[str, str],
    *,
    answers: dict[str, str] | None = None,
    columns: int = 120,
) -> Seen:
    """Types an answer each time its question appears; ends with the command."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = warm_start.start_in_terminal(arguments, {**environment, "TERM": "xterm-256color"}, slave)
    os.close(slave)
    try:
        raw = _read_all(master, dict(answers or {}))
    except BaseException:
        process.send_signal(signal.SIGKILL)
        raise
    finally:
        os.close(master)
        exit_code = process.wait()
    return Seen(exit_code, raw)


def _read_all(master: int, answers: dict[str, str]) -> str:
    seen = b""
    while chunk := _read(master):
        seen += chunk
        for question in [question for question in answers if question.encode() in seen]:
            os.write(master, f"{answers.pop(question)}\n".encode())
    return seen.decode()


def _read(master: int) -> bytes:
    assert select.select([master], [], [], LONGEST_SILENCE_SECONDS)[0], "the command says nothing and stays"
    try:
        return os.read(master, 65536)
    except OSError:  # Linux says EIO when the last writer is gone
        return b""
