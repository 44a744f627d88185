"""What each mail service posts, built after its documentation, and signed as it signs."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from postroom.external_mailboxes.providers.post import Post
from postroom.external_mailboxes.providers.ses import signed_text
from tests.doubles import START

MAIL = (
    b"From: Ada <ada@example.com>\r\nTo: hello@postroom.localhost\r\nSubject: By HTTP\r\n"
    b"Message-ID: <by-http@example.com>\r\n\r\nGr\xfc\xdfe from outside\r\n"
)
RECIPIENT = "hello@postroom.localhost"
SENDER = "bounces@example.com"
SECONDS = START // 1000
BOUNDARY = "xYzZY"
RESEND_SECRET = "whsec_" + base64.b64encode(b"resend's own secret").decode()
CERTIFICATE_URL = "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-abc.pem"
SUBSCRIBE_URL = "https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&Token=abc"
TOPIC = "arn:aws:sns:eu-central-1:123456789012:mail"


def form_post(fields: dict[str, bytes], headers: dict[str, str] | None = None) -> Post:
    """A form with a field for each value, and one file beside them."""
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value
        for name, value in fields.items()
    ]
    file = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="email"; filename="email"\r\n\r\nno'.encode()
    )
    body = b"\r\n".join([file, *parts, f"--{BOUNDARY}--\r\n".encode()])
    return Post(
        {"content-type": f"multipart/form-data; boundary={BOUNDARY}"} | (headers or {}), {}, body, START
    )


def json_post(document: object, headers: dict[str, str] | None = None) -> Post:
    body = json.dumps(document).encode()
    return Post({"content-type": "application/json"} | (headers or {}), {}, body, START)


def hex_hmac(key: str, signed: bytes) -> str:
    return hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()


def raw(key: str = "", body: bytes = MAIL, seconds: int = SECONDS, recipient: str = RECIPIENT) -> Post:
    headers = {"content-type": "message/rfc822", "x-envelope-to": recipient, "x-envelope-from": SENDER}
    signed = f"{seconds}.{SENDER}.{recipient}.".encode() + body
    signature = {"x-signature": f"t={seconds},v1={hex_hmac(key, signed)}"} if key else {}
    return Post(headers | signature, {}, body, START)


def mailgun(
    key: str = "",
    body: bytes = MAIL,
    seconds: int = SECONDS,
    token: str = "a" * 50,
    recipient: str = RECIPIENT,
) -> Post:
    """documentation.mailgun.com: Receiving Messages via HTTP through a forward() action, raw MIME."""
    fields = {
        "recipient": recipient.encode(),
        "sender": SENDER.encode(),
        "subject": b"By HTTP",
        "body-mime": body,
        "timestamp": str(seconds).encode(),
        "token": token.encode(),
        "signature": hex_hmac(key, f"{seconds}{token}".encode()).encode(),
    }
    return form_post(fields)


def mailgun_event(
    event: dict[str, Any], key: str = "", seconds: int = SECONDS, token: str = "b" * 50
) -> Post:
    """documentation.mailgun.com: Webhooks, their payload and how it is secured."""
    signature = hex_hmac(key, f"{seconds}{token}".encode())
    signed = {"timestamp": str(seconds), "token": token, "signature": signature}
    return json_post({"signature": signed, "event-data": event})


@cache
def sendgrid_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def sendgrid_public_key() -> str:
    return base64.b64encode(
        sendgrid_key().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    ).decode()


def sign_for_sendgrid(post: Post, seconds: int = SECONDS) -> Post:
    """twilio.com/docs/sendgrid: Securing your Inbound Parse Webhooks."""
    signature = sendgrid_key().sign(str(seconds).encode() + post.body, ec.ECDSA(hashes.SHA256()))
    headers = {
        "x-twilio-email-event-webhook-signature": base64.b64encode(signature).decode(),
        "x-twilio-email-event-webhook-timestamp": str(seconds),
    }
    return Post(post.headers | headers, post.query, post.body, post.now)


def sendgrid(body: bytes = MAIL, recipient: str = RECIPIENT) -> Post:
    """twilio.com/docs/sendgrid: Inbound Email Parse Webhook, with the raw, full MIME message."""
    envelope = json.dumps({"to": [recipient], "from": SENDER}).encode()
    return form_post({"email": body, "envelope": envelope, "sender_ip": b"198.51.100.7", "charsets": b"{}"})


def sendgrid_events(*events: dict[str, Any]) -> Post:
    """twilio.com/docs/sendgrid: Event Webhook reference."""
    return json_post([{"sg_event_id": f"e{number}", **event} for number, event in enumerate(events)])


def postmark(
    body: bytes = MAIL,
    recipient: str = RECIPIENT,
    password: str = "",
    post_id: str = "73e6d360-66eb-11e1-8e72-a8904824019b",
) -> Post:
    """postmarkapp.com/developer/webhooks/inbound-webhook."""
    document = {
        "FromName": "Ada",
        "From": "ada@example.com",
        "To": recipient,
        "OriginalRecipient": recipient,
        "Subject": "By HTTP",
        "MessageID": post_id,
        "TextBody": "from outside",
        "RawEmail": body.decode("utf-8", "replace"),
    }
    authorization = "Basic " + base64.b64encode(f"postroom:{password}".encode()).decode()
    return json_post(document, {"authorization": authorization} if password else None)


def postmark_report(kind: str, address: str, details: str) -> Post:
    """postmarkapp.com/developer/webhooks/bounce-webhook and …/spam-complaint-webhook."""
    return json_post({"RecordType": kind, "Email": address, "Details": details, "MessageID": "b7bc2f4a"})


@cache
def sns_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def sns_certificate() -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    begins = datetime.fromtimestamp(SECONDS, UTC) - timedelta(days=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(sns_key().public_key())
        .serial_number(1)
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=365))
        .sign(sns_key(), hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM)


def sns(message: object, kind: str = "Notification", seconds: int = SECONDS, **changes: str) -> Post:
    """docs.aws.amazon.com/sns: Verifying the signatures of Amazon SNS messages; HTTP message formats."""
    document = {
        "Type": kind,
        "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "TopicArn": TOPIC,
        "Message": message if isinstance(message, str) else json.dumps(message),
        "Timestamp": datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z"),
        "SignatureVersion": "2",
        "SigningCertURL": CERTIFICATE_URL,
    } | changes
    if kind != "Notification":
        document |= {"SubscribeURL": SUBSCRIBE_URL, "Token": "2336412f37"}
    digest = hashes.SHA256() if document["SignatureVersion"] == "2" else hashes.SHA1()
    signature = sns_key().sign(signed_text(document).encode(), padding.PKCS1v15(), digest)
    return json_post(document | {"Signature": base64.b64encode(signature).decode()})


def ses_received(body: bytes = MAIL, recipient: str = RECIPIENT) -> dict[str, Any]:
    """docs.aws.amazon.com/ses: Contents of notifications for Amazon SES email receiving, SNS action."""
    return {
        "notificationType": "Received",
        "receipt": {"recipients": [recipient], "action": {"type": "SNS", "encoding": "BASE64"}},
        "mail": {"source": SENDER, "messageId": "d6iitobk75ur44p8kdnnp7g2n800", "destination": [recipient]},
        "content": base64.b64encode(body).decode(),
    }


def ses_bounce(address: str, message_id: str) -> dict[str, Any]:
    """docs.aws.amazon.com/ses: Amazon SNS notification contents for Amazon SES."""
    return {
        "notificationType": "Bounce",
        "bounce": {
            "bounceType": "Permanent",
            "bounceSubType": "General",
            "bouncedRecipients": [
                {"emailAddress": address, "status": "5.1.1", "diagnosticCode": "smtp; 550 5.1.1 user unknown"}
            ],
        },
        "mail": {"headers": [{"name": "Message-ID", "value": message_id}]},
    }


def resend(event: dict[str, Any], secret: str = "", seconds: int = SECONDS, post_id: str = "msg_1") -> Post:
    """resend.com/docs: Verify Webhooks Requests; the events email.received and email.bounced."""
    post = json_post(event, {"svix-id": post_id, "svix-timestamp": str(seconds)})
    if not secret:
        return post
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = hmac.digest(key, f"{post_id}.{seconds}.".encode() + post.body, hashlib.sha256)
    signature = f"v1,bm90IHRoaXM= v1,{base64.b64encode(signed).decode()}"
    return Post(post.headers | {"svix-signature": signature}, {}, post.body, post.now)


def resend_received(email_id: str) -> dict[str, Any]:
    data = {"email_id": email_id, "from": "ada@example.com", "to": [RECIPIENT], "subject": "By HTTP"}
    return {"type": "email.received", "created_at": "2026-11-14T10:00:00.000Z", "data": data}
