"""What every DNS provider can do: find a zone, read the records of a name, and write them."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from postroom.deliverability.findings import quoted

TTL_SECONDS = 3600  # the least that some providers take
MAX_REASON_CHARACTERS = 300


class DnsProviderError(Exception):
    """The provider refused a request or gave no answer; the text is for people."""

    def __init__(self, reason: str) -> None:
        shortened = reason[:MAX_REASON_CHARACTERS]
        self.reason = "".join(letter if letter.isprintable() else " " for letter in shortened)
        super().__init__(self.reason)


class Zone(Struct, frozen=True):
    """`id` is the provider's own word for the zone."""

    id: str
    name: str


class DnsProvider(Protocol):
    """Values are as in zone files, but a TXT value is its plain text. All methods raise DnsProviderError."""

    async def find_zone(self, name: str) -> Zone | None:
        """Return the closest zone above `name` that the token may change."""
        ...

    async def read(self, zone: Zone, name: str, kind: str) -> tuple[str, ...]:
        """Return all values of a name and type."""
        ...

    async def write(self, zone: Zone, name: str, kind: str, values: Sequence[str]) -> None:
        """Replace all values of a name and type; without values the record is removed."""
        ...


def ancestors(name: str) -> Iterator[str]:
    """Yield the name, then each name above it, down to two labels."""
    labels = name.split(".")
    yield from (".".join(labels[start:]) for start in range(max(len(labels) - 1, 1)))


def below(zone: Zone, name: str) -> str:
    """Return the part of a name in front of its zone, "" for the zone's own name."""
    return "" if name == zone.name else name.removesuffix(f".{zone.name}")


def to_text(kind: str, value: str) -> str:
    """Return a value as zone files have it."""
    return quoted(value) if kind == "TXT" else value


def from_text(kind: str, text: str) -> str:
    """Return a value from a zone file's form, so that equal ones compare equal."""
    import dns.exception
    import dns.rdata
    from dns.rdtypes.ANY.TXT import TXT

    try:
        found = dns.rdata.from_text("IN", kind, text)
    except (dns.exception.DNSException, ValueError) as error:
        raise DnsProviderError(f"The provider gives a {kind} record that cannot be read.") from error
    if isinstance(found, TXT):
        return b"".join(found.strings).decode("utf-8", "replace")
    return found.to_text().lower()
