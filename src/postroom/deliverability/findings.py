"""The result of one check of a domain, and the zone file line that fixes it."""

from typing import Literal

from msgspec import Struct

State = Literal["ok", "missing", "wrong", "unknown"]
TTL_SECONDS = 3600
STRING_CHARACTERS = 255  # of a zone file (RFC 1035 section 3.3)
SHOWN_CHARACTERS = 1000


class HealthCheck(Struct, frozen=True):
    """`paste` has lines for the zone file, empty where none would help."""

    name: str
    state: State
    wanted: str
    found: str
    why: str
    paste: str = ""


def shown(values: "list[str] | tuple[str, ...]") -> str:
    """Return one line each, limited in length: it comes from outside."""
    return "\n".join(values)[:SHOWN_CHARACTERS]


def texts(values: tuple[bytes, ...]) -> list[str]:
    return [value.decode("ascii", "replace") for value in values]


def zone_line(name: str, kind: str, value: str) -> str:
    return f"{name}. {TTL_SECONDS} IN {kind} {quoted(value) if kind == 'TXT' else value}"


def quoted(value: str) -> str:
    """Split a text into strings of at most 255 characters (RFC 1035, 3.3.14)."""
    starts = range(0, len(value), STRING_CHARACTERS)
    return " ".join(f'"{value[start : start + STRING_CHARACTERS]}"' for start in starts)
