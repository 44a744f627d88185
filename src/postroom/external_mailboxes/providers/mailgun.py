"""Mailgun: a route that forwards to a URL ending in `mime`, and its webhooks."""

from typing import Any

from postroom.external_mailboxes.providers.form import Form, read_form
from postroom.external_mailboxes.providers.post import (
    BrokenPost,
    ForgedPost,
    Post,
    Posted,
    PostedMail,
    hmac_hex,
    read_unproven,
    reports_of,
    require_equal,
    require_recent,
    text_of,
)

WINDOW_SECONDS = 12 * 3600  # it tries again for 8 hours


def read_mailgun(post: Post, signing_key: str) -> Posted:
    if post.headers.get("content-type", "").lower().startswith("application/json"):
        return _read_event(post, signing_key)
    form = read_form(post)
    token = _text(form, "token")
    if signing_key:
        require_signed(post, signing_key, _text(form, "timestamp"), token, _text(form, "signature"))
    if not (raw := form.whole("body-mime")):
        raise BrokenPost(
            "The post has no body-mime. The URL of the route must end in /mime, as it was given."
        )
    mail = PostedMail(raw, _split(_text(form, "recipient")), _text(form, "sender"))
    return Posted(token, mail)


def _read_event(post: Post, signing_key: str) -> Posted:
    document = read_unproven(post.body)
    signature = document.get("signature")
    signed: dict[str, Any] = signature if isinstance(signature, dict) else {}
    token = text_of(signed, "token")
    if signing_key:
        require_signed(
            post, signing_key, str(signed.get("timestamp", "")), token, text_of(signed, "signature")
        )
    if not isinstance(document.get("event-data"), dict):
        raise BrokenPost(
            "The post has no event-data. Set the URL under Webhooks, or with /mime behind it as a route."
        )
    return Posted(token, reports=reports_of(document))


def require_signed(post: Post, signing_key: str, timestamp: str, token: str, signature: str) -> None:
    """Verify a signature of time and token only: a token counts for the first content that it came with."""
    if not token:
        raise ForgedPost(
            "The post has no token in its signature. Set the URL at Mailgun: only it signs this way."
        )
    require_recent(timestamp, post.now, WINDOW_SECONDS)
    require_equal(hmac_hex(signing_key, f"{timestamp}{token}".encode()), signature)


def _text(form: Form, name: str) -> str:
    return form.short(name).decode("utf-8", "replace").strip()


def _split(recipients: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in recipients.split(",") if part.strip())
