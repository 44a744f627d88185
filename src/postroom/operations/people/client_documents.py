"""Programs whose id is the URL of a document about them (draft-ietf-oauth-client-id-metadata-document-02)."""

from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from postroom.accounts import names
from postroom.accounts.oauth import oauth_clients
from postroom.accounts.oauth.oauth_clients import OauthClient
from postroom.clock import MINUTE
from postroom.config import Config
from postroom.errors import BadRequest
from postroom.operations.people.oauth_consent import is_redirect_list
from postroom.storage.database import Tx

DOCUMENT_BYTES = 10 * 1024
KNOWN_FOR = 10 * MINUTE
SECRETS = ("client_secret", "client_secret_expires_at")


def is_document(client_id: str) -> bool:
    return client_id.startswith("https://")


def require_document_url(client_id: str) -> str:
    """Return its host. Section 3: https, with a path without dots, and no query, fragment or password."""
    parts = urlsplit(client_id) if oauth_clients.is_allowed_redirect(client_id) else None
    segments = unquote(parts.path).split("/") if parts is not None else []
    is_plain = parts is not None and "?" not in client_id and parts.path not in ("", "/")
    if parts is None or not is_document(client_id) or not is_plain or {".", ".."} & set(segments):
        raise refused("it must be an https URL with a path, without a query")
    return parts.netloc


def is_fresh(tx: Tx, client_id: str, now: int) -> bool:
    known = oauth_clients.find(tx, client_id)
    return known is not None and now - KNOWN_FOR < known.created_at <= now


def read_document(raw: bytes, client_id: str) -> tuple[str, list[str]]:
    """Return name and redirect URIs. Section 4: it names its own URL, and holds no secret."""
    try:
        document: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise refused("its document is not JSON") from None
    if not isinstance(document, dict) or document.get("client_id") != client_id:
        raise refused("the `client_id` in its document must be its own URL")
    method = document.get("token_endpoint_auth_method", "none")
    if any(name in document for name in SECRETS) or "secret" in str(method):
        raise refused("a public document cannot have a client secret")
    uris = document.get("redirect_uris")
    if not isinstance(uris, list) or not is_redirect_list(uris):
        raise refused("`redirect_uris` must be one to ten addresses with https, or with http on loopback")
    name = document.get("client_name")
    host = urlsplit(client_id).netloc
    is_named = isinstance(name, str) and name.strip() and names.is_clean(name.strip()[:100])
    return (oauth_clients.clean_name(name) if is_named else host), uris


def keep(tx: Tx, client_id: str, raw: bytes, account_id: str, config: Config, now: int) -> OauthClient:
    """Keep what the document says; unused ones count for the account of the person who asked."""
    name, uris = read_document(raw, client_id)
    return oauth_clients.put(tx, client_id, name, uris, account_id, now, config.oauth_registrations)


def refused(why: str) -> BadRequest:
    return BadRequest(f"This program's client_id was refused: {why}.", field="client_id")
