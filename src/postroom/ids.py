"""Ids: a kind prefix and the 32 hex digits of a time-ordered UUID (RFC 9562, version 7)."""

import random
import re
import secrets
from threading import Lock

ACCOUNT, KEY, INBOX, THREAD, MESSAGE, EVENT = "acc", "key", "inb", "thr", "msg", "evt"
MAIL_DELIVERY, WEBHOOK_DELIVERY, NOTICE_DELIVERY, DOMAIN = "mdl", "whd", "ndl", "dom"
REVIEW_ANSWER, REPORT = "rva", "rpt"
DRAFT, SESSION = "drf", "ses"
USER, PASSKEY, SYSTEM_EMAIL, WEBHOOK, NOTIFICATION = "usr", "psk", "ltr", "whk", "ntf"
POD, AUDIT, RULE = "pod", "aud", "rul"
CONNECTION, TEMPLATE, LABEL_CHANGE = "con", "tpl", "lch"
PUSH, DELAYED_ACTION, TLS_REPORT, FEEDBACK = "psh", "dly", "tlr", "fbk"
DMARC_REPORT = "dmr"
UPLOAD, DOWNLOAD = "upl", "dnl"
NOTE = "note"
RULE_TASK, FOLLOW_UP = "rlt", "fup"
SIGNING_KEY = "sgk"
CALENDAR, CALENDAR_EVENT = "cal", "cev"
JOB = "job"

_SHAPE = re.compile(r"([a-z]{3,4})_[0-9a-f]{32}")
# Unique, not secret: an id is no use without a key. A system call for each would take much longer.
_random = random.Random(secrets.randbits(256))  # noqa: S311
_lock = Lock()
_last_moment = 0
_sequence = 0


def new(prefix: str, now: int) -> str:
    """Return a new id. Those of one process sort by time, unless the clock is set back by a second."""
    moment, sequence = _tick(now)
    number = moment << 80 | 0x7 << 76 | sequence << 64 | 0b10 << 62 | _random.getrandbits(62)
    return f"{prefix}_{number:032x}"


def trace() -> str:
    """Identifies an email in the log, in its Received field and in the answer to its sender."""
    return f"{_random.getrandbits(64):016x}"


def moment_of(value: str) -> int:
    """Return when an id was made, in milliseconds."""
    return int(value[4:16], 16)


def is_meant_as(prefix: str, value: str) -> bool:
    """Return whether a value, valid or not, is given as an id of this kind."""
    return value.startswith(f"{prefix}_")


def is_id(prefix: str, value: str) -> bool:
    shape = _SHAPE.fullmatch(value)
    return shape is not None and shape[1] == prefix


def _tick(now: int) -> tuple[int, int]:
    global _last_moment, _sequence
    with _lock:
        if now > _last_moment or now < _last_moment - 1_000:
            _last_moment, _sequence = now, _random.getrandbits(8)
        elif _sequence < 0xFFF:
            _sequence += 1
        else:
            _last_moment, _sequence = _last_moment + 1, 0
        return _last_moment, _sequence
