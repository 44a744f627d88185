"""SendGrid: Inbound Parse with the raw mail, and its event webhook."""

import base64
import binascii

from postroom.external_mailboxes.providers.form import read_form
from postroom.external_mailboxes.providers.post import (
    BrokenPost,
    ForgedPost,
    Post,
    Posted,
    PostedMail,
    read_document,
    read_object,
    reports_of,
    require_recent,
    text_of,
    texts_of,
)
from postroom.inward.mails import UNKNOWN_PEER

WINDOW_SECONDS = 4 * 24 * 3600  # it tries again for 3 days
SIGNATURE = "x-twilio-email-event-webhook-signature"
TIMESTAMP = "x-twilio-email-event-webhook-timestamp"


def read_sendgrid(post: Post, signing_key: str) -> Posted:
    if signing_key:
        require_signed(post, signing_key)
    if post.headers.get("content-type", "").lower().startswith("application/json"):
        return _read_events(post)
    form = read_form(post)
    if not (raw := form.whole("email")):
        raise BrokenPost("The post has no email. Tick 'POST the raw, full MIME message' at Inbound Parse.")
    envelope = read_object(form.whole("envelope") or b"{}", "The envelope")
    peer_ip = form.short("sender_ip")[:64].decode("ascii", "replace").strip() or UNKNOWN_PEER
    return Posted(mail=PostedMail(raw, texts_of(envelope, "to"), text_of(envelope, "from"), peer_ip))


def _read_events(post: Post) -> Posted:
    events = read_document(post.body)
    if not isinstance(events, list):
        raise BrokenPost(
            "The body is not a list of events. Set the URL under Event Webhook or Inbound Parse."
        )
    return Posted(reports=reports_of(*events[:1000]))


def require_signed(post: Post, public_key: str) -> None:
    """Verify ECDSA over time and body, by the key shown on the webhook's page."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    timestamp = post.headers.get(TIMESTAMP, "")
    require_recent(timestamp, post.now, WINDOW_SECONDS)
    try:
        key = load_der_public_key(base64.b64decode(public_key))
        signature = base64.b64decode(post.headers.get(SIGNATURE, ""), validate=True)
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise ForgedPost("signingKey is not a SendGrid key. Copy the verification key, in base64.")
        key.verify(signature, timestamp.encode() + post.body, ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, binascii.Error, ValueError):
        raise ForgedPost("The signature of the post is wrong. Compare signingKey with SendGrid's.") from None
