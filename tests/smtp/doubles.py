"""A small directory and an intake that remembers, for sessions and servers under test."""

import asyncio
from dataclasses import dataclass, field

from postroom.smtp.backend import Accepted, RecipientVerdict, Refused, StorageFull
from postroom.smtp.envelope import Envelope

DOMAIN = "postroom.test"
NAMES = {"alice", "bob", "carol", "grüße"} | {f"user{number}" for number in range(2000)}


def verdict_on(address: str) -> RecipientVerdict:
    """Serves one domain; `later` stands for a database that is down."""
    if address == "postmaster":
        return Accepted("postmaster")
    local, _, domain = address.rpartition("@")
    if domain != DOMAIN:
        return Refused.NOT_LOCAL
    name = local.partition("+")[0].lower()
    if name == "later":
        return Refused.TRY_LATER
    return Accepted(name) if name in NAMES else Refused.UNKNOWN


class SmallDirectory:
    async def check_recipient(self, address: str) -> RecipientVerdict:
        if address.startswith("crash@"):
            raise RuntimeError("the database is gone")
        return verdict_on(address)


@dataclass
class RecordingIntake:
    """Keeps each mail with its bytes; waits for `gate` before it does."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    mails: list[tuple[Envelope, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gate.set()

    async def accept(self, envelope: Envelope) -> None:
        self.entered.set()
        await self.gate.wait()
        if envelope.mail_from.startswith("full@"):
            raise StorageFull
        if envelope.mail_from.startswith("broken@"):
            raise RuntimeError("the database is gone")
        self.mails.append((envelope, envelope.read()))

    @property
    def contents(self) -> list[bytes]:
        return [content for _, content in self.mails]
