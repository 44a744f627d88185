"""JSON requests to a DNS provider: bounded, without redirects, and each error in plain words."""

import asyncio
from typing import TypeVar
from urllib.parse import quote

import msgspec

from postroom.dns_providers.zone import DnsProviderError
from postroom.external_mailboxes.fetching import Fetched, Fetcher, FetchError

MAX_ANSWER_BYTES = 1024 * 1024
MAX_TRIES = 5
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30
TOO_FAST = (b"<Code>Throttling", b"<Code>PriorRequestNotComplete")  # of Route 53, with status 400
T = TypeVar("T")


class JsonProvider:
    """`authorization` is the value of that header; it is never part of an error."""

    def __init__(self, title: str, fetcher: Fetcher, base: str, authorization: str) -> None:
        self.title, self._fetcher, self._base = title, fetcher, base
        self._headers = {"Authorization": authorization, "Accept": "application/json"}

    async def ask(self, method: str, path: str, kind: type[T], body: object = None) -> T | None:
        """Return the decoded answer, or None for 404."""
        content = b"" if body is None else msgspec.json.encode(body)
        headers = {**self._headers, "Content-Type": "application/json"} if content else self._headers
        url = f"{self._base}{path}"
        fetched = await fetch(self.title, self._fetcher, method, url, headers, content)
        if fetched.status == 404:
            return None
        if fetched.status >= 300:
            raise DnsProviderError(explain(self.title, fetched))
        try:
            return msgspec.json.decode(fetched.body or b"{}", type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DnsProviderError(f"{self.title} gives an answer that cannot be read.") from error


async def fetch(
    title: str, fetcher: Fetcher, method: str, url: str, headers: dict[str, str], content: bytes
) -> Fetched:
    """Return the answer; providers take few requests a second, so those that come too fast are repeated."""
    for attempt in range(MAX_TRIES):
        try:
            fetched = await fetcher.fetch(method, url, headers, content, MAX_ANSWER_BYTES)
        except FetchError as error:
            raise DnsProviderError(f"{title} cannot be asked: {error}") from error
        wait = find_pause(fetched)
        if wait is None or attempt == MAX_TRIES - 1:
            break
        await asyncio.sleep(wait)
    return fetched


def find_pause(fetched: Fetched) -> float | None:
    """Return the seconds to wait before the same request; None if it is not to be repeated."""
    if fetched.status != 429 and not any(word in fetched.body for word in TOO_FAST):
        return None
    given = fetched.headers.get("retry-after", "")
    seconds = int(given) if given.isascii() and given.isdigit() and len(given) < 6 else PAUSE_SECONDS
    return seconds if seconds <= LONGEST_PAUSE_SECONDS else None


def explain(title: str, fetched: Fetched) -> str:
    """Return a sentence for an answer that is an error, with its beginning."""
    if fetched.status in (401, 403):
        return f"{title} refuses the token ({fetched.status}). Check POSTROOM_DNS_TOKEN and its permissions."
    if fetched.status == 429:
        return f"{title} answers 429: too many requests. Try again later."
    return f"{title} answers {fetched.status}: {fetched.body[:200].decode('utf-8', 'replace')}"


def segment(value: str) -> str:
    """Return one segment of a path: an id from outside cannot lead elsewhere."""
    return quote(value, safe="").replace(".", "%2E") if set(value) <= {"."} else quote(value, safe="")
