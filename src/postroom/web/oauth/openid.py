"""Requests to an OpenID Connect provider, and the checks of its answers (OpenID Connect Core 1.0)."""

import base64
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from postroom.accounts.oauth.grants import challenge_of
from postroom.clock import MINUTE, SECOND
from postroom.config import Config
from postroom.errors import Unauthorized, Unavailable
from postroom.external_mailboxes.fetching import Fetcher, FetchError
from postroom.operations.people.single_sign_on import Attempt, ProvenAddress
from postroom.processes import pools

T = TypeVar("T")

DISCOVERY = "/.well-known/openid-configuration"
ANSWER_BYTES = 256 * 1024
KNOWN_FOR = 10 * MINUTE
LEEWAY_SECONDS = 60  # between two clocks
TOKEN_CHARACTERS = 20_000
CODE_CHARACTERS = 4_000
SCOPE = "openid email profile"
# Never "none", and none that our own secret would verify.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
KEY_TYPES = ("RSA", "EC", "OKP")


class Provider(Struct, frozen=True):
    """The provider's own description."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class IdTokens(Struct, frozen=True):
    id_token: str
    access_token: str = ""


class PersonClaims(Struct, frozen=True):
    """Claims about the person; some providers write `true` as a text."""

    sub: str
    email: str = ""
    email_verified: bool | str = False
    name: str = ""
    aud: str | list[str] = ""
    azp: str = ""


class OpenIdClient:
    """Uses the courier that checks its targets: a URL of the provider leads to no private address."""

    def __init__(self, config: Config, fetcher: Fetcher) -> None:
        self._config = config
        self._fetcher = fetcher
        self._known: tuple[int, Provider] | None = None

    async def find_provider(self, now: int) -> Provider:
        if self._known is None or self._known[0] < now - KNOWN_FOR:
            raw = await self._ask("GET", f"{self._config.oidc_issuer.rstrip('/')}{DISCOVERY}", {})
            provider = decode(raw, Provider)
            require_plausible(provider, self._config.oidc_issuer)
            self._known = now, provider
        return self._known[1]

    async def prove(self, attempt: Attempt, code: str, redirect_uri: str, now: int) -> ProvenAddress:
        provider = await self.find_provider(now)
        tokens = await self._exchange(provider, attempt, code, redirect_uri)
        keys = decode(await self._ask("GET", provider.jwks_uri, {}), dict[str, Any])
        client_id = self._config.oidc_client_id
        claims = await pools.ONCE.run(
            verify, tokens.id_token, keys, provider.issuer, client_id, attempt.nonce, now
        )
        if not claims.email and provider.userinfo_endpoint:
            claims = await self._ask_about(provider, claims, tokens)
        return proven_by(claims)

    async def _exchange(self, provider: Provider, attempt: Attempt, code: str, redirect_uri: str) -> IdTokens:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": attempt.verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        identity, secret = self._config.oidc_client_id, self._config.oidc_client_secret
        if "client_secret_basic" in provider.token_endpoint_auth_methods_supported:
            # RFC 6749 section 2.3.1: both are encoded before they are put together.
            pair = f"{quote(identity, safe='')}:{quote(secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": identity, "client_secret": secret}
        raw = await self._ask("POST", provider.token_endpoint, headers, urlencode(form).encode())
        return decode(raw, IdTokens)

    async def _ask_about(self, provider: Provider, claims: PersonClaims, tokens: IdTokens) -> PersonClaims:
        """Ask a provider that leaves the address out of the token. The answer must name the same person."""
        headers = {"Authorization": f"Bearer {tokens.access_token}", "Accept": "application/json"}
        found = decode(await self._ask("GET", provider.userinfo_endpoint, headers), PersonClaims)
        if found.sub != claims.sub:
            raise Unauthorized("Your sign-in provider named two different people.")
        return found

    async def _ask(self, method: str, url: str, headers: dict[str, str], body: bytes = b"") -> bytes:
        try:
            answer = await self._fetcher.fetch(method, url, headers, body, ANSWER_BYTES)
        except FetchError as error:
            raise Unavailable(f"The single sign-on provider could not be reached. {error}") from None
        if answer.status != 200:
            raise Unauthorized(f"The single sign-on provider answered with {answer.status}.")
        return answer.body


def require_plausible(provider: Provider, issuer: str) -> None:
    """Require the issuer to match, and its endpoints to use TLS if it does.

    OpenID Connect Discovery, 4.3.
    """
    if provider.issuer != issuer:
        raise Unavailable("The single sign-on provider's issuer is not POSTROOM_OIDC_ISSUER.")
    scheme = urlsplit(issuer).scheme
    named = (provider.authorization_endpoint, provider.token_endpoint, provider.jwks_uri)
    urls = [*named, provider.userinfo_endpoint] if provider.userinfo_endpoint else [*named]
    if any(scheme_of(url) not in (scheme, "https") for url in urls):
        raise Unavailable("The single sign-on provider has an address without TLS.")


def scheme_of(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:
        raise Unavailable("The single sign-on provider has an address that is no URL.") from None


def authorization_url(
    provider: Provider, config: Config, attempt: Attempt, state: str, redirect_uri: str
) -> str:
    query = urlencode(
        {
            "response_type": "code",
            "client_id": config.oidc_client_id,
            "redirect_uri": redirect_uri,
            "scope": SCOPE,
            "state": state,
            "nonce": attempt.nonce,
            "code_challenge": challenge_of(attempt.verifier),
            "code_challenge_method": "S256",
        }
    )
    joint = "&" if "?" in provider.authorization_endpoint else "?"
    return f"{provider.authorization_endpoint}{joint}{query}"


def verify(
    id_token: str, keys: dict[str, Any], issuer: str, client_id: str, nonce: str, now: int
) -> PersonClaims:
    """Verify an ID token (OpenID Connect Core, 3.1.3.7).

    Call it in a thread: the library is loaded at first use.
    """
    from joserfc import jwt
    from joserfc.jwk import KeySet

    if len(id_token) > TOKEN_CHARACTERS:
        raise refused("it is too long")
    try:
        known = KeySet.import_key_set({"keys": usable(keys)})
        token = jwt.decode(id_token, known, algorithms=list(ALGORITHMS))
        registry = jwt.JWTClaimsRegistry(
            now=now // SECOND,
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": issuer},
            aud={"essential": True, "value": client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        registry.validate(token.claims)
        claims = msgspec.convert(token.claims, PersonClaims)
    except Exception as error:  # whatever its parsers make of a token from outside
        raise refused(type(error).__name__) from None
    is_for_others = isinstance(claims.aud, list) and len(claims.aud) > 1 and claims.azp != client_id
    if is_for_others or (claims.azp and claims.azp != client_id):
        raise refused("it is for another program")
    return claims


def usable(keys: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the signature keys of known types."""
    found = keys.get("keys")
    listed = found if isinstance(found, list) else []
    return [
        each
        for each in listed
        if isinstance(each, dict) and each.get("kty") in KEY_TYPES and each.get("use", "sig") == "sig"
    ]


def proven_by(claims: PersonClaims) -> ProvenAddress:
    """Return the proven address. One that the provider has not verified could be anybody's."""
    if not claims.email:
        raise Unauthorized("Your sign-in provider gave no email address. Add one there.")
    if claims.email_verified not in (True, "true"):
        raise Unauthorized("Your sign-in provider has not verified your email address. Verify it there.")
    return ProvenAddress(claims.email, claims.name)


def refused(why: str) -> Unauthorized:
    return Unauthorized(f"The token of your sign-in was not accepted: {why}.")


def decode(raw: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        raise Unavailable("The single sign-on provider gave an unexpected answer.") from None
