"""What other servers reported about a domain."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from postroom.accounts import domains
from postroom.accounts.keys import Caller
from postroom.config import Config
from postroom.deliverability import domain_reports
from postroom.errors import no_such
from postroom.operations.domains import find_domain
from postroom.operations.operator import is_operator
from postroom.operations.usage import Day, UsageQuery, day_name
from postroom.storage.database import Tx


class ReportQuery(Struct, frozen=True):
    first: Day | None = field(default=None, name="from")
    last: Day | None = field(default=None, name="to")

    def days(self, now: int) -> tuple[int, int]:
        return UsageQuery(self.first, self.last).days(now)


class ReportedSource(Struct, frozen=True):
    """Email that claims to be from the domain, by source address, and how receivers handled it."""

    source: Annotated[str, Meta(description="The address it came from.")]
    count: int
    spf: Literal["pass", "fail"]
    dkim: Literal["pass", "fail"]
    disposition: Annotated[str, Meta(description="none, quarantine, reject, or pass.")]


class ReportedTls(Struct, frozen=True):
    """Connections to the domain's servers, by the encryption one reporter saw."""

    source: Annotated[str, Meta(description="Who reports.")]
    count: int
    policy: Annotated[str, Meta(description="sts, tlsa or no-policy-found.")]
    result: Annotated[str, Meta(description="success, or what failed (RFC 8460 section 4.3).")]


class ReportedDay(Struct, frozen=True):
    day: str
    passed: int
    failed: int


class DomainReports(Struct, frozen=True):
    first: str = field(name="from")
    last: str = field(name="to")
    data: list[ReportedSource]
    tls: list[ReportedTls]
    days: list[ReportedDay]


def get_domain_reports(
    tx: Tx, caller: Caller, domain_id: str, query: ReportQuery, config: Config, now: int
) -> DomainReports:
    """Get what other servers reported: email that claims to be from a domain, and encryption to it"""
    domain = find_domain(tx, caller, domain_id, config)
    if domain.id == domains.SERVICE_ID and not is_operator(tx, caller):
        raise no_such("domain")  # its reports are the operator's
    first, last = query.days(now)
    owner, name = domain.account_id, domain.name
    mails = domain_reports.list_rows(tx, owner, name, domain_reports.DMARC, first, last)
    sessions = domain_reports.list_rows(tx, owner, name, domain_reports.TLS, first, last)
    days = domain_reports.count_days(tx, owner, name, first, last)
    return DomainReports(
        first=day_name(first),
        last=day_name(last),
        data=[
            ReportedSource(each.source, each.count, verdict(each.spf), verdict(each.dkim), each.disposition)
            for each in mails
        ],
        tls=[ReportedTls(each.source, each.count, each.spf, each.dkim) for each in sessions],
        days=[ReportedDay(day_name(each.day), each.passed, each.failed) for each in days],
    )


def verdict(word: str) -> Literal["pass", "fail"]:
    return "pass" if word == "pass" else "fail"
