"""What events without a message are about: a domain, a certificate, a rule, a service."""

from msgspec import Struct

from postroom.clock import to_iso


class EventDomain(Struct, frozen=True):
    """The domain that an event is about, and what is missing or wrong in its records."""

    id: str
    domain: str
    problems: list[str]


class EventCertificate(Struct, frozen=True):
    """The certificate that an event is about: its first name, when it ends, and why there is no new one."""

    name: str
    expires_at: str | None
    error: str | None

    @classmethod
    def of(cls, name: str, expires_at: int | None, error: str | None) -> "EventCertificate":
        return cls(name, None if expires_at is None else to_iso(expires_at), error)


class EventRule(Struct, frozen=True):
    """The rule that an event is about, and why it was switched off."""

    id: str
    name: str
    reason: str


class EventService(Struct, frozen=True):
    """The service that an event is about: `clamd`, `rspamd`, `spamassassin` or `list NAME`; and its fault."""

    name: str
    error: str | None
