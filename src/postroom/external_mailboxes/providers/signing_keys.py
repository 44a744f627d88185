"""Whether a signing key has the format of its service."""

import base64

WANTED = {
    "sendgrid": "the public key that the page of the webhook shows, in base64",
    "resend": "the signing secret of the webhook, which begins with whsec_",
    "ses": "a certificate of Amazon SNS in PEM",
}


def is_usable(provider: str, key: str) -> bool:
    """Return whether a key is usable. Only Amazon's has a form; others take any text."""
    try:
        match provider:
            case "sendgrid":
                return _is_elliptic(base64.b64decode(key, validate=True))
            case "resend":
                return key.startswith("whsec_") and bool(base64.b64decode(key[6:], validate=True))
            case "ses":
                return _is_certificate(key.encode())
    except ValueError:
        return False
    return True


def _is_elliptic(der: bytes) -> bool:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    return isinstance(load_der_public_key(der), ec.EllipticCurvePublicKey)


def _is_certificate(pem: bytes) -> bool:
    from cryptography.x509 import load_pem_x509_certificate

    return load_pem_x509_certificate(pem) is not None
