"""Who signed a PDF according to the file. Nothing is verified here, and the text says so."""

import ctypes
import re
from collections.abc import Callable, Iterator
from typing import Any

MAX_SIGNATURES = 20
MAX_SIGNATURE_BYTES = 200_000

_TIME = re.compile(rb"D:([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})")


def signature_lines(pdfium: Any, document: Any) -> Iterator[str]:
    for number in range(min(pdfium.FPDF_GetSignatureCount(document), MAX_SIGNATURES)):
        signature = pdfium.FPDF_GetSignatureObject(document, number)
        contents = _bytes(pdfium.FPDFSignatureObj_GetContents, signature) if signature else b""
        # A field that waits for its signature has none.
        if contents:
            yield _line(pdfium, signature, contents)


def _line(pdfium: Any, signature: Any, contents: bytes) -> str:
    name = _signer(contents)
    at = _time(_bytes(pdfium.FPDFSignatureObj_GetTime, signature))
    reason = _bytes(pdfium.FPDFSignatureObj_GetReason, signature).decode("utf-16-le", "replace").strip("\0 ")
    parts = [part for part in (name, at, reason and f"reason: {' '.join(reason.split())}") if part]
    return f"Signature (not verified): {', '.join(parts) or 'of nobody named'}\n"


def _bytes(ask: Callable[[Any, Any, int], int], signature: Any) -> bytes:
    size = ask(signature, None, 0)
    if not 0 < size <= MAX_SIGNATURE_BYTES:
        return b""
    buffer = ctypes.create_string_buffer(size)
    return buffer.raw if ask(signature, buffer, size) == size else b""


def _time(stamp: bytes) -> str:
    found = _TIME.match(stamp)
    return "{}-{}-{} {}:{}".format(*(part.decode() for part in found.groups())) if found else ""


def _signer(contents: bytes) -> str:
    """Return the name in the certificate that issued none of the others."""
    from cryptography.hazmat.primitives.serialization.pkcs7 import load_der_pkcs7_certificates
    from cryptography.x509.oid import NameOID

    try:
        found = load_der_pkcs7_certificates(_without_padding(contents))
        issuers = {each.issuer for each in found if each.issuer != each.subject}
        last = [each for each in found if each.subject not in issuers]
        names = [
            name for each in last[:1] for name in each.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        ]
    except Exception:
        # Anything but a certificate names nobody.
        return ""
    return " ".join(str(names[0].value).split())[:200] if names else ""


def _without_padding(contents: bytes) -> bytes:
    """Return only the DER value: its room is reserved before its length is known."""
    if len(contents) < 2 or contents[1] <= 0x80:
        return contents[: 2 + contents[1]] if len(contents) >= 2 else b""
    octets = contents[1] & 0x7F
    return contents[: 2 + octets + int.from_bytes(contents[2 : 2 + octets])]
