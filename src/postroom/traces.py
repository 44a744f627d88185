"""Trace contexts (W3C Trace Context): what a request names is kept, and goes on with its message.

A message keeps only the id of its trace. The span it stands for follows from its own id, so nothing else is
stored, and every process knows it.
"""

import hashlib
import re
import secrets

TRACE_HEX, SPAN_HEX = 32, 16
LONGEST = 512  # characters of a traceparent of a later version
_TRACEPARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-[0-9a-f]{2}(?P<more>-.*)?"
)


def read(header: str) -> tuple[str, str] | None:
    """Return the ids of trace and span; None if there is none, or it is invalid (ignored, section 3.2)."""
    found = _TRACEPARENT.fullmatch(header.strip()) if 0 < len(header) <= LONGEST else None
    if found is None or found["version"] == "ff" or (found["version"] == "00" and found["more"]):
        return None
    if not int(found["trace"], 16) or not int(found["span"], 16):
        return None
    return found["trace"], found["span"]


def write(trace_id: str, span_id: str) -> str:
    return f"00-{trace_id}-{span_id}-01"


def new_trace() -> str:
    return secrets.token_hex(TRACE_HEX // 2)


def new_span() -> str:
    return secrets.token_hex(SPAN_HEX // 2)


def span_of_message(trace_id: str, message_id: str, is_inbound: bool) -> str:
    """Return the span that a message stands for: one for a received email, in however many inboxes it is."""
    named = trace_id if is_inbound else f"{trace_id} {message_id}"
    return hashlib.sha256(named.encode()).hexdigest()[:SPAN_HEX]


def of_message(trace_id: str, message_id: str, is_inbound: bool) -> str:
    """Return the traceparent for what happens because of a message."""
    return write(trace_id, span_of_message(trace_id, message_id, is_inbound))
