"""Limits of time between a server in a test and its PostgreSQL, long enough for a machine that stands still.

A test of the limits themselves asks for the usual ones.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from postroom.storage.engines import postgres, postgres_connections

LONG_SECONDS = 60.0
OF_SESSIONS = (postgres.LIMITS_OF_WRITERS, postgres.LIMITS_OF_READERS, postgres.LIMITS_OF_LONG_READERS)
USUAL_OF_SESSIONS = tuple(dict(limits) for limits in OF_SESSIONS)
USUAL_OF_WRITERS = USUAL_OF_SESSIONS[0]
OF_CONNECTIONS = (
    (postgres_connections, "SUSPICIOUS_SECONDS"),
    (postgres_connections, "HUNG_SECONDS"),
    (postgres, "HUNG_SECONDS"),
)
USUAL_OF_CONNECTIONS = [getattr(module, name) for module, name in OF_CONNECTIONS]


def be_unhurried() -> None:
    for limits in OF_SESSIONS:
        limits.update(
            {
                name: f"{LONG_SECONDS:.0f}s"
                for name in limits
                if name.endswith(("statement_timeout", "session_timeout"))
            }
        )
    for module, name in OF_CONNECTIONS:
        setattr(module, name, LONG_SECONDS)


@contextmanager
def usual_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for limits, usual in zip(OF_SESSIONS, USUAL_OF_SESSIONS, strict=True):
            for name, value in usual.items():
                patch.setitem(limits, name, value)
        for (module, name), value in zip(OF_CONNECTIONS, USUAL_OF_CONNECTIONS, strict=True):
            patch.setattr(module, name, value)
        yield
