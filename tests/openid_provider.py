"""A provider of single sign-on on loopback that keeps to the rules, or breaks one when it is told to."""

import base64
import contextlib
import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.mail.keys import signing_key

CLIENT, SECRET = "postroom at home", "a secret: 100% of it"


@dataclass
class Asked:
    """An authorization request, as the browser brings it."""

    redirect_uri: str
    state: str
    nonce: str
    challenge: str

    @classmethod
    def of(cls, url: str) -> "Asked":
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert query["client_id"] == CLIENT
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        assert set(query["scope"].split()) == {"openid", "email", "profile"}
        return cls(query["redirect_uri"], query["state"], query["nonce"], query["code_challenge"])


@cache
def published_key() -> RSAKey:
    """Once: joserfc looks for divisors of its primes, as long as it takes to make a key."""
    return RSAKey.import_key(signing_key(), {"kid": "one", "use": "sig"})


@dataclass
class OpenIdProvider:
    issuer: str
    now: Callable[[], int]
    key: RSAKey = field(default_factory=published_key)
    signer: RSAKey | None = None  # another than the one it publishes
    algorithm: str = "RS256"
    claims: dict[str, Any] = field(default_factory=dict)  # in place of the right ones
    left_out: tuple[str, ...] = ()  # of the token
    about: dict[str, Any] = field(default_factory=dict)  # of its own description
    told: dict[str, Any] = field(default_factory=dict)  # by userinfo
    codes: dict[str, tuple[Asked, str]] = field(default_factory=dict)

    def sign_in(self, url: str, email: str) -> dict[str, str]:
        """What the browser is sent back with."""
        code = secrets.token_urlsafe(16)
        self.codes[code] = Asked.of(url), email
        return {"code": code, "state": self.codes[code][0].state, "iss": self.issuer}

    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/me",
            **self.about,
        }

    def exchange(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        identity, _, secret = pair.partition(":")
        asked, email = self.codes.pop(form["code"], (None, ""))
        challenge = hashlib.sha256(form["code_verifier"].encode()).digest()
        is_right = (
            (unquote(identity), unquote(secret)) == (CLIENT, SECRET)
            and asked is not None
            and asked.redirect_uri == form["redirect_uri"]
            and asked.challenge == base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        )
        if not is_right or asked is None:
            return 400, {"error": "invalid_grant"}
        return 200, {"id_token": self.token(asked, email), "access_token": "opaque", "token_type": "Bearer"}

    def token(self, asked: Asked, email: str) -> str:
        seconds = self.now() // 1000
        right = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "somebody",
            "iat": seconds,
            "exp": seconds + 300,
            "nonce": asked.nonce,
            "email": email,
            "email_verified": True,
            "name": "Ann of the office",
        }
        claims = {
            name: value for name, value in {**right, **self.claims}.items() if name not in self.left_out
        }
        if self.algorithm == "none":
            parts = [json.dumps({"alg": "none"}), json.dumps(claims)]
            return (
                ".".join(base64.urlsafe_b64encode(part.encode()).rstrip(b"=").decode() for part in parts)
                + "."
            )
        return jwt.encode(
            {"alg": self.algorithm, "kid": "one"}, claims, self.signer or self.key, [self.algorithm]
        )


@contextlib.contextmanager
def running_provider(now: Callable[[], int]) -> Iterator[OpenIdProvider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = {
                "/.well-known/openid-configuration": provider.description(),
                "/keys": {"keys": [{"kty": "odd"}, provider.key.as_dict(private=False)]},
                "/me": provider.told,
            }
            self._answer(200, known[self.path])

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(raw).items()}
            self._answer(*provider.exchange(form, self.headers["Authorization"]))

        def _answer(self, status: int, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """A test reads what matters itself."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = OpenIdProvider(f"http://127.0.0.1:{server.server_port}", now)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()
