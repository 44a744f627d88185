"""Limits of time between a server in a test and its PostgreSQL, long enough for a busy machine.

A test of the limits themselves asks for the usual ones.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from postroom.storage import lock_waiters
from postroom.storage.engines import postgres, postgres_connections

LONG_SECONDS = 60.0
SESSION_LIMITS = (postgres.LIMITS_OF_WRITERS, postgres.LIMITS_OF_READERS, postgres.LIMITS_OF_LONG_READERS)
USUAL_SESSION_LIMITS = tuple(dict(limits) for limits in SESSION_LIMITS)
USUAL_WRITER_LIMITS = USUAL_SESSION_LIMITS[0]
OTHER_LIMITS = (
    (lock_waiters, "LOCK_WAIT_SECONDS"),
    (postgres_connections, "SUSPICIOUS_SECONDS"),
    (postgres_connections, "HUNG_SECONDS"),
    (postgres, "HUNG_SECONDS"),
)
USUAL_OTHER_LIMITS = [getattr(module, name) for module, name in OTHER_LIMITS]


def lengthen_limits() -> None:
    for limits in SESSION_LIMITS:
        limits.update(
            {
                name: f"{LONG_SECONDS:.0f}s"
                for name in limits
                if name.endswith(("statement_timeout", "session_timeout"))
            }
        )
    for module, name in OTHER_LIMITS:
        setattr(module, name, LONG_SECONDS)


@contextmanager
def usual_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for limits, usual in zip(SESSION_LIMITS, USUAL_SESSION_LIMITS, strict=True):
            for name, value in usual.items():
                patch.setitem(limits, name, value)
        for (module, name), value in zip(OTHER_LIMITS, USUAL_OTHER_LIMITS, strict=True):
            patch.setattr(module, name, value)
        yield
