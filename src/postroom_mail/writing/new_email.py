"""A new email from plain arguments, for callers of the library; `compose.Draft` has all that can be said."""

import os
import time
from collections.abc import Sequence

from postroom_mail.writing import compose as writing
from postroom_mail.writing.compose import Draft, DraftAttachment


def compose(
    *,
    sender: str,
    to: Sequence[str],
    subject: str,
    text: str,
    html: str | None = None,
    cc: Sequence[str] = (),
    reply_to: Sequence[str] = (),
    attachments: Sequence[DraftAttachment] = (),
    in_reply_to: str | None = None,
    references: Sequence[str] = (),
    automated: bool = False,
    message_id: str | None = None,
    date_at: int | None = None,
) -> bytes:
    """Return an email as bytes, ready to sign and send: CRLF lines, headers folded and encoded.

    Addresses are `name@example.com` or `Name <name@example.com>`. `automated` marks an email that no person
    wrote (RFC 3834). `message_id` and `date_at` (milliseconds UTC) are made if left out. Raises DraftError, a
    ValueError, for a value that cannot be written safely: no field can add a header or a recipient.

    >>> raw = compose(sender="Ann <ann@example.com>", to=["bob@example.org"], subject="Grüße", text="Hello")
    >>> parse(raw).from_addr, parse(raw).subject, parse(raw).body_text
    ('Ann <ann@example.com>', 'Grüße', 'Hello\\n')
    """
    name, address = writing.split_mailbox(sender)
    domain = writing.addr_spec("sender", address).rpartition("@")[2]
    draft = Draft(
        from_name=name,
        from_address=address,
        to=tuple(to),
        subject=subject,
        text=text,
        message_id=message_id or writing.new_message_id(domain, os.urandom(16)),
        date_at=time.time_ns() // 1_000_000 if date_at is None else date_at,
        cc=tuple(cc),
        reply_to=tuple(reply_to),
        html=html,
        attachments=tuple(attachments),
        in_reply_to=in_reply_to,
        references=tuple(references),
        automated=automated,
    )
    return writing.compose(draft)
