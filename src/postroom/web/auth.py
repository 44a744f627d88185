"""Who is asking, and how often: bearer keys and the limit of requests an account may make."""

from dataclasses import dataclass

from starlette.requests import HTTPConnection

from postroom import log
from postroom.accounts import keys
from postroom.accounts.keys import Caller
from postroom.clock import MINUTE, seconds_until
from postroom.errors import RateLimitExceeded, Unauthorized
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.resources import Resources, Tx

REQUESTS_PER_MINUTE = 1_000
FORGET_ABOVE_ACCOUNTS = 10_000


def bearer_token(request: HTTPConnection) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("Send your API key as: Authorization: Bearer pr_…")
    return token.strip()


async def authenticate(resources: Resources, token: str) -> Caller:
    caller, _ = await identify(resources, token, None)
    return caller


async def identify(resources: Resources, token: str, inbox_id: str | None) -> tuple[Caller, Inbox | None]:
    """Who asks, and the inbox he asks for, if it is one of his account."""
    caller, inbox = await resources.db.read(_look_up, token, inbox_id)
    if caller is None:
        raise Unauthorized("This API key is not valid. It may have been revoked.")
    return caller, inbox


def _look_up(tx: Tx, token: str, inbox_id: str | None) -> tuple[Caller | None, Inbox | None]:
    caller = keys.find_caller(tx, token)
    inbox = inboxes.find(tx, inbox_id) if caller is not None and inbox_id is not None else None
    is_own = caller is not None and inbox is not None and inbox.account_id == caller.account_id
    return caller, inbox if is_own else None


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many requests an account has left in its present minute; below zero: too many."""

    remaining: int
    reset_seconds: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Limit": str(REQUESTS_PER_MINUTE),
            "RateLimit-Remaining": str(max(0, self.remaining)),
            "RateLimit-Reset": str(self.reset_seconds),
        }

    def require(self) -> None:
        if self.remaining < 0:
            raise RateLimitExceeded(
                f"More than {REQUESTS_PER_MINUTE} requests in a minute. Try again in {self.reset_seconds} s.",
                retry_after=self.reset_seconds,
            )


@dataclass(slots=True)
class _Minute:
    ends_at: int
    requests: int = 0


class RequestLimit:
    """An account's minute begins with its first request."""

    def __init__(self) -> None:
        self._minutes: dict[str, _Minute] = {}

    def count(self, account_id: str, now: int) -> Allowance:
        minute = self._minutes.get(account_id)
        if minute is None or minute.ends_at <= now:
            minute = self._begin_minute(account_id, now)
        minute.requests += 1
        return Allowance(REQUESTS_PER_MINUTE - minute.requests, seconds_until(minute.ends_at, now))

    def _begin_minute(self, account_id: str, now: int) -> _Minute:
        if len(self._minutes) > FORGET_ABOVE_ACCOUNTS:
            self._minutes = {key: kept for key, kept in self._minutes.items() if kept.ends_at > now}
        minute = self._minutes[account_id] = _Minute(now + MINUTE)
        return minute


class KeyUse:
    """When each key was last used, collected here and written once in a while: never a write a request."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._used_at: dict[str, int] = {}

    def note(self, key_id: str, now: int) -> None:
        self._used_at[key_id] = now

    async def save(self) -> None:
        used_at, self._used_at = self._used_at, {}
        if not used_at:
            return
        try:
            await self._resources.db.write(keys.mark_used, used_at)
        except Exception as error:  # a convenience: the next round tries again
            self._used_at = used_at | self._used_at
            log.get().error("the last use of keys could not be saved", reason=str(error))
