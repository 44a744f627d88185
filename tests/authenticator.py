"""A device that holds passkeys: WebAuthn as a phone or a security key does it, in software."""

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

PRESENT, VERIFIED, HAS_CREDENTIAL = 0x01, 0x04, 0x40


@dataclass
class Credential:
    id: bytes
    rp_id: str
    user_handle: str
    key: ec.EllipticCurvePrivateKey
    count: int = 0


@dataclass
class Authenticator:
    """`origin` is the page that the browser has open; a lying one names another."""

    origin: str
    counts: bool = True  # phones that share their passkeys do not
    verifies: bool = True  # asks for a finger or a number
    held: list[Credential] = field(default_factory=list)

    def create(self, options: dict[str, Any]) -> str:
        assert options["attestation"] == "none"
        assert -7 in [each["alg"] for each in options["pubKeyCredParams"]]
        made = Credential(
            secrets.token_bytes(16),
            options["rp"]["id"],
            options["user"]["id"],
            ec.generate_private_key(ec.SECP256R1()),
        )
        self.held.append(made)
        return self.created_again(options)

    def created_again(self, options: dict[str, Any]) -> str:
        """The credential that is held last, for another page's question."""
        made = self.held[-1]
        client = self._client_data("webauthn.create", options["challenge"])
        raw = self._data(made, HAS_CREDENTIAL) + attested(made)
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": raw})
        return written(made, clientDataJSON=client, attestationObject=attestation)

    def get(self, options: dict[str, Any], **changed: str) -> str:
        used = self.held[-1]
        used.count += self.counts
        client = self._client_data("webauthn.get", changed.pop("challenge", options["challenge"]))
        raw = self._data(used, 0)
        signature = used.key.sign(raw + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        handle = from_text(changed.pop("user_handle", used.user_handle))
        assert not changed
        return written(
            used, clientDataJSON=client, authenticatorData=raw, signature=signature, userHandle=handle
        )

    def _client_data(self, kind: str, challenge: str) -> bytes:
        said = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        return json.dumps(said).encode()

    def _data(self, credential: Credential, flags: int) -> bytes:
        flags |= PRESENT | (VERIFIED if self.verifies else 0)
        rp_hash = hashlib.sha256(credential.rp_id.encode()).digest()
        return rp_hash + bytes([flags]) + credential.count.to_bytes(4, "big")


def attested(credential: Credential) -> bytes:
    numbers = credential.key.public_key().public_numbers()
    cose = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
    return bytes(16) + len(credential.id).to_bytes(2, "big") + credential.id + cbor2.dumps(cose)


def written(credential: Credential, **parts: bytes) -> str:
    """As the script of the page writes it."""
    name = to_text(credential.id)
    response = {part: to_text(raw) for part, raw in parts.items()}
    return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})


def to_text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def from_text(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
