"""Amazon SES through SNS: mail, bounces and complaints, signed with a certificate, after a handshake."""

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from postroom.clock import SECOND
from postroom.external_mailboxes.providers.post import (
    BrokenPost,
    ForgedPost,
    Post,
    Posted,
    PostedMail,
    read_object,
    read_unproven,
    reports_of,
    text_of,
    texts_of,
)

WINDOW_SECONDS = 24 * 3600
NOTIFICATION = "Notification"
OF_NOTICE = ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type")
OF_HANDSHAKE = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
_HOST = re.compile(r"([a-z0-9-]+\.)+amazonaws\.com(\.cn)?")


def read_ses(post: Post, certificate: bytes) -> Posted:
    """Read a post. `certificate` is the PEM that it names, or the pinned one."""
    document = read_unproven(post.body)
    require_signed(document, certificate, post.now)
    post_id, topic = text_of(document, "MessageId"), text_of(document, "TopicArn")
    match text_of(document, "Type"):
        case "SubscriptionConfirmation":
            return Posted(post_id, confirm=require_amazon(text_of(document, "SubscribeURL")), topic=topic)
        case "Notification":
            return _read_notice(post_id, topic, read_object(text_of(document, "Message"), "The message"))
    return Posted(post_id, topic=topic)


def _read_notice(post_id: str, topic: str, notice: dict[str, Any]) -> Posted:
    if text_of(notice, "notificationType") != "Received":
        return Posted(post_id, reports=reports_of(notice), topic=topic)
    if not text_of(notice, "content"):
        raise BrokenPost(
            "The notice has no email in it. Add an SNS action, encoded as Base64, to the receipt rule."
        )
    mail, receipt = _fields(notice, "mail"), _fields(notice, "receipt")
    recipients = texts_of(receipt, "recipients") or texts_of(mail, "destination")
    raw = _content(notice, _fields(receipt, "action"))
    return Posted(post_id, PostedMail(raw, recipients, text_of(mail, "source")), topic=topic)


def _content(notice: dict[str, Any], action: dict[str, Any]) -> bytes:
    content = text_of(notice, "content")
    if text_of(action, "encoding").upper() != "BASE64":
        return content.encode("utf-8", "surrogateescape")
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise BrokenPost(
            "The email in the notice is not base64. Choose the encoding Base64 at the SNS action."
        ) from None


def _fields(document: dict[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def certificate_url(post: Post) -> str:
    return require_amazon(text_of(read_unproven(post.body), "SigningCertURL"))


def require_amazon(url: str) -> str:
    """Require an address of Amazon: another host could sign for it."""
    try:
        parts = urlsplit(url)
        is_amazon = parts.scheme == "https" and parts.port in (None, 443) and not parts.username
    except ValueError:
        is_amazon = False
    if not is_amazon or not _HOST.fullmatch(parts.hostname or ""):
        raise ForgedPost("The post has a URL that is not at amazonaws.com. Only Amazon SNS may post here.")
    return url


def require_signed(document: dict[str, Any], certificate: bytes, now: int) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa
    from cryptography.x509 import load_pem_x509_certificate

    digests = {"1": hashes.SHA1(), "2": hashes.SHA256()}  # noqa: S303 (version 1 is what SNS sends unless told)
    digest = digests.get(text_of(document, "SignatureVersion"))
    if digest is None:
        raise ForgedPost("The post has no SignatureVersion 1 or 2. Subscribe the URL to an SNS topic.")
    try:
        key = load_pem_x509_certificate(certificate).public_key()
        signature = base64.b64decode(text_of(document, "Signature"), validate=True)
        if not isinstance(key, rsa.RSAPublicKey):
            raise ForgedPost("The certificate is not from Amazon SNS. Subscribe the URL to an SNS topic.")
        key.verify(signature, signed_text(document).encode(), padding.PKCS1v15(), digest)
    except (InvalidSignature, binascii.Error, ValueError):
        raise ForgedPost(
            "The signature of the post is wrong. If signingKey pins a certificate, is it that of SNS?"
        ) from None
    _require_recent(text_of(document, "Timestamp"), now)


def signed_text(document: dict[str, Any]) -> str:
    """Names and values, one per line, ordered by name."""
    names = OF_NOTICE if text_of(document, "Type") == NOTIFICATION else OF_HANDSHAKE
    return "".join(f"{name}\n{document[name]}\n" for name in names if isinstance(document.get(name), str))


def _require_recent(timestamp: str, now: int) -> None:
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        raise ForgedPost("The post has no time. Subscribe the URL to an SNS topic.") from None
    written = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if abs(now / SECOND - written.timestamp()) > WINDOW_SECONDS:
        raise ForgedPost("The post is too old. Is the clock of this server right?")
