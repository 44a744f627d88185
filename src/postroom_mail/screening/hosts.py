"""Hosts in a text, also without a scheme, and which of them say something."""

import ipaddress
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from postroom_mail.screening.known_names import COMMON_HOSTS, TOP_LEVELS, WELL_KNOWN

T = TypeVar("T", bound=Struct)

MAX_HOST = 253  # characters (RFC 1035)
CALL = "("  # behind a name in code, and at the end of its key

_HOST_KEY = "host:"
_DOT = re.compile(r"\.[A-Za-z]{2}")
_HOST_BACK = re.compile(r"[\w-]{1,63}+(?>(?:\.[\w-]{1,63}+){0,5})")
_HOST_ON = re.compile(r"((?>(?:\.[\w-]{1,63}+)+))(?>(?::\d{1,5})?)((?:[/?#][^\s<>\"'`\\^{|}]*)?+)")


def number_of_host(host: str) -> str:
    """Return the address that a host of one number stands for."""
    if not host[:1].isdecimal() or "." in host:
        return host
    try:
        return str(ipaddress.IPv4Address(int(host, 16 if host.startswith("0x") else 10)))
    except ValueError:
        return host


def bare_hosts(text: str) -> Iterator[str]:
    """Yield hosts without a scheme, each with the path behind it, or the bracket of a call in code."""
    end = 0
    for dot in _DOT.finditer(text):
        at = dot.start()
        if at < end:
            continue
        on = _HOST_ON.match(text, at)
        if on is None:
            continue
        if not is_top_level(on[1].rpartition(".")[2]):
            end = on.end()
            continue
        back = _HOST_BACK.match(text[max(0, at - 200) : at][::-1])
        if back is None:
            continue
        end = on.end()
        start = at - back.end()
        if start and text[start - 1] == "@":
            continue
        yield f"{back[0][::-1]}{on[1]}{on[2] or CALL * text.startswith(CALL, end)}"


def with_calls(found: dict[str, T]) -> dict[str, T]:
    """Return the values of a send with its hosts as they may have been received.

    `Sys.info()` is a call in code: where it was received as nothing else, it may leave as a call.
    """
    for key in [each for each in found if each.startswith(_HOST_KEY)]:
        value, host = found.pop(key), key.rstrip(CALL)
        for form in (host,) if key.endswith(CALL) else (host, f"{host}{CALL}"):
            found[form] = replace(value, key=form)
    return found


def says_something(host: str) -> bool:
    """Return whether a host is a value without a path: one that everybody names is none."""
    return len(host) > MAX_HOST or _says_something(host)


@lru_cache(1_000)  # most links of an email are of one host
def _says_something(host: str) -> bool:
    if host in COMMON_HOSTS or not is_reachable(host):
        return False
    labels = host.split(".")
    return not any(".".join(labels[-count:]) in WELL_KNOWN for count in (1, 2, 3))


def is_reachable(host: str) -> bool:
    """Return whether a host may be one of the Internet: no mask, and no address of a private network."""
    try:
        return not host[:1].isdecimal() or ipaddress.IPv4Address(host).is_global
    except ValueError:
        return True


def is_top_level(name: str) -> bool:
    """Return whether a word behind a dot is likely the end of a host: a file may end in letters too."""
    return name.lower() in TOP_LEVELS and (name.islower() or name.isupper())
