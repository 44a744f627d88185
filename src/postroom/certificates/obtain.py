"""One certificate from order to storage."""

import asyncio
import datetime
import hashlib
import ssl
import tempfile
from collections.abc import Awaitable, Callable

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec import Struct

from postroom import log
from postroom.accounts import accounts
from postroom.accounts.scope import default_pod
from postroom.certificates import acme, certificates
from postroom.certificates.acme import AcmeError
from postroom.certificates.certificates import AcmeAccount, OpenChallenge, StoredCertificate
from postroom.clock import HOUR, MINUTE, SECOND
from postroom.errors import is_passing
from postroom.events import kinds
from postroom.events.announce import announce_notice
from postroom.events.notice_subjects import EventCertificate
from postroom.events.payload import SystemNotice
from postroom.resources import Resources, Tx

DEADLINE_SECONDS = 120.0
CLOCK_SKEW = HOUR  # of this machine; authorities date certificates back by as much
SHORTEST_PAUSE = 5 * MINUTE  # between two orders: an authority may issue what ends at once
UNREADABLE = (
    ValueError,
    OverflowError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.UnsupportedGeneralNameType,
)
STAGGER_PERCENT = 3  # of the lifetime: certificates of one day are not all renewed on one day


PublishChallenge = Callable[
    [OpenChallenge], Awaitable[None]
]  # so that the authority can see it, at every node


class IssuedCertificate(Struct, frozen=True):
    chain: str
    key: str
    expires_at: int
    due_at: int


async def obtain(
    resources: Resources,
    courier: acme.AuthorityFetcher,
    wanted: StoredCertificate,
    challenge_type: str,
    publish: PublishChallenge,
) -> bool:
    """Orders a certificate and stores it, or the reason why there is none. Returns True if it was issued."""
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            issued = await _order(resources, courier, wanted, challenge_type, publish)
    except TimeoutError:
        await _fail(resources, wanted, AcmeError(f"No certificate came within {DEADLINE_SECONDS:.0f} s."))
    except AcmeError as error:
        await _fail(resources, wanted, error)
    except Exception as error:
        if is_passing(error):
            raise
        log.get().exception("an order of a certificate broke off", name=wanted.name)
        reason = "The order broke off: the authority's answer was not foreseen. The log says more."
        await _fail(resources, wanted, AcmeError(reason))
    else:
        await resources.db.write(_store, wanted, issued, resources.now())
        log.get().info("a certificate was issued", name=wanted.name, names=len(wanted.names))
        return True
    finally:
        await resources.db.write(certificates.remove_challenges, wanted.names)
    return False


async def _order(
    resources: Resources,
    courier: acme.AuthorityFetcher,
    wanted: StoredCertificate,
    challenge_type: str,
    publish: PublishChallenge,
) -> IssuedCertificate:
    async def show(token: str, name: str, key_authorization: str) -> None:
        await publish(OpenChallenge(token, name, challenge_type, key_authorization))

    key = ec.generate_private_key(ec.SECP256R1())
    try:
        account = await _open_account(resources, courier)
        chain = await account.obtain(wanted.names, key, challenge_type, show)
    except AcmeError as error:
        if error.kind != acme.NO_ACCOUNT:  # the authority has forgotten it (RFC 8555 section 6.7)
            raise
        account = await _open_account(resources, courier, is_forgotten=True)
        chain = await account.obtain(wanted.names, key, challenge_type, show)
    return check(chain, wanted.names, key, resources.now())


