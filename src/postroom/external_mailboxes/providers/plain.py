"""An email posted as it is, by one's own program or by the worker script for Cloudflare."""

import re

from postroom.external_mailboxes.providers.post import (
    BrokenPost,
    ForgedPost,
    Post,
    Posted,
    PostedMail,
    hmac_hex,
    require_equal,
    require_recent,
)

WINDOW_SECONDS = 5 * 60
_SIGNATURE = re.compile(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})")


def read_plain(post: Post, signing_key: str) -> Posted:
    """Read a post. `?to=` or X-Envelope-To name the recipient, `?from=` or X-Envelope-From the sender."""
    recipient = post.query.get("to") or post.headers.get("x-envelope-to", "")
    sender = post.query.get("from") or post.headers.get("x-envelope-from", "")
    if signing_key:
        require_signed(post, signing_key, sender, recipient)
    if not post.body.strip():
        raise BrokenPost("The body is empty. Post the email itself, as message/rfc822.")
    recipients = tuple(part.strip() for part in recipient.split(",") if part.strip())
    return Posted(mail=PostedMail(post.body, recipients, sender.strip()))


def require_signed(post: Post, signing_key: str, sender: str, recipient: str) -> None:
    """Verify `X-Signature: t=<seconds>,v1=<hex>`: HMAC-SHA256 of `<t>.<sender>.<recipient>.<body>`."""
    found = _SIGNATURE.fullmatch(post.headers.get("x-signature", "").strip())
    if found is None:
        raise ForgedPost("The post has no X-Signature: t=<seconds>,v1=<hex>.")
    require_recent(found[1], post.now, WINDOW_SECONDS)
    signed = f"{found[1]}.{sender}.{recipient}.".encode("utf-8", "replace") + post.body
    require_equal(hmac_hex(signing_key, signed), found[2])
