"""Bearer keys: who calls, and a cache of recent callers."""

from hashlib import blake2b

from starlette.requests import HTTPConnection

from postroom.accounts import keys
from postroom.accounts.keys import Caller
from postroom.errors import Unauthorized
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.resources import Resources, Tx
from postroom.web.requests.request_body import header

MAX_CACHED_CALLERS = 10_000


def bearer_token(request: HTTPConnection) -> str:
    scheme, _, token = header(request, b"authorization").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("Send your API key as: Authorization: Bearer pr_…")
    return token.strip()


def client_address(request: HTTPConnection) -> str:
    client = request.scope.get("client")
    return "" if client is None else str(client[0])


CallerAndInbox = tuple[Caller, Inbox | None]  # with the inbox of the request, if it names one


class CallerCache:
    """Recent callers with the inbox they asked for, and the version of the database at that time."""

    def __init__(self) -> None:
        self._cache: dict[bytes, tuple[CallerAndInbox, int | None]] = {}

    def find(self, token: str, inbox_id: str | None) -> CallerAndInbox | None:
        """Return the cached entry, which may have changed since: whoever uses it must check."""
        entry = self._cache.get(_fingerprint(token, inbox_id))
        return None if entry is None else entry[0]

    def find_unchanged(
        self, token: str, inbox_id: str | None, version: int | None, now: int
    ) -> CallerAndInbox | None:
        """Return the entry if it is current: nothing was written since, and the key has not expired."""
        entry = None if version is None else self._cache.get(_fingerprint(token, inbox_id))
        if entry is None or entry[1] != version:
            return None
        found, _ = entry
        expires_at = found[0].expires_at
        return found if expires_at is None or expires_at > now else None

    def put(self, token: str, found: CallerAndInbox, version: int | None = None) -> None:
        _, inbox = found
        if len(self._cache) >= MAX_CACHED_CALLERS:
            del self._cache[next(iter(self._cache))]
        self._cache[_fingerprint(token, None if inbox is None else inbox.id)] = found, version

    def forget(self, token: str, inbox_id: str) -> None:
        self._cache.pop(_fingerprint(token, inbox_id), None)


def _fingerprint(token: str, inbox_id: str | None) -> bytes:
    """Return the cache key, as no token stays in memory.

    This hash is faster than the one used for storage.
    """
    return blake2b(f"{inbox_id} {token}".encode(), digest_size=32).digest()


async def authenticate(resources: Resources, token: str, resource: str | None = None) -> Caller:
    caller, _ = await identify(resources, token, None)
    require_at(caller, resource)
    return caller


def require_at(caller: Caller, resource: str | None) -> None:
    """Require the token's resource: a token for one address of MCP is valid only there (RFC 8707).

    The same holds for a key with permissions of the /v0 interface.
    """
    if caller.resource is not None and caller.resource != resource:
        raise Unauthorized("This token is for another address. Sign in again for this one.")


async def identify(resources: Resources, token: str, inbox_id: str | None) -> tuple[Caller, Inbox | None]:
    """Return the caller, and the inbox of the request if it belongs to the caller's account."""
    found = resources.db.look_up(_find, token, inbox_id, resources.now())
    caller, inbox = found if isinstance(found, tuple) else await found
    if caller is None:
        raise Unauthorized("This API key is not valid. It may have been revoked.")
    return caller, inbox


def _find(tx: Tx, token: str, inbox_id: str | None, now: int) -> tuple[Caller | None, Inbox | None]:
    """Find both by one statement: the same work for every inbox, also for those of others."""
    if inbox_id is None:
        return keys.find_caller(tx, token, now, may_be_bound=True), None
    return inboxes.find_with_caller(tx, token, inbox_id, now)
