"""Who sent an email: SPF, DKIM and DMARC of the server that brought it, and what a failed policy leads to."""

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec import UNSET, Struct
from msgspec.structs import replace

from postroom.config import Config
from postroom.inward.mails import UNKNOWN_PEER, ReadMail
from postroom.mailbox.documents import Verdicts
from postroom.net import public_addresses
from postroom.net.dns import Resolver
from postroom.processes import pools
from postroom.queue import dmarc_results
from postroom.queue.dmarc_results import DmarcResult
from postroom_mail.authentication.lookup import DnsTemporary, Lookup
from postroom_mail.authentication.organization import domain_of, walk
from postroom_mail.mime.parse import ParsedMail
from postroom_mail.reports.dmarc_report_writing import (
    CHARACTERS,
    PUBLISHED,
    SeenSender,
    SeenSignature,
    wants_reports,
)

if TYPE_CHECKING:  # it takes long to load, and a worker never judges
    from postroom_mail.authentication.authenticity import Evaluation

JUDGE_SECONDS = 8.0
RESERVED = frozenset(("localhost", "invalid", "test", "example", "example.com", "example.net", "example.org"))
MARK = "mark"  # of POSTROOM_DMARC
NONE: Final = "none"
QUARANTINE: Final = "quarantine"
REJECT: Final = "reject"
# Why less is done than a domain asks for (RFC 9990 section 3.1.1.3).
TRUSTED, LIST, LOCAL = "trusted_forwarder", "mailing_list", "local_policy"
TRIAL = "policy_test_mode"


class SendingServer(Protocol):
    """The server that handed an email over: `peer_ip` is "" for email from inside."""

    @property
    def peer_ip(self) -> str: ...
    @property
    def helo(self) -> str: ...
    @property
    def mail_from(self) -> str: ...


class Judged(Struct, frozen=True):
    """What an email shows of its sender, and the result to report to its domain, if that wants reports."""

    verdicts: Verdicts
    result: DmarcResult | None = None


class Disposition(Struct, frozen=True):
    """What is done with email that fails DMARC, and why less than its domain asks for; "" if not less."""

    action: Literal["none", "quarantine", "reject"]
    override: str = ""


def needs_sender_checks(mail: ParsedMail, peer_ip: str) -> bool:
    """Return whether there is anything to check. SPF needs a public peer; a signature or policy does not."""
    return mail.has_dkim_signature or public_addresses.is_public(peer_ip) or awaits_policy(mail, peer_ip)


def awaits_policy(mail: ParsedMail, peer_ip: str) -> bool:
    """Return whether it fails if its author's domain has a DMARC policy, and is judged by nothing else.

    Mail that never left this server ("") has no peer that could have forged it.
    """
    is_judged_otherwise = mail.has_dkim_signature or public_addresses.is_public(peer_ip)
    if peer_ip == "" or is_judged_otherwise:
        return False
    domains = [domain for sender in mail.senders if (domain := domain_of(sender))]
    return bool(domains) if peer_ip == UNKNOWN_PEER else not all(map(is_reserved, domains))


def is_reserved(domain: str) -> bool:
    """Return whether nobody can own it (RFC 2606, 6761).

    Such mail of a private peer is a trial, and asks no DNS.
    """
    return domain.rpartition(".")[2] in RESERVED or ".".join(domain.split(".")[-2:]) in RESERVED


def is_known_without_policy(resolver: Resolver, address: str) -> bool:
    """Return whether answers of the DNS that are still valid say that this domain has no DMARC policy."""
    domain = domain_of(address)
    try:
        return domain is not None and walk(domain, CachedTexts(resolver)) == ()
    except DnsTemporary:
        return False


def with_known_policy(resolver: Resolver, read: ReadMail) -> ReadMail:
    """Skips the examination if the author's domain is already known to have no DMARC policy."""
    senders = read.mail.senders
    if len(senders) == 1 and is_known_without_policy(resolver, senders[0]):
        none = replace(read.verdicts, spf="none", dkim="none", dmarc="none")
        return replace(read, needs_examination=False, verdicts=none)
    return replace(read, findings=None)


class CachedTexts(Struct, frozen=True):
    """Texts from the cache of the resolver alone."""

    resolver: Resolver

    def txt(self, name: str) -> tuple[bytes, ...]:
        found = self.resolver.cached_txt(name)
        if found is None:
            raise DnsTemporary("not cached")
        return found


def unchecked(mail: ParsedMail, peer_ip: str) -> Verdicts:
    """Return verdicts without a check. A From of several domains is `permerror`."""
    word = "temperror" if needs_sender_checks(mail, peer_ip) else "none"
    is_ambiguous = len({sender.rpartition("@")[2] for sender in mail.senders}) > 1
    dmarc = "permerror" if word == "none" and is_ambiguous else word
    return Verdicts(word, word, dmarc, mail.from_address.rpartition("@")[2])


async def evaluate(
    raw: bytes,
    mail: ParsedMail,
    peer: SendingServer,
    lookup: Lookup,
    covered: tuple[str, ...] = (),
    trusted_sealers: tuple[str, ...] = (),
) -> "Evaluation":
    """Check the sender, also of a private or unknown peer: a DMARC policy alone can make it `fail`."""
    from postroom_mail.authentication import authenticity

    is_public = public_addresses.is_public(peer.peer_ip)  # else SPF is not defined
    return await pools.DNS.run(
        authenticity.evaluate_sender,
        raw,
        peer_ip=peer.peer_ip,
        helo=peer.helo if is_public else "",
        mail_from=peer.mail_from if is_public else "",
        from_address=mail.from_address,
        lookup=lookup,
        covered=covered,
        trusted_sealers=trusted_sealers,
        deadline_seconds=JUDGE_SECONDS,
    )


