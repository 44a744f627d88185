"""One line for each movement and each fault, on standard error; never a body, a key or a secret.

A line is `key=value` pairs (logfmt), or JSON. Our own, because structlog would load Rich at every start.
"""

import contextlib
import functools
import json
import re
import sys
import time
import traceback

from postroom.clock import to_iso

_PLAIN = re.compile(r"[!#-<>-~]+")


SELDOM_SECONDS = 10.0


class Logger:
    def __init__(self) -> None:
        self._seldom: dict[str, float] = {}
        self.writes_json = False

    def info(self, event: str, **facts: object) -> None:
        _write("info", event, facts)

    def error(self, event: str, **facts: object) -> None:
        _write("error", event, facts)

    def seldom(self, event: str, **facts: object) -> None:
        """Log errors that repeat with every email, but seldom: the disk may be full already."""
        now = time.monotonic()
        if now - self._seldom.get(event, -SELDOM_SECONDS) >= SELDOM_SECONDS:
            self._seldom[event] = now
            _write("error", event, facts)

    def exception(self, event: str, error: Exception | None = None, /, **facts: object) -> None:
        """Log with the traceback of the given error, or of the current one in an except block."""
        trace = traceback.format_exc() if error is None else "".join(traceback.format_exception(error))
        _write("error", event, {**facts, "exception": trace})


_logger = Logger()


@functools.cache
def get() -> Logger:
    return _logger


def use(form: str) -> None:
    """Use `logfmt` or `json` for the whole process."""
    _logger.writes_json = form == "json"


def _write(level: str, event: str, facts: dict[str, object]) -> None:
    at = to_iso(time.time_ns() // 1_000_000)
    if _logger.writes_json:
        _say(json.dumps({"at": at, "level": level, "event": event, **facts}, default=str))
        return
    line = "".join([f" {name}={_quoted(str(value))}" for name, value in facts.items()])
    _say(f"at={at} level={level} event={_quoted_event(event)}{line}")


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # a log that cannot be written must not stop the server
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _quoted(value: str) -> str:
    """Quote a value to one line: untrusted text cannot start a new one."""
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.encode("unicode_escape").decode().replace('"', '\\"')
    return f'"{escaped}"'


@functools.lru_cache(maxsize=256)
def _quoted_event(event: str) -> str:
    return _quoted(event)