async def _open_account(
    resources: Resources, courier: acme.AuthorityFetcher, *, is_forgotten: bool = False
) -> acme.AcmeClient:
    """Open the account. Its key is stored before it is registered: a lost answer makes no second account."""
    directory = resources.config.acme
    stored = await resources.db.read(certificates.find_account, directory)
    if stored is None:
        stored = AcmeAccount(directory, to_pem(ec.generate_private_key(ec.SECP256R1())), "")
        await resources.db.write(certificates.save_account, stored, resources.now())
    key = serialization.load_pem_private_key(stored.key.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    account = acme.AcmeClient(courier, directory, key, "" if is_forgotten else stored.url)
    if not account.url:
        await account.register(resources.config.acme_email)
        registered = AcmeAccount(directory, stored.key, account.url)
        await resources.db.write(certificates.save_account, registered, resources.now())
    return account


def check(
    chain: bytes, names: tuple[str, ...], key: ec.EllipticCurvePrivateKey, now: int
) -> IssuedCertificate:
    """Refuses a certificate that clients would refuse: for other names, of another key, or out of date."""
    try:
        leaf, *_ = x509.load_pem_x509_certificates(chain)
        found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        known = {name.lower() for name in found.get_values_for_type(x509.DNSName)}
        leaf_key = leaf.public_key()
        starts_at, ends_at = _milliseconds(leaf.not_valid_before_utc), _milliseconds(leaf.not_valid_after_utc)
    except UNREADABLE as error:
        raise AcmeError("The authority's certificate cannot be read.") from error
    if leaf_key != key.public_key():
        raise AcmeError("The authority's certificate is for another key.")
    if missing := set(names) - known:
        raise AcmeError(f"The authority's certificate lacks {', '.join(sorted(missing))}.")
    if not starts_at - CLOCK_SKEW <= now < ends_at:
        valid = f"from {leaf.not_valid_before_utc:%Y-%m-%d} to {leaf.not_valid_after_utc:%Y-%m-%d}"
        raise AcmeError(f"The authority's certificate is valid {valid}. Check this machine's clock.")
    _require_usable(chain, key)
    due_at = max(renewal_time(names[0], starts_at, ends_at), now + SHORTEST_PAUSE)
    return IssuedCertificate(chain.decode("ascii"), to_pem(key), ends_at, due_at)


def _require_usable(chain: bytes, key: ec.EllipticCurvePrivateKey) -> None:
    """Load the chain as the listeners do, which refuse weak or unreadable ones."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(to_pem(key).encode() + chain)
        file.flush()
        try:
            chain.decode("ascii")
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file.name)
        except (ssl.SSLError, ValueError) as error:
            raise AcmeError("The authority's certificate cannot be used.") from error


def renewal_time(name: str, starts_at: int, ends_at: int) -> int:
    """Return when a third of the lifetime is left, or up to 3 % of it earlier, by the name."""
    lifetime = ends_at - starts_at
    share = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) / 2**32
    return ends_at - lifetime // 3 - int(share * lifetime * STAGGER_PERCENT / 100)


def to_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


async def _fail(resources: Resources, wanted: StoredCertificate, error: AcmeError) -> None:
    now = resources.now()
    retry_at = None if error.retry_after is None else now + error.retry_after * SECOND
    await resources.db.write(_store_failure, wanted, error.reason, retry_at, now)
    log.get().error("no certificate was issued", name=wanted.name, reason=error.reason)


def _store(tx: Tx, wanted: StoredCertificate, issued: IssuedCertificate, now: int) -> None:
    certificates.record_issued(
        tx, wanted.name, issued.chain, issued.key, issued.expires_at, issued.due_at, now
    )
    _announce(tx, kinds.CERTIFICATE_ISSUED, wanted.name, issued.expires_at, None, now)


def _store_failure(tx: Tx, wanted: StoredCertificate, error: str, retry_at: int | None, now: int) -> None:
    """Store a failure. A row of failures makes one event, at the first since a success."""
    certificates.record_failure(tx, wanted, error, retry_at, now)
    if wanted.failures == 0:
        _announce(tx, kinds.CERTIFICATE_FAILED, wanted.name, wanted.expires_at, error, now)


def _announce(tx: Tx, kind: str, name: str, expires_at: int | None, error: str | None, now: int) -> None:
    """Announce it to the server's first account only: its owner runs the server."""
    first = accounts.find_first(tx)
    if first is None:
        return
    about = EventCertificate.of(name, expires_at, error)
    announce_notice(tx, SystemNotice(first.id, default_pod(first.id), kind, now, certificate=about))


def _milliseconds(moment: datetime.datetime) -> int:
    return int(moment.timestamp()) * SECOND
