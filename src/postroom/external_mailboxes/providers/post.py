"""A post of a mail service, and its content: an email, reports of bounces and complaints, or a handshake."""

import hashlib
import hmac
import json
from typing import Any

from msgspec import Struct

from postroom.clock import SECOND
from postroom.inward.mails import UNKNOWN_PEER
from postroom_mail.mime.parsing_cost import find_json_excess
from postroom_mail.reports.json_notices import read_notice
from postroom_mail.reports.report import Report

# Events, and what SNS carries, are below 256 kB. A decoder holds the interpreter 30 ms for a megabyte.
MAX_UNPROVEN_BYTES = 1024 * 1024


class BrokenPost(Exception):
    """It cannot be read; the message says what to set at the service."""


class ForgedPost(Exception):
    """Its signature is missing, wrong or too old."""


class Post(Struct, frozen=True):
    """Names in `headers` are lower case."""

    headers: dict[str, str]
    query: dict[str, str]
    body: bytes
    now: int

    def content_hash(self) -> str:
        return hashlib.sha256(self.body).hexdigest()


class PostedMail(Struct, frozen=True):
    """`recipients` are those of the envelope; if empty, those of To and Cc."""

    raw: bytes
    recipients: tuple[str, ...] = ()
    mail_from: str = ""
    peer_ip: str = UNKNOWN_PEER


class Posted(Struct, frozen=True):
    """`post_id` is the service's own id of this post, "" if it has none.

    `confirm` is a URL to fetch to confirm a subscription, `fetch` the id of an email to be fetched.
    """

    post_id: str = ""
    mail: PostedMail | None = None
    reports: tuple[Report, ...] = ()
    confirm: str = ""
    topic: str = ""
    fetch: str = ""


def require_recent(written: str, now: int, window_seconds: int) -> None:
    """Require a recent time, in both directions: the clock of the service may be ahead."""
    if not written.isascii() or not written.isdigit() or len(written) > 12:
        raise ForgedPost("The post has no time in its signature. Is the URL set at the right service?")
    if abs(now // SECOND - int(written)) > window_seconds:
        raise ForgedPost("The signature of the post is too old. Is the clock of this server right?")


def hmac_hex(key: str, signed: bytes) -> str:
    return hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()


def require_equal(wanted: str, given: str) -> None:
    if not hmac.compare_digest(wanted.encode(), given.strip().encode("utf-8", "replace")):
        raise ForgedPost("The signature of the post is wrong. Compare signingKey with the service's own.")


def read_object(raw: bytes | str, what: str = "The body") -> dict[str, Any]:
    document = read_document(raw, what)
    if not isinstance(document, dict):
        raise BrokenPost(f"{what} is not a JSON object. Is the URL set at the right service?")
    return document


def read_unproven(raw: bytes) -> dict[str, Any]:
    """Read a body that holds its own signature: anybody may have written it, so it must be small."""
    if len(raw) > MAX_UNPROVEN_BYTES:
        raise BrokenPost(f"The body is larger than {MAX_UNPROVEN_BYTES} bytes.")
    return read_object(raw)


def read_document(raw: bytes | str, what: str = "The body") -> Any:
    """Read `raw` in UTF-8: what counts its values reads nothing else."""
    written = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    excess = find_json_excess(written)
    if excess is not None:
        raise BrokenPost(f"{what} {excess}. Have the service post fewer events at once.")
    try:
        return json.loads(written.decode("utf-8-sig", "surrogatepass"))
    except (ValueError, RecursionError):
        raise BrokenPost(f"{what} is not JSON. Is the URL set at the right service?") from None


def reports_of(*documents: object) -> tuple[Report, ...]:
    found = (read_notice(document) for document in documents)
    return tuple(report for report in found if report is not None)


def text_of(document: dict[str, Any], name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""


def texts_of(document: dict[str, Any], name: str) -> tuple[str, ...]:
    value = document.get(name)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
