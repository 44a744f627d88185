"""Signed and encrypted emails: written with header fields of ours around the bytes that the signature covers.

Composing such an email again would break its signature, or is impossible (RFC 1847, RFC 8551).
"""

import re

from postroom_mail.mime import headers
from postroom_mail.mime.headers import Headers
from postroom_mail.writing import compose
from postroom_mail.writing.compose import Draft
from postroom_mail.writing.header_words import DraftError

SIGNED, ENCRYPTED = "signed", "encrypted"
KINDS = {
    "multipart/signed": SIGNED,
    "multipart/encrypted": ENCRYPTED,
    "application/pkcs7-mime": ENCRYPTED,  # or signed, but in no form that we read
    "application/x-pkcs7-mime": ENCRYPTED,
}
PARAMETERS = ("protocol", "micalg", "smime-type", "boundary")
ENCODINGS = frozenset(("7bit", "8bit", "base64", "quoted-printable"))
FILE = 'Content-Disposition: attachment; filename="smime.p7m"\r\n'
_VALUE = re.compile(r"[ !#-\[\]-~]{1,200}")


def kind_of(fields: Headers) -> str:
    """Return SIGNED or ENCRYPTED, "" for any other email and for one that is redirected as it came."""
    if fields.count("resent-message-id"):
        return ""
    return KINDS.get(_type_of(fields), "")


def write(draft: Draft, fields: Headers, body: bytes) -> bytes:
    """Write each parameter of Content-Type once: readers differ about a second boundary."""
    kind = _type_of(fields)
    given = headers.parameters(fields.text("content-type"))
    kept = [f'{name}="{_value(given[name])}"' for name in PARAMETERS if name in given]
    written = ";\r\n ".join([f"Content-Type: {kind}", *kept]) + "\r\n"
    encoding = fields.text("content-transfer-encoding").lower()
    if encoding:
        if encoding not in ENCODINGS:
            raise DraftError("content-transfer-encoding", "unknown encoding")
        written += f"Content-Transfer-Encoding: {encoding}\r\n"
    if not kind.startswith("multipart/"):
        written += FILE
    return b"".join((compose.message_header(draft), written.encode(), b"\r\n", body))


def _type_of(fields: Headers) -> str:
    return fields.text("content-type").partition(";")[0].strip().lower()


def _value(given: str) -> str:
    if not _VALUE.fullmatch(given):
        raise DraftError("content-type", "unreadable parameter")
    return given
