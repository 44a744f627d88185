"""Answers in XML: elements of the namespaces in use, and `multistatus` (RFC 4918, section 13)."""

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from urllib.parse import quote

from msgspec import Struct

DAV, CALDAV = "DAV:", "urn:ietf:params:xml:ns:caldav"
CALENDAR_SERVER, APPLE = "http://calendarserver.org/ns/", "http://apple.com/ns/ical/"
PREFIXES = {DAV: "D", CALDAV: "C", CALENDAR_SERVER: "CS", APPLE: "A"}
DECLARED = "".join(f' xmlns:{prefix}="{namespace}"' for namespace, prefix in PREFIXES.items())
MEDIA_TYPE = "application/xml; charset=utf-8"
_IMPOSSIBLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LOCAL = re.compile(r"[A-Za-z_][\w.-]*")


def d(local: str) -> str:
    return f"{{{DAV}}}{local}"


def c(local: str) -> str:
    return f"{{{CALDAV}}}{local}"


def cs(local: str) -> str:
    return f"{{{CALENDAR_SERVER}}}{local}"


def a(local: str) -> str:
    return f"{{{APPLE}}}{local}"


def text(value: str) -> str:
    """Escape a text; characters that XML cannot hold are left out."""
    clean = _IMPOSSIBLE.sub("", value)
    return clean.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")


def attribute(value: str) -> str:
    return text(value).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def element(name: str, content: str = "", /, **attributes: str) -> str:
    """Return an element with a `{namespace}local` name; `content` is XML already."""
    namespace, _, local = name[1:].partition("}")
    given = "".join(f' {key}="{attribute(value)}"' for key, value in attributes.items())
    prefix = PREFIXES.get(namespace)
    if prefix is None:
        local = local if _LOCAL.fullmatch(local) else "unknown"
        tag, given = (
            (f"X:{local}", f'{given} xmlns:X="{attribute(namespace)}"') if namespace else (local, given)
        )
    else:
        tag = f"{prefix}:{local}"
    return f"<{tag}{given}>{content}</{tag}>" if content else f"<{tag}{given}/>"


def href(path: str) -> str:
    return element(d("href"), text(quote(path, safe="/@:!$&'()*+,;=~-._")))


class Responded(Struct, frozen=True):
    """What one resource answers: properties with their XML, or a status alone."""

    path: str
    found: Sequence[tuple[str, str]] = ()
    missing: Sequence[str] = ()
    refused: Sequence[str] = ()
    status: int = 0
    error: str = ""


def multistatus(answered: Iterable[Responded], sync_token: str = "") -> bytes:
    token = element(d("sync-token"), text(sync_token)) if sync_token else ""
    responses = "".join(map(_response, answered))
    return _document(f"<D:multistatus{DECLARED}>{responses}{token}</D:multistatus>")


def _response(each: Responded) -> str:
    if each.status:
        return element(d("response"), href(each.path) + _status(each.status) + _error(each.error))
    found = "".join(element(name, content) for name, content in each.found)
    parts = _propstat(found, 200) if found or not (each.missing or each.refused) else ""
    parts += _propstat("".join(map(element, each.missing)), 404) if each.missing else ""
    parts += _propstat("".join(map(element, each.refused)), 403) if each.refused else ""
    return element(d("response"), href(each.path) + parts)


def _error(name: str) -> str:
    return element(d("error"), element(name)) if name else ""


def _propstat(properties: str, status: int) -> str:
    prop = element(d("prop"), properties)
    return element(d("propstat"), prop + _status(status))


def _status(status: int) -> str:
    return element(d("status"), f"HTTP/1.1 {status} {HTTPStatus(status).phrase}")


def error(name: str, message: str, inner: str = "") -> bytes:
    """Return the precondition that does not hold, with a sentence for people."""
    said = element(d("responsedescription"), text(message))
    return _document(f"<D:error{DECLARED}>{element(name, inner)}{said}</D:error>")


def document(name: str, content: str) -> bytes:
    whole = element(name, content)
    tag, rest = whole[1:].split(">", 1) if not whole.endswith("/>") else (whole[1:-2], "")
    return _document(f"<{tag}{DECLARED}>{rest}" if rest else f"<{tag}{DECLARED}/>")


def _document(content: str) -> bytes:
    return f'<?xml version="1.0" encoding="utf-8"?>\n{content}'.encode()
