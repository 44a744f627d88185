"""What rspamd and SpamAssassin say of an email, where the operator runs one; nothing if they are away.

They are asked once for an email, however many inboxes it is for.
"""

import asyncio
import contextlib
import hashlib
import math
import re
from collections.abc import Awaitable
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from postroom import log
from postroom.config import Config
from postroom.inward.sender_checks import SendingServer
from postroom.mailbox.documents import JunkReason
from postroom.net.certificate import trusted_authorities
from postroom.net.one_question import ServiceAway, exchange
from postroom.resources import Resources, ServiceFaults

SECONDS = 5.0
ANSWER_BYTES = 256 * 1024
CONTENT_BYTES = 1024 * 1024  # of longer email they see nothing
RSPAMD_MARKS = 6.0  # the score from which rspamd by default marks email as spam
WEIGHT_OF_A_MARK = 2.2  # as much as a score of 0.9
LEAST, MOST = -2.0, 6.0
MOST_FIELD_CHARS = 320
AWAY = "A spam filter of this server does not answer."
RSPAMD, SPAMASSASSIN = "rspamd", "spamassassin"

_SPAM = re.compile(rb"^Spam: *(?:True|False|Yes|No) *; *(-?[0-9.]{1,12}) */ *(-?[0-9.]{1,12})", re.I | re.M)


class NoPeer(Struct, frozen=True):
    peer_ip: str = ""
    helo: str = ""
    mail_from: str = ""


class _Checked(Struct):
    score: float


async def ask_services_once(resources: Resources, raw: bytes, peer: SendingServer) -> tuple[JunkReason, ...]:
    config, now = resources.config, resources.now()
    if not (config.rspamd_url or config.spamd):
        return ()
    key = hashlib.sha256(repr((peer.peer_ip, peer.helo, peer.mail_from)).encode() + raw).digest()
    found: tuple[JunkReason, ...] = await resources.service_answers.get(
        key, lambda: ask_services(config, raw, resources.services, now, peer), now
    )
    return found


async def ask_services(
    config: Config,
    raw: bytes,
    faults: ServiceFaults | None = None,
    now: int = 0,
    peer: SendingServer | None = None,
) -> tuple[JunkReason, ...]:
    if len(raw) > CONTENT_BYTES:
        return ()
    asked = []
    if config.rspamd_url:
        question = _ask_rspamd(config.rspamd_url, raw, peer or NoPeer())
        asked.append(_weight_of(RSPAMD, question, faults, now))
    if config.spamd:
        asked.append(_weight_of(SPAMASSASSIN, _ask_spamd(config.spamd, raw), faults, now))
    found = await asyncio.gather(*asked)
    return tuple(each for each in found if each is not None)


async def _weight_of(
    name: str, asking: Awaitable[float], faults: ServiceFaults | None, now: int
) -> JunkReason | None:
    known = faults or ServiceFaults()
    try:
        part = await asking
    except (ServiceAway, ValueError, msgspec.MsgspecError) as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        log.get().seldom(f"{name} gave no answer", reason=reason)
        known.record(name, AWAY, reason, now)
        return None
    known.clear(name, now)
    weight = WEIGHT_OF_A_MARK * (2 * part - 1)
    return JunkReason(name, max(LEAST, min(MOST, weight))) if math.isfinite(weight) else None


async def _ask_rspamd(url: str, raw: bytes, peer: SendingServer) -> float:
    """Return its score as a part of the one from which it marks email. In HTTP/1.0 nothing is chunked."""
    parts = urlsplit(url)
    line = f"POST {parts.path.rstrip('/')}/checkv2 HTTP/1.0"
    about = "".join(f"{name}: {value}\r\n" for name, value in _fields_of(peer))
    head = f"{line}\r\nHost: {parts.netloc}\r\nContent-Length: {len(raw)}\r\n{about}\r\n"
    tls = trusted_authorities() if parts.scheme == "https" else None
    address = f"{parts.hostname}:{parts.port or (443 if tls else 80)}"
    answer = await exchange(address, head.encode() + raw, ANSWER_BYTES, SECONDS, tls)
    status, _, rest = answer.partition(b"\r\n")
    if b" 200" not in status[:20]:
        raise ValueError(f"it answered {status[:40]!r}")
    return msgspec.json.decode(rest.partition(b"\r\n\r\n")[2], type=_Checked).score / RSPAMD_MARKS


def _fields_of(peer: SendingServer) -> list[tuple[str, str]]:
    """Return what rspamd needs for SPF and its lists. The values come from outside."""
    found = [("Helo", peer.helo), ("From", peer.mail_from)]
    with contextlib.suppress(ValueError):  # not every way in has one
        found.append(("IP", str(ip_address(peer.peer_ip))))
    return [
        (name, value)
        for name, value in found
        if 0 < len(value) <= MOST_FIELD_CHARS and value.isascii() and value.isprintable()
    ]


async def _ask_spamd(address: str, raw: bytes) -> float:
    """Return its score as a part of the one that it calls spam."""
    question = b"CHECK SPAMC/1.2\r\nContent-length: %d\r\n\r\n%s" % (len(raw), raw)
    answer = await exchange(address, question, ANSWER_BYTES, SECONDS)
    found = _SPAM.search(answer)
    if not answer.startswith(b"SPAMD/") or found is None:
        raise ValueError(f"it answered {answer[:40]!r}")
    return float(found[1]) / max(0.1, float(found[2]))
