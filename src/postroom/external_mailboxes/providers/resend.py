"""Resend: webhooks in the format of Svix. A post has only the id of an email, which is then fetched."""

import base64
import binascii
import hashlib
import hmac
import re
from typing import Any

from postroom.external_mailboxes.providers.post import (
    BrokenPost,
    ForgedPost,
    Post,
    Posted,
    read_object,
    reports_of,
    require_recent,
    text_of,
)

WINDOW_SECONDS = 5 * 60  # each attempt has a new signature
RECEIVED = "email.received"
_EMAIL_ID = re.compile(r"[A-Za-z0-9-]{1,100}")


def read_resend(post: Post, signing_key: str) -> Posted:
    post_id = post.headers.get("svix-id", "")
    if signing_key:
        require_signed(post, signing_key, post_id)
    document = read_object(post.body)
    if text_of(document, "type") != RECEIVED:
        return Posted(post_id, reports=reports_of(document))
    data = document.get("data")
    fields: dict[str, Any] = data if isinstance(data, dict) else {}
    email_id = text_of(fields, "email_id")
    if not _EMAIL_ID.fullmatch(email_id):
        raise BrokenPost("The post has no email_id. Add the webhook for email.received at Resend.")
    return Posted(post_id, fetch=email_id)


def require_signed(post: Post, secret: str, post_id: str) -> None:
    timestamp = post.headers.get("svix-timestamp", "")
    require_recent(timestamp, post.now, WINDOW_SECONDS)
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        raise ForgedPost("signingKey is not a Resend secret, which begins with whsec_.") from None
    wanted = base64.b64encode(
        hmac.digest(key, f"{post_id}.{timestamp}.".encode("utf-8", "replace") + post.body, hashlib.sha256)
    )
    given = post.headers.get("svix-signature", "")[:2000].split(" ")
    if not any(hmac.compare_digest(b"v1," + wanted, each.encode("utf-8", "replace")) for each in given):
        raise ForgedPost("The signature of the post is wrong. Compare signingKey with Resend's.")


def download_url(answer: bytes) -> str:
    """Return the URL of the whole email, from Resend's answer."""
    raw = read_object(answer, "The answer of Resend").get("raw")
    url = text_of(raw, "download_url") if isinstance(raw, dict) else ""
    if not url:
        raise BrokenPost("Resend's answer has no raw mail. Give an apiKey with full access.")
    return url
