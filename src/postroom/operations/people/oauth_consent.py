"""Operations on programs that people authorize: registration, consent, tokens and revocation."""

import re
import secrets
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from postroom.accounts import accounts, audit, keys, pods
from postroom.accounts.keys import Caller
from postroom.accounts.oauth import device_codes, grants, oauth_clients
from postroom.accounts.oauth.device_codes import DeviceCode
from postroom.accounts.oauth.grants import ACCESS_LIFETIME, LEVELS, Allowed, Tokens
from postroom.accounts.oauth.oauth_clients import OauthClient
from postroom.accounts.oauth.oauth_error import OauthError
from postroom.accounts.people import users
from postroom.accounts.permissions import ALL, OF_AN_INBOX, READ
from postroom.accounts.scope import Scope
from postroom.clock import SECOND
from postroom.config import Config
from postroom.errors import BadRequest, Forbidden, NotFound
from postroom.mailbox import inboxes
from postroom.storage.database import Tx

MCP_PATH = "/mcp"
READONLY_PATH = f"{MCP_PATH}/readonly"
INBOX_PREFIX = f"{MCP_PATH}/inbox/"
CHALLENGE = re.compile(r"[A-Za-z0-9._~-]{43,128}")  # RFC 7636 section 4.2
EVERYTHING = "everything"  # a level that only programs without a browser can get


class Asked(Struct, frozen=True):
    """What a program asks for, by the query of its authorization request (RFC 6749, 4.1.1)."""

    client_id: str = ""
    redirect_uri: str = ""
    response_type: str = ""
    state: str = ""
    code_challenge: str = ""
    code_challenge_method: str = ""
    resource: str = ""
    scope: str = ""


class Choice(Struct, frozen=True):
    """What a person chose: a level of LEVELS, and an inbox or a pod; empty: all that the person reaches."""

    level: str
    scope_id: str


def register(tx: Tx, body: Any, address: str, config: Config, now: int) -> OauthClient:
    """Register a client (RFC 7591). Every client is public, whatever it asks for."""
    given: Any = body if isinstance(body, dict) else {}
    uris = given.get("redirect_uris")
    if not isinstance(uris, list) or not is_redirect_list(uris):
        raise OauthError(
            "redirect_uris must be one to ten addresses with https, or with http on loopback.",
            oauth="invalid_redirect_uri",
        )
    name = oauth_clients.clean_name(given.get("client_name"))
    return oauth_clients.add(tx, name, uris, address, now, config.oauth_registrations)


def is_redirect_list(uris: list[Any]) -> bool:
    are_allowed = [isinstance(uri, str) and oauth_clients.is_allowed_redirect(uri) for uri in uris]
    return 1 <= len(uris) <= oauth_clients.REDIRECTS_LIMIT and all(are_allowed)


def require_client(tx: Tx, asked: Asked) -> OauthClient:
    """Return the client. If this fails, the browser is not redirected: the address may be a stranger's."""
    client = oauth_clients.find(tx, asked.client_id)
    if client is None:
        raise BadRequest("This program is not registered here. Connect it again.", field="client_id")
    if not client.takes(asked.redirect_uri):
        raise BadRequest("The program's redirect_uri is not one that it registered.")
    return client


def require_sound(asked: Asked, config: Config) -> str:
    """Check the request for errors that the client itself is told. Return the resource."""
    if not asked.response_type:
        raise OauthError("The parameter response_type is missing.", oauth="invalid_request")
    if asked.response_type != "code":
        raise OauthError("response_type must be code.", oauth="unsupported_response_type")
    if asked.code_challenge_method != "S256" or CHALLENGE.fullmatch(asked.code_challenge) is None:
        raise OauthError("A challenge by S256 is needed (PKCE).", oauth="invalid_request")
    return require_resource(asked.resource, config)


def require_resource(asked: str, config: Config) -> str:
    """Return one of the addresses of MCP on this server, in normalized form (RFC 8707)."""
    resource = asked.partition("?")[0].rstrip("/") or f"{config.base_url}{MCP_PATH}"
    path = resource.removeprefix(config.base_url) if resource.startswith(f"{config.base_url}/") else ""
    inbox_id = path.removeprefix(INBOX_PREFIX)
    is_inbox = path.startswith(INBOX_PREFIX) and inbox_id and "/" not in inbox_id
    if path not in (MCP_PATH, READONLY_PATH) and not is_inbox:
        raise OauthError("resource must be an address of MCP on this server.", oauth="invalid_target")
    return resource


def with_inbox_id(tx: Tx, resource: str) -> str:
    """Return the resource with the id of its inbox in place of an address: tokens are bound to that."""
    before, prefix, named = resource.partition(INBOX_PREFIX)
    named = unquote(named)
    if "@" not in named:
        return resource
    (inbox_id,) = inboxes.with_ids(tx, [named])
    return f"{before}{prefix}{inbox_id}"


def offered_levels(caller: Caller, resource: str) -> list[str]:
    """Return the levels, the one that only drafts first; never more than the person may do."""
    is_readonly = resource.endswith(READONLY_PATH)
    wanted = {name: held for name, held in LEVELS.items() if not is_readonly or held == (READ,)}
    return [name for name, held in wanted.items() if set(held) <= caller.permissions]


def find_within(tx: Tx, caller: Caller, chosen: str, resource: str = "") -> Scope:
    """Return the client's scope: never wider than the person's, or than that of the address of MCP."""
    _, _, inbox_id = resource.partition(INBOX_PREFIX)
    if inbox_id:
        return inboxes.get(tx, caller.scope, inbox_id).scope
    if chosen.startswith("inb_"):
        return inboxes.get(tx, caller.scope, chosen).scope
    if chosen:
        return Scope(caller.account_id, pods.get(tx, caller.scope, chosen).id)
    return caller.scope


