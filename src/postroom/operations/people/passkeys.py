"""Passkeys: a user adds, names and removes them, and signs in with one (WebAuthn level 2)."""

import base64
import re
import secrets
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from postroom.accounts import audit
from postroom.accounts.keys import Caller
from postroom.accounts.people import challenges, passkeys, users
from postroom.accounts.people.passkeys import Passkey
from postroom.accounts.people.users import User
from postroom.config import Config
from postroom.errors import ApiError, BadRequest, Forbidden, Unauthorized
from postroom.outward.notices import system_emails
from postroom.storage.database import Tx

ALGORITHMS = (-7, -8, -257)  # ES256, EdDSA, RS256: what every platform has (RFC 9053, RFC 8812)
WAIT_MILLISECONDS = 300_000
CREDENTIAL_CHARACTERS = 5_000
REFUSED = "This passkey was not accepted."

_CREDENTIAL_ID = re.compile(r"[A-Za-z0-9_-]{1,1400}")  # 1,023 bytes (WebAuthn section 4)


class RelyingParty(NamedTuple):
    """The site of a passkey, which works only on the pages of this host."""

    id: str
    origin: str


class _Response(Struct, rename="camel", frozen=True):
    client_data_json: str = msgspec.field(name="clientDataJSON")
    user_handle: str | None = None


class _Credential(Struct, frozen=True):
    id: str
    response: _Response


class _ClientData(Struct, frozen=True):
    challenge: str


class Answer(NamedTuple):
    """The browser's answer, not verified yet."""

    credential: str
    credential_id: str
    challenge: str
    user_handle: str


class NewPasskey(NamedTuple):
    """The verified data of a passkey to add."""

    credential_id: str
    public_key: bytes
    sign_count: int


class ShownPasskey(Struct, frozen=True):
    """What the audit log stores of a passkey."""

    name: str


def relying_party(config: Config) -> RelyingParty | None:
    """Return the relying party, or None where browsers allow no passkeys: no TLS, or an IP address."""
    parts = urlsplit(config.base_url)
    host = parts.hostname or ""
    is_local = host == "localhost" or host.endswith(".localhost")
    if is_address(host) or (parts.scheme != "https" and not is_local):
        return None
    return RelyingParty(host, f"{parts.scheme}://{parts.netloc}")


def is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def require_party(config: Config) -> RelyingParty:
    party = relying_party(config)
    if party is None:
        raise BadRequest("Passkeys need a POSTROOM_BASE_URL with https and a host name.")
    return party


def require_user(tx: Tx, caller: Caller) -> User:
    user = users.find(tx, caller.user_id) if caller.user_id is not None else None
    if user is None:
        raise Forbidden("Only users have passkeys: sign in as one, by email or with a link for a user.")
    return user


# --- adding


def offer_adding(tx: Tx, caller: Caller, config: Config, now: int) -> dict[str, Any]:
    """Return the options for the browser's `navigator.credentials.create`."""
    party, user = require_party(config), require_user(tx, caller)
    challenge = new_challenge()
    challenges.add(tx, challenges.ADD_PASSKEY, challenge, caller.session_id or "", now)
    known = passkeys.list_of_user(tx, user.id)
    return {
        "challenge": challenge,
        "rp": {"id": party.id, "name": "Postroom"},
        "user": {
            "id": to_base64(user.id.encode()),
            "name": user.email,
            "displayName": user.name or user.email,
        },
        "pubKeyCredParams": [{"type": "public-key", "alg": number} for number in ALGORITHMS],
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": True,
            "userVerification": "required",
        },
        "excludeCredentials": [{"type": "public-key", "id": each.credential_id} for each in known],
        "attestation": "none",
        "timeout": WAIT_MILLISECONDS,
    }


def take_adding(tx: Tx, caller: Caller, answer: Answer, now: int) -> None:
    """Take a challenge that was offered to this session, or raise."""
    challenges.take(tx, challenges.ADD_PASSKEY, answer.challenge, caller.session_id or "", now)


def verify_new(answer: Answer, party: RelyingParty) -> NewPasskey:
    """Call it in a thread: it takes a while, and loads the library at first use."""
    from webauthn import verify_registration_response
    from webauthn.helpers.cose import COSEAlgorithmIdentifier

    try:
        found = verify_registration_response(
            credential=answer.credential,
            expected_challenge=from_base64(answer.challenge),
            expected_rp_id=party.id,
            expected_origin=party.origin,
            require_user_verification=True,
            supported_pub_key_algs=[COSEAlgorithmIdentifier(number) for number in ALGORITHMS],
        )
    except Exception as error:  # whatever its parsers make of bytes from outside
        raise refusal(error) from None
    return NewPasskey(to_base64(found.credential_id), found.credential_public_key, found.sign_count)