async def check_sender(
    raw: bytes,
    mail: ParsedMail,
    peer: SendingServer,
    lookup: Lookup,
    covered: tuple[str, ...] = (),
) -> Verdicts:
    """Return who sent it, where no policy is obeyed."""
    if peer.peer_ip == "" and not mail.has_dkim_signature:
        return unchecked(mail, peer.peer_ip)
    return to_verdicts(await evaluate(raw, mail, peer, lookup, covered), None)


async def check_with_policy(
    config: Config, raw: bytes, mail: ParsedMail, peer: SendingServer, lookup: Lookup, is_checked: bool = True
) -> Judged:
    """Return who sent it, and what the server does with email that fails DMARC once it is accepted."""
    if not is_checked or (peer.peer_ip == "" and not mail.has_dkim_signature):
        return Judged(unchecked(mail, peer.peer_ip))
    found = await evaluate(raw, mail, peer, lookup, (), config.trusted_sealers)
    done = find_disposition(config, found, peer, is_accepted=True)
    return Judged(to_verdicts(found, done), to_result(config, raw, found, peer, done))


def to_verdicts(found: "Evaluation", disposition: Disposition | None) -> Verdicts:
    said = found.judgement
    asked = UNSET if said.dmarc != "fail" or said.policy == NONE else said.policy or UNSET
    arc = UNSET if said.arc == "none" else said.arc
    verdicts = Verdicts(said.spf, said.dkim, said.dmarc, said.domain, arc, asked)
    if disposition is None or disposition.action == REJECT:
        return verdicts
    return replace(verdicts, disposition=disposition.action, override=disposition.override or UNSET)


def find_disposition(
    config: Config, found: "Evaluation", peer: SendingServer, is_accepted: bool
) -> Disposition | None:
    """Return what is done with email that fails DMARC (RFC 9989 section 5.4); None if nothing was asked.

    A mailing list changes what its authors signed, and a forwarder in a private network hides who sent
    it: such email is never refused. Nor is email that is accepted already.
    """
    if found.is_rescued:
        return Disposition(NONE, TRUSTED)
    if found.judgement.dmarc != "fail" or found.dmarc.policy in (None, NONE):
        return None
    if config.dmarc == MARK:
        return Disposition(NONE, LOCAL)
    if found.list_domain and _is_trusted(found.list_domain, config.trusted_sealers):
        return Disposition(NONE, TRUSTED)
    if _is_trial(found):
        return Disposition(QUARANTINE if found.dmarc.policy == REJECT else NONE, TRIAL)
    if found.dmarc.policy == QUARANTINE:
        return Disposition(QUARANTINE)
    if config.dmarc == REJECT and found.list_domain:
        return Disposition(QUARANTINE, LIST)
    if config.dmarc != REJECT or is_accepted or not public_addresses.is_public(peer.peer_ip):
        return Disposition(QUARANTINE, LOCAL)
    return Disposition(REJECT)


def is_authenticated(found: "Evaluation") -> bool:
    """Return whether SPF or DKIM passes for the domain of its author, which may have no DMARC policy."""
    if found.judgement.dmarc == "pass":
        return True
    passed = [each.domain for each in found.signatures if each.verdict == "pass"]
    if found.spf_identity is not None and found.spf_identity.verdict == "pass":
        passed.append(found.spf_identity.domain)
    author = found.judgement.domain
    return any(
        author == each or author.endswith(f".{each}") or each.endswith(f".{author}") for each in passed
    )


def _is_trial(found: "Evaluation") -> bool:
    """Return whether the domain only tries its policy: one step less counts (`pct=0` before RFC 9989)."""
    tags = {} if found.dmarc.record is None else found.dmarc.record.tags
    return tags.get("t", "n").lower() == "y" or tags.get("pct", "").strip() == "0"


def _is_trusted(domain: str, trusted: tuple[str, ...]) -> bool:
    return any(domain == each or domain.endswith(f".{each}") for each in trusted)


def to_result(
    config: Config,
    raw: bytes,
    found: "Evaluation | None",
    peer: SendingServer,
    disposition: Disposition | None,
) -> DmarcResult | None:
    """Return the result for the domain whose record applied; None if it wants no reports."""
    record = None if found is None else found.dmarc.record
    if found is None or record is None or not config.dmarc_reports:
        return None
    if not public_addresses.is_public(peer.peer_ip) or not wants_reports(record.tags):
        return None
    identity, done = found.spf_identity, disposition or Disposition(NONE)
    seen = SeenSender(
        ip_address(peer.peer_ip).compressed,
        done.action,
        done.override,
        "adkim" in found.dmarc.aligned,
        "aspf" in found.dmarc.aligned,
        found.dmarc.author,
        peer.mail_from.rpartition("@")[2][:CHARACTERS],
        identity.domain if identity else "",
        found.judgement.spf,
        tuple(SeenSignature(each.domain, each.selector, each.verdict) for each in found.signatures),
        {name: record.tags[name][:CHARACTERS] for name in PUBLISHED if name in record.tags},
    )
    return DmarcResult(dmarc_results.id_of(raw), record.domain, seen)
