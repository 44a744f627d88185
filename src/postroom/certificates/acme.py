"""An ACME client (RFC 8555): one account, one order at a time.

Answers are bounded in size and time, and every URL must be on the directory's own host: an authority that
lies cannot make this server ask another one.
"""

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from msgspec import Struct

from postroom.external_mailboxes.fetching import Fetched, FetchError

MAX_JSON_BYTES = 64 * 1024
MAX_CHAIN_BYTES = 256 * 1024
MAX_TRIES = 10  # of a request whose nonce was refused (RFC 8555 section 6.5)
MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.5, 20.0
JOSE = {"Content-Type": "application/jose+json"}
BAD_NONCE = "urn:ietf:params:acme:error:badNonce"
RATE_LIMITED = "urn:ietf:params:acme:error:rateLimited"
NO_ACCOUNT = "urn:ietf:params:acme:error:accountDoesNotExist"


class AcmeError(Exception):
    """`retry_after` is in seconds, if the authority named a time."""

    def __init__(self, reason: str, kind: str = "", retry_after: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.kind, self.retry_after = reason, kind, retry_after


class AuthorityFetcher(Protocol):
    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", limit: int = 1024 * 1024
    ) -> Fetched: ...


class AcmeDirectory(Struct, frozen=True, rename="camel"):
    new_nonce: str
    new_account: str
    new_order: str


class OfferedChallenge(Struct, frozen=True):
    type: str
    url: str
    token: str = ""


class AcmeProblem(Struct, frozen=True):
    type: str = ""
    detail: str = ""
    subproblems: tuple["AcmeProblem", ...] = ()


class OfferState(Struct, frozen=True):
    error: AcmeProblem | None = None


class OrderedName(Struct, frozen=True):
    value: str
    type: str = "dns"


class Authorization(Struct, frozen=True):
    status: str
    identifier: OrderedName
    challenges: tuple[OfferedChallenge, ...] = ()


class AuthorizationState(Struct, frozen=True):
    status: str
    challenges: tuple[OfferState, ...] = ()


class CertificateOrder(Struct, frozen=True):
    status: str
    authorizations: tuple[str, ...] = ()
    finalize: str = ""
    certificate: str = ""
    error: AcmeProblem | None = None


class AcmeAnswer(Struct, frozen=True):
    body: bytes
    location: str
    retry_after: int | None


# Makes the answer to a challenge visible: its token, the name to prove, the key authorization.
ShowAnswer = Callable[[str, str, str], Awaitable[None]]
T = TypeVar("T")
Polled = TypeVar("Polled", CertificateOrder, AuthorizationState)


