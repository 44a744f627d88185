"""DNS lookups for the authenticity checks, and their common deadline."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct, field


class DnsTemporary(Exception):
    """The DNS gave no answer now; a retry may succeed."""


class Lookup(Protocol):
    """Blocking DNS lookups. Each returns () when there is nothing and raises DnsTemporary when unknown."""

    def txt(self, name: str, timeout_seconds: float) -> tuple[bytes, ...]: ...

    def mx(self, name: str, timeout_seconds: float) -> tuple[tuple[int, str], ...]: ...

    def ipv4(self, host: str, timeout_seconds: float) -> tuple[str, ...]: ...

    def ipv6(self, host: str, timeout_seconds: float) -> tuple[str, ...]: ...

    def ptr(self, ip: str, timeout_seconds: float) -> tuple[str, ...]: ...


class TimedLookup(Struct, frozen=True):
    """A Lookup that fails as temporary after the time `ends_at`. It asks for the texts of a name once."""

    lookup: Lookup
    ends_at: float
    monotonic: Callable[[], float]
    texts: dict[str, tuple[bytes, ...]] = field(default_factory=dict)

    def txt(self, name: str) -> tuple[bytes, ...]:
        if name not in self.texts:
            self.texts[name] = self.lookup.txt(name, self._remaining_seconds())
        return self.texts[name]

    def mx(self, name: str) -> tuple[tuple[int, str], ...]:
        return self.lookup.mx(name, self._remaining_seconds())

    def ipv4(self, host: str) -> tuple[str, ...]:
        return self.lookup.ipv4(host, self._remaining_seconds())

    def ipv6(self, host: str) -> tuple[str, ...]:
        return self.lookup.ipv6(host, self._remaining_seconds())

    def ptr(self, ip: str) -> tuple[str, ...]:
        return self.lookup.ptr(ip, self._remaining_seconds())

    def _remaining_seconds(self) -> float:
        remaining = self.ends_at - self.monotonic()
        if remaining <= 0:
            raise DnsTemporary("the time for all lookups is used up")
        return remaining