def allow(tx: Tx, caller: Caller, asked: Asked, choice: Choice, config: Config, now: int) -> str:
    """Returns the code that the program exchanges for tokens."""
    users.require_still(tx, caller, READ)
    client = require_client(tx, asked)
    resource = with_inbox_id(tx, require_sound(asked, config))
    if choice.level not in offered_levels(caller, resource):
        raise Forbidden("You cannot allow a program to do more than you may.", field="level")
    within = find_within(tx, caller, choice.scope_id, resource)
    accounts.lock(tx, caller.account_id)
    keys.require_room(tx, within)
    held = LEVELS[choice.level]
    allowed = Allowed(
        client_id=client.id,
        redirect_uri=asked.redirect_uri,
        challenge=asked.code_challenge,
        resource=resource,
        maker_id=caller.key_id,
        user_id=caller.user_id,
        within=within,
        permissions=held,
    )
    oauth_clients.record_grant(tx, client.id, now)
    after = {
        "program": client.name,
        "redirect": asked.redirect_uri,
        "permissions": held,
        "resource": resource,
    }
    audit.record_by(tx, caller, "program.allowed", client.id, now, within=within, after=after)
    return grants.add_code(tx, allowed, now)


def give_tokens(tx: Tx, form: dict[str, str], config: Config, now: int) -> Tokens | None:
    """Return tokens for a code or a refresh token. None if it was used before: its grant has then ended."""
    client_id = form.get("client_id", "")
    client = oauth_clients.find(tx, client_id)
    if client is None:
        raise OauthError("This program is not registered here.", oauth="invalid_client")
    named = form.get("resource")
    resource = with_inbox_id(tx, require_resource(named, config)) if named else None
    if form.get("grant_type") == "refresh_token":
        return grants.refresh(tx, form.get("refresh_token", ""), client_id, resource, now)
    if form.get("grant_type") != "authorization_code":
        raise OauthError(
            "grant_type must be authorization_code or refresh_token.", oauth="unsupported_grant_type"
        )
    return grants.exchange(
        tx,
        form.get("code", ""),
        client_id,
        form.get("redirect_uri", ""),
        form.get("code_verifier", ""),
        resource,
        client.name,
        now,
    )


def show_tokens(tokens: Tokens) -> dict[str, object]:
    return {
        "access_token": tokens.access,
        "token_type": "Bearer",
        "expires_in": ACCESS_LIFETIME // SECOND,
        "refresh_token": tokens.refresh,
        "scope": " ".join(tokens.permissions),
    }


def revoke(tx: Tx, token: str) -> None:
    """Revoke a token. An unknown one counts as revoked (RFC 7009)."""
    grants.revoke(tx, token)


# --- programs without a browser


def start_device(tx: Tx, address: str, now: int) -> tuple[str, DeviceCode]:
    request_id = secrets.token_urlsafe(32)
    return request_id, device_codes.add(tx, request_id, address, now)


def device_levels(caller: Caller) -> dict[str, tuple[str, ...]]:
    levels = {name: held for name, held in LEVELS.items() if set(held) <= caller.permissions}
    return levels | {EVERYTHING: tuple(word for word in ALL if word in caller.permissions)}


def allow_device(tx: Tx, caller: Caller, user_code: str, choice: Choice, now: int) -> None:
    users.require_still(tx, caller, READ)
    code = device_codes.find_waiting(tx, user_code, now)
    levels = device_levels(caller)
    if choice.level not in levels:
        raise Forbidden("You cannot allow a program to do more than you may.", field="level")
    within = find_within(tx, caller, choice.scope_id)
    held = levels[choice.level]
    if within.inbox_id is not None:
        held = tuple(word for word in held if word in OF_AN_INBOX)
    device_codes.allow(tx, code, caller.key_id, within, held)
    after = {"permissions": held, "address": code.address}
    audit.record_by(tx, caller, "program.allowed", code.user_code, now, within=within, after=after)


def refuse_device(tx: Tx, caller: Caller, user_code: str, now: int) -> None:
    code = device_codes.find_waiting(tx, user_code, now)
    device_codes.remove(tx, code.request_hash)
    audit.record_by(tx, caller, "program.refused", code.user_code, now)


def poll_device(tx: Tx, request_id: str, now: int) -> str | None:
    """Return the new key once; None until a person decides. Raises NotFound if refused, used or expired."""
    code = device_codes.find(tx, request_id, now)
    if code is None:
        raise NotFound("Nothing is waiting under this requestId: it was refused, used or has expired.")
    if code.state == device_codes.WAITING:
        return None
    assert code.within is not None
    assert code.maker_id is not None
    maker = keys.find_caller_by_id(tx, code.maker_id, now)
    if not device_codes.remove(tx, code.request_hash) or maker is None:
        raise NotFound("The person who allowed it may no longer do that.")
    token = keys.new_token()
    where = code.within
    held = tuple(word for word in code.permissions if word in maker.permissions)
    key = keys.add(
        tx,
        where.account_id,
        where.inbox_id,
        "postroom login",
        token,
        now,
        pod_id=where.pod_id,
        asked=held,
        expires_at=maker.expires_at,
        creator=maker,
    )
    audit.record(tx, maker.actor, "key.created", key.id, where, now, address=code.address)
    return token