class AcmeClient:
    """An account at one authority. `url` is "" until `register` ran."""

    def __init__(
        self, courier: AuthorityFetcher, directory_url: str, key: ec.EllipticCurvePrivateKey, url: str = ""
    ):
        self._courier, self._directory_url = courier, directory_url
        self.key, self.url = key, url
        self._directory: AcmeDirectory | None = None
        self._nonces: list[str] = []

    async def register(self, email: str) -> None:
        """Finds or makes the account of this key (RFC 8555 section 7.3)."""
        wanted: dict[str, Any] = {"termsOfServiceAgreed": True}
        if email:
            wanted["contact"] = [f"mailto:{email}"]
        answer = await self._post((await self._read_directory()).new_account, wanted, with_key=True)
        self.url = self._require_own_host(answer.location)

    async def obtain(
        self, names: Sequence[str], key: ec.EllipticCurvePrivateKey, challenge_type: str, publish: ShowAnswer
    ) -> bytes:
        """Returns the certificate's chain as PEM. `publish` runs before the authority is asked to look."""
        wanted = {"identifiers": [{"type": "dns", "value": name} for name in names]}
        answer = await self._post((await self._read_directory()).new_order, wanted)
        order, order_url = _read(answer.body, CertificateOrder), self._require_own_host(answer.location)
        if len(order.authorizations) > len(names):
            raise AcmeError("The authority asks for more authorizations than names were ordered.")
        for url in order.authorizations:
            await self._authorize(url, names, challenge_type, publish)
        order = await self._until(
            order_url, CertificateOrder, lambda order: order.status in ("ready", "valid")
        )
        if order.status == "ready":
            await self._post(order.finalize, {"csr": _encode(_make_csr(names, key))})
            order = await self._until(order_url, CertificateOrder, lambda order: order.status == "valid")
        chain = await self._post(order.certificate, None, MAX_CHAIN_BYTES)
        return chain.body

    async def _authorize(
        self, url: str, names: Sequence[str], challenge_type: str, publish: ShowAnswer
    ) -> None:
        authorization = _read((await self._post(url, None)).body, Authorization)
        name = authorization.identifier.value.lower()
        if name not in names:
            raise AcmeError(f"The authority asks for a name that was not ordered: '{name[:100]}'.")
        if authorization.status == "valid":
            return
        challenge = next((each for each in authorization.challenges if each.type == challenge_type), None)
        if challenge is None:
            raise AcmeError(f"The authority offers no {challenge_type} challenge for {name}.")
        if not _is_token(challenge.token):
            raise AcmeError("The authority's challenge has no valid token.")
        await publish(challenge.token, name, f"{challenge.token}.{thumbprint(self.key)}")
        await self._post(challenge.url, {})
        await self._until(url, AuthorizationState, lambda state: state.status == "valid")

    async def _until(self, url: str, kind: type[Polled], is_done: Callable[[Polled], bool]) -> Polled:
        """Polls; the caller bounds the time."""
        while True:
            answer = await self._post(url, None)
            found = _read(answer.body, kind)
            if is_done(found):
                return found
            if found.status not in ("pending", "processing", "ready"):
                raise AcmeError(_explain(found), _problem_kind(found))
            wait = answer.retry_after if answer.retry_after is not None else MIN_POLL_SECONDS
            await asyncio.sleep(min(max(wait, MIN_POLL_SECONDS), MAX_POLL_SECONDS))

    async def _read_directory(self) -> AcmeDirectory:
        if self._directory is None:
            fetched = await self._fetch("GET", self._directory_url, {}, b"", MAX_JSON_BYTES)
            if fetched.status != 200:
                raise AcmeError(f"The directory answers {fetched.status}.")
            self._directory = _read(fetched.body, AcmeDirectory)
        return self._directory

    async def _post(
        self, url: str, payload: object, limit: int = MAX_JSON_BYTES, *, with_key: bool = False
    ) -> AcmeAnswer:
        """Post a signed request; without a payload a POST-as-GET (RFC 8555, 6.3)."""
        for _ in range(MAX_TRIES):
            body = self._sign(self._require_own_host(url), payload, await self._take_nonce(), with_key)
            fetched = await self._fetch("POST", url, JOSE, body, limit)
            retry_after = _seconds(fetched.headers.get("retry-after", ""))
            if fetched.status < 300:
                return AcmeAnswer(fetched.body, fetched.headers.get("location", ""), retry_after)
            problem = _read_problem(fetched.body)
            if problem.type != BAD_NONCE:
                reason = f"The authority answers {fetched.status}: {_describe(problem)}"
                raise AcmeError(reason, problem.type, retry_after)
        raise AcmeError("The authority refuses every nonce that it gives.")

    async def _take_nonce(self) -> str:
        if not self._nonces:
            await self._fetch("HEAD", (await self._read_directory()).new_nonce, {}, b"", MAX_JSON_BYTES)
        if not self._nonces:
            raise AcmeError("The authority gives no nonce.")
        return self._nonces.pop()

    async def _fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, limit: int
    ) -> Fetched:
        try:
            fetched = await self._courier.fetch(method, self._require_own_host(url), headers, body, limit)
        except FetchError as error:
            raise AcmeError(f"The authority cannot be asked: {error}") from error
        nonce = fetched.headers.get("replay-nonce", "")
        if _is_token(nonce):
            self._nonces = [nonce]
        return fetched

    def _require_own_host(self, url: str) -> str:
        if _origin(url) != _origin(self._directory_url):
            raise AcmeError(f"The authority names a URL on another host: '{url[:100]}'.")
        return url

    def _sign(self, url: str, payload: object, nonce: str, with_key: bool) -> bytes:
        identity = {"jwk": public_jwk(self.key)} if with_key else {"kid": self.url}
        protected = _encode(_canonical({"alg": "ES256", "nonce": nonce, "url": url, **identity}))
        content = "" if payload is None else _encode(_canonical(payload))
        r, s = decode_dss_signature(
            self.key.sign(f"{protected}.{content}".encode(), ec.ECDSA(hashes.SHA256()))
        )
        signature = _encode(r.to_bytes(32) + s.to_bytes(32))
        return _canonical({"protected": protected, "payload": content, "signature": signature})


def _origin(url: str) -> tuple[str, str] | None:
    try:
        return urlsplit(url)[:2]
    except ValueError:
        return None


def public_jwk(key: ec.EllipticCurvePrivateKey) -> dict[str, str]:
    """Return the public key with its members in the order of a thumbprint (RFC 7638)."""
    numbers = key.public_key().public_numbers()
    return {
        "crv": "P-256",
        "kty": "EC",
        "x": _encode(numbers.x.to_bytes(32)),
        "y": _encode(numbers.y.to_bytes(32)),
    }


def thumbprint(key: ec.EllipticCurvePrivateKey) -> str:
    return _encode(hashlib.sha256(_canonical(public_jwk(key))).digest())


def _make_csr(names: Sequence[str], key: ec.EllipticCurvePrivateKey) -> bytes:
    alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    request = builder.add_extension(alternatives, critical=False).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.DER)


def _explain(found: CertificateOrder | AuthorizationState) -> str:
    if isinstance(found, CertificateOrder):
        return f"The order is {found.status[:20]}: {_describe(found.error or AcmeProblem())}"
    errors = [challenge.error for challenge in found.challenges if challenge.error]
    return f"The authorization is {found.status[:20]}: {_describe(errors[0] if errors else AcmeProblem())}"


def _problem_kind(found: CertificateOrder | AuthorizationState) -> str:
    return found.error.type if isinstance(found, CertificateOrder) and found.error else ""


def _describe(problem: AcmeProblem) -> str:
    """Return one line without control characters: it goes to logs, pages and events."""
    text = problem.detail or problem.type.rpartition(":")[2] or "no reason given"
    return "".join(letter if letter.isprintable() else " " for letter in text[:300])


def _read(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AcmeError("The authority's answer is not JSON as RFC 8555 has it.") from error


def _read_problem(body: bytes) -> AcmeProblem:
    try:
        return msgspec.json.decode(body, type=AcmeProblem)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return AcmeProblem()


def _is_token(value: str) -> bool:
    """Return whether the value is base64url (RFC 8555, 6.5.1 and 8)."""
    return 0 < len(value) <= 256 and value.isascii() and value.replace("-", "").replace("_", "").isalnum()


def _seconds(value: str) -> int | None:
    return int(value) if value.isascii() and value.isdigit() and len(value) < 8 else None


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value)
