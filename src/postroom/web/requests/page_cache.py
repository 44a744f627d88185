"""A cache of list answers: valid as long as nothing at all was written."""

from postroom.accounts.keys import Caller
from postroom.clock import SECOND

MOST_PAGES = 64
MOST_BYTES = 200_000  # of one page
LIFETIME = 5 * SECOND  # the links in a page are signed for a time from now

PageKey = tuple[Caller, str, bytes]  # who asks, for which path, with which query


class PageCache:
    """Only for a database that reports its version; else nothing is cached."""

    def __init__(self) -> None:
        self._pages: dict[PageKey, tuple[int, int, bytes]] = {}

    def find(self, key: PageKey, version: int | None, now: int) -> bytes | None:
        page = None if version is None else self._pages.get(key)
        if page is None:
            return None
        its_version, made_at, body = page
        return body if its_version == version and 0 <= now - made_at < LIFETIME else None

    def put(self, key: PageKey, version: int | None, now: int, body: bytes) -> None:
        """Store a page. The version is from before the page was read: a write meanwhile makes it stale."""
        if version is None or len(body) > MOST_BYTES:
            return
        self._pages.pop(key, None)
        if len(self._pages) >= MOST_PAGES:
            del self._pages[next(iter(self._pages))]
        self._pages[key] = version, now, body