def add_passkey(tx: Tx, caller: Caller, new: NewPasskey, name: str, now: int) -> Passkey:
    """Add a passkey and notify the person by email: somebody else may have used an open session."""
    user = require_user(tx, caller)
    added = passkeys.add(tx, user, new.credential_id, new.public_key, new.sign_count, name, now)
    audit.record_by(tx, caller, "passkey.added", added.id, now, after=ShownPasskey(added.name))
    text = (
        f"The passkey “{added.name}” was added for {user.email}, and signs in from now on.\n\n"
        "If that was not you, remove it on Settings, Passkeys, and end the sessions that are not yours.\n"
    )
    system_emails.add(tx, user.account_id, user.id, user.email, "A passkey was added", text, now)
    return added


def list_passkeys(tx: Tx, caller: Caller) -> list[Passkey]:
    return [] if caller.user_id is None else passkeys.list_of_user(tx, caller.user_id)


def rename_passkey(tx: Tx, caller: Caller, passkey_id: str, name: str, now: int) -> None:
    passkey = passkeys.get(tx, require_user(tx, caller).id, passkey_id)
    passkeys.rename(tx, passkey, name)
    before, after = ShownPasskey(passkey.name), ShownPasskey(name.strip() or passkeys.DEFAULT_NAME)
    audit.record_by(tx, caller, "passkey.renamed", passkey.id, now, before=before, after=after)


def remove_passkey(tx: Tx, caller: Caller, passkey_id: str, now: int) -> None:
    passkey = passkeys.get(tx, require_user(tx, caller).id, passkey_id)
    passkeys.remove(tx, passkey)
    audit.record_by(tx, caller, "passkey.removed", passkey.id, now, before=ShownPasskey(passkey.name))


# --- signing in


def offer_sign_in(tx: Tx, browser: str, config: Config, now: int) -> dict[str, Any]:
    """Return the options for `navigator.credentials.get`. They do not reveal who is a user."""
    party, challenge = require_party(config), new_challenge()
    challenges.add(tx, challenges.USE_PASSKEY, challenge, browser, now)
    return {
        "challenge": challenge,
        "rpId": party.id,
        "allowCredentials": [],
        "userVerification": "required",
        "timeout": WAIT_MILLISECONDS,
    }


def take_sign_in(tx: Tx, answer: Answer, browser: str, now: int) -> None:
    challenges.take(tx, challenges.USE_PASSKEY, answer.challenge, browser, now)


def find_passkey(tx: Tx, answer: Answer) -> Passkey:
    """Return the passkey that the device names. The user it names must own it."""
    passkey = passkeys.find_by_credential(tx, answer.credential_id)
    if passkey is None:
        raise Unauthorized("This passkey is unknown here. It may have been removed.")
    if answer.user_handle != to_base64(passkey.user_id.encode()):
        raise Unauthorized(REFUSED)
    return passkey


def verify_use(answer: Answer, passkey: Passkey, party: RelyingParty) -> int:
    """Return the device's signature count, or raise. Call it in a thread."""
    from webauthn import verify_authentication_response

    try:
        found = verify_authentication_response(
            credential=answer.credential,
            expected_challenge=from_base64(answer.challenge),
            expected_rp_id=party.id,
            expected_origin=party.origin,
            credential_public_key=passkey.public_key,
            credential_current_sign_count=passkey.sign_count,
            require_user_verification=True,
        )
    except Exception as error:  # whatever its parsers make of bytes from outside
        raise refusal(error) from None
    return int(found.new_sign_count)


def use_passkey(tx: Tx, passkey: Passkey, sign_count: int, now: int) -> User:
    passkeys.mark_used(tx, passkey, sign_count, now)
    user = users.find(tx, passkey.user_id)
    if user is None:
        raise Unauthorized("The user of this passkey was removed.")
    return user


# --- reading


def read_answer(credential: str) -> Answer:
    """Read what is needed to find the challenge and the passkey; the library parses and verifies the rest."""
    if len(credential) > CREDENTIAL_CHARACTERS:
        raise Unauthorized(REFUSED)
    try:
        read = msgspec.json.decode(credential, type=_Credential)
        client = msgspec.json.decode(from_base64(read.response.client_data_json), type=_ClientData)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise Unauthorized(REFUSED) from None
    if not _CREDENTIAL_ID.fullmatch(read.id):
        raise Unauthorized(REFUSED)
    return Answer(credential, read.id, client.challenge, read.response.user_handle or "")


def refusal(error: Exception) -> ApiError:
    """Return the error with the library's reason, which contains nothing that the browser does not know."""
    from webauthn.helpers.exceptions import WebAuthnException

    why = f" {str(error)[:200]}." if isinstance(error, WebAuthnException) else ""
    return Unauthorized(f"{REFUSED}{why}")


def new_challenge() -> str:
    return secrets.token_urlsafe(32)


def to_base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def from_base64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
