"""HTTP requests to external servers: for a certificate, an email, a token."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct


class Fetched(Struct, frozen=True):
    status: int
    body: bytes
    headers: Mapping[str, str] = MappingProxyType({})  # names in lower case


class Fetcher(Protocol):
    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", limit: int = 1024 * 1024
    ) -> Fetched:
        """Fetch from a checked address only, without redirects; raises FetchError."""
        ...


class FetchError(Exception):
    """No answer, or too long a one; `is_unproved` if the certificate does not prove the server."""

    def __init__(self, reason: str, is_unproved: bool = False) -> None:
        super().__init__(reason)
        self.is_unproved = is_unproved
