"""File descriptors: every connection and file takes one, and a process has a limited number."""

import errno
import os
import resource

from msgspec import Struct

from postroom import log

ENOUGH = 65_536
# For the database, couriers (264 connections out), blobs, children that read files, and health.
RESERVE = 400
MOST_SMTP, MOST_HTTP = 2_000, 20_000
PER_SMTP = 2  # a connection and the file its email is spooled to


class Caps(Struct, frozen=True):
    """How many connections each server may have open at once."""

    smtp: int
    http: int


def raise_limit() -> int:
    """Returns the soft limit, after raising it as far as allowed and useful."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return ENOUGH if soft == resource.RLIM_INFINITY else soft


def caps(limit: int) -> Caps:
    """Return half of what the reserve leaves, for each server; of a small limit, half is reserved."""
    room = max(limit - RESERVE, limit // 2)
    return Caps(
        smtp=max(1, min(MOST_SMTP, room // 2 // PER_SMTP)),
        http=max(1, min(MOST_HTTP, room // 2)),
    )


def warn_if_none_are_left() -> None:
    """Logs it, since without a free descriptor the event loop silently closes new connections."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            log.get().seldom("no file descriptors are left", reason=str(error.strerror))
