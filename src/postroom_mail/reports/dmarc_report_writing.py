"""Writes a DMARC aggregate report (RFC 9990) in the form that all can read (RFC 7489)."""

import gzip
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from msgspec import Struct

from postroom_mail.reports.tls_report_writing import ADDRESS_CHARACTERS, DAY_SECONDS, mailbox_of

MOST_ADDRESSES = 3
MOST_RECORDS = 5_000  # as many as a reader of ours takes
CHARACTERS = 255
OVERRIDES = frozenset(
    ("forwarded", "sampled_out", "trusted_forwarder", "mailing_list", "local_policy", "other")
)
PUBLISHED = ("p", "sp", "np", "adkim", "aspf", "t", "pct", "fo")  # tags of a record that a report repeats


class SeenSignature(Struct, frozen=True, array_like=True):
    domain: str
    selector: str
    result: str


class SeenSender(Struct, frozen=True, array_like=True):
    """What was seen of one email. `dkim` and `spf` say whether each passed for the author's domain."""

    source: str
    disposition: str
    override: str
    dkim: bool
    spf: bool
    header_from: str
    envelope_from: str
    spf_domain: str
    spf_result: str
    signatures: tuple[SeenSignature, ...]
    published: dict[str, str]


def write_report(
    own_domain: str, report_id: str, day: int, domain: str, seen: Sequence[tuple[SeenSender, int]]
) -> bytes:
    """Returns gzip. `seen` is not empty; the policy is that of its first."""
    begin, end = day * DAY_SECONDS, (day + 1) * DAY_SECONDS - 1
    metadata = (
        _one("org_name", own_domain)
        + _one("email", f"postmaster@{own_domain}")
        + _one("report_id", report_id)
        + _tag("date_range", _one("begin", str(begin)) + _one("end", str(end)))
    )
    published = _one("domain", domain) + _policy(seen[0][0].published)
    records = "".join(_record(each, count) for each, count in seen[:MOST_RECORDS])
    parts = _tag("report_metadata", metadata) + _tag("policy_published", published) + records
    document = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<feedback>{_one("version", "1.0")}{parts}</feedback>\n'
    )
    return gzip.compress(document.encode(), mtime=0)


def _policy(tags: Mapping[str, str]) -> str:
    return "".join(_one(name, tags[name]) for name in PUBLISHED if name in tags)


def _record(seen: SeenSender, count: int) -> str:
    evaluated = (
        _one("disposition", seen.disposition)
        + _one("dkim", "pass" if seen.dkim else "fail")
        + _one("spf", "pass" if seen.spf else "fail")
        + _reason(seen.override)
    )
    row = _one("source_ip", seen.source) + _one("count", str(count)) + _tag("policy_evaluated", evaluated)
    identifiers = _one("envelope_from", seen.envelope_from) + _one("header_from", seen.header_from)
    signatures = "".join(
        _tag(
            "dkim",
            _one("domain", each.domain) + _one("selector", each.selector) + _one("result", each.result),
        )
        for each in seen.signatures
    )
    spf = _tag("spf", _one("domain", seen.spf_domain) + _one("result", seen.spf_result))
    return _tag(
        "record",
        _tag("row", row) + _tag("identifiers", identifiers) + _tag("auth_results", signatures + spf),
    )


def _reason(override: str) -> str:
    if not override:
        return ""
    kind = override if override in OVERRIDES else "other"
    return _tag("reason", _one("type", kind) + _one("comment", override))


def _one(name: str, text: str) -> str:
    """Return one element. Characters that no XML may hold are left out."""
    return _tag(name, escape("".join(filter(str.isprintable, text[:CHARACTERS]))))


def _tag(name: str, content: str) -> str:
    return f"<{name}>{content}</{name}>"


def write_mail(
    own_domain: str, domain: str, sender: str, recipient: str, report_id: str, day: int, content: bytes
) -> bytes:
    """Compose the report, unsigned (RFC 7489, 7.2.1.1)."""
    from datetime import UTC, datetime
    from email.message import EmailMessage  # late: a start needs none of it
    from email.policy import SMTP
    from email.utils import format_datetime

    mail = EmailMessage(policy=SMTP.clone(max_line_length=200))
    mail["From"] = sender
    mail["To"] = recipient
    mail["Date"] = format_datetime(datetime.fromtimestamp((day + 1) * DAY_SECONDS, UTC))
    mail["Subject"] = f"Report Domain: {domain} Submitter: {own_domain} Report-ID: <{report_id}@{own_domain}>"
    mail["Message-ID"] = f"<{report_id}@{own_domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"This is a DMARC aggregate report from {own_domain} about {domain} (RFC 9990).\n")
    begin, end = day * DAY_SECONDS, (day + 1) * DAY_SECONDS - 1
    name = f"{own_domain}!{domain}!{begin}!{end}!{report_id}.xml.gz"
    mail.add_attachment(content, maintype="application", subtype="gzip", filename=name)
    return mail.as_bytes()


def wants_reports(tags: Mapping[str, str]) -> bool:
    return bool(read_mailboxes(tags))


def read_mailboxes(tags: Mapping[str, str]) -> list[str]:
    """Return the first addresses of `rua` that are plain, without the largest size behind them."""
    wanted = [
        each.strip().partition("!")[0] for each in tags.get("rua", "")[: 10 * ADDRESS_CHARACTERS].split(",")
    ]
    found = [mailbox for each in wanted if (mailbox := mailbox_of(each))]
    return list(dict.fromkeys(found))[:MOST_ADDRESSES]


def needs_consent(domain: str, mailbox: str) -> str:
    """Return the name whose TXT record must allow reports there (RFC 9990 section 4); "" if none must."""
    there = mailbox.rpartition("@")[2].lower()
    is_own = there == domain or there.endswith(f".{domain}") or domain.endswith(f".{there}")
    return "" if is_own else f"{domain}._report._dmarc.{there}"
