"""Postmark: the inbound stream with the raw mail, and its webhooks. Not signed, but may have a password."""

import base64
import binascii

from postroom.external_mailboxes.providers.post import (
    BrokenPost,
    ForgedPost,
    Post,
    Posted,
    PostedMail,
    read_object,
    reports_of,
    require_equal,
    text_of,
)


def read_postmark(post: Post, signing_key: str) -> Posted:
    if signing_key:
        require_password(post, signing_key)
    document = read_object(post.body)
    post_id = text_of(document, "MessageID")
    if "RecordType" in document:
        return Posted(reports=reports_of(document))
    raw = text_of(document, "RawEmail")
    if not raw:
        raise BrokenPost(
            "The post has no RawEmail. Tick 'Include raw email content in JSON payload' at Postmark."
        )
    recipient = text_of(document, "OriginalRecipient")
    recipients = (recipient,) if recipient else ()
    return Posted(post_id, PostedMail(raw.encode("utf-8", "surrogateescape"), recipients))


def require_password(post: Post, password: str) -> None:
    """Check the password, which Postmark takes from its URL and sends as HTTP basic authentication."""
    scheme, _, value = post.headers.get("authorization", "").partition(" ")
    try:
        given = base64.b64decode(value, validate=True).decode("utf-8", "replace").partition(":")[2]
    except (binascii.Error, ValueError):
        given = ""
    if scheme.lower() != "basic":
        raise ForgedPost("The post has no password. Put signingKey into the URL: https://postroom:KEY@host/…")
    require_equal(password, given)
