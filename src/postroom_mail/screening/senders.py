"""Whether a sender imitates a known correspondent."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import islice

from msgspec import Struct

from postroom_mail.authentication.organization import domain_of
from postroom_mail.languages.folding import TO_LATIN, plain_letters
from postroom_mail.mime import address
from postroom_mail.screening import brands

MAX_KNOWN = 300
SHORTEST_RESEMBLED = 6
SHORTEST_NAME = 6
MAX_NAME_CHARS = 100
MAX_ANSWERED = 5  # addresses in Reply-To
FEWEST_NAMES = 2

_ADDRESS = re.compile(r"[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,6}[A-Za-z]{2,20}")
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"), ("nn", "m"))
_DIGITS = str.maketrans("01358", "olseb")
_TRUSTED_WORDS = frozenset((
    "account", "accounts", "alert", "alerts", "auth", "bill", "billing", "business", "care", "client",
    "customer", "help", "helpdesk", "hr", "id", "info", "invoice", "invoices", "it", "login", "mail", "my",
    "notice", "office", "online", "pay", "payment", "payments", "payroll", "portal", "secure", "security",
    "service", "services", "sign", "signin", "support", "team", "update", "updates", "verify", "web",
))  # fmt: skip
_NOT_LETTERS = re.compile(r"[\W_]+")


class Sender(Struct, frozen=True):
    """From and Reply-To as shown, and the DMARC verdict in the terms of RFC 8601."""

    from_addr: str
    dmarc: str
    reply_to: tuple[address.Address, ...] = ()


def findings(
    sender: Sender, known: Collection[str], colleagues: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """Names of rules and excerpts. `known` holds addresses, with or without names, and domains.

    `colleagues` are the account's own people, with names, and its own domains.
    """
    is_plain = not (known or colleagues or sender.reply_to) and sender.from_addr.count("@") < 2
    if not sender.from_addr or (is_plain and "@" in sender.from_addr and "<" not in sender.from_addr):
        return  # nobody to imitate, and no name or other address is shown
    mailbox = next(iter(address.parse_list(sender.from_addr)), None)
    if mailbox is None:
        if ";" not in sender.from_addr:  # the end of a group, which may be empty (RFC 6854)
            yield "no_sender_address", sender.from_addr
        return
    domain = domain_of(mailbox.address)
    if brand := brands.imitated(mailbox.name[:MAX_NAME_CHARS], domain or ""):
        yield "poses_as_company", f"{brand}: {mailbox}"
    if is_plain or domain is None:
        return
    people, own_people = list(_people(known)), list(_people(colleagues))
    domains = {person[1] for person in (*people, *own_people)}
    yield from _by_domain(domain, sender.dmarc, domains)
    for each in (mailbox, *sender.reply_to[:MAX_ANSWERED]):
        yield from _by_colleague(each, sender.dmarc, own_people)
    yield from _by_reply(domain, sender, domains)
    if sender.dmarc != "pass":
        yield from _by_name(mailbox, people)


def _by_colleague(
    shown: address.Address, dmarc: str, own_people: list[tuple[str, str, str]]
) -> Iterator[tuple[str, str]]:
    """A first and a last name of one's own people, with an address that nobody of them has.

    Also if DMARC passes: an address at a large provider passes for anyone with an account.
    """
    if not own_people or len(shown.name.split()) < FEWEST_NAMES:
        return
    name, own = name_of(str(shown)), address.normalize(shown.address)
    domain = own.rpartition("@")[2]
    is_of_ours = dmarc == "pass" and any(domain == person[1] for person in own_people)
    addresses = {person[2] for person in own_people if name and person[0] == name}
    if addresses and own not in addresses and not is_of_ours:
        yield "poses_as_colleague", str(shown)


def _by_reply(domain: str, sender: Sender, known: set[str]) -> Iterator[tuple[str, str]]:
    """Answers go to a domain that only looks like the sender's or a known one, or past a forged known one."""
    for each in sender.reply_to[:MAX_ANSWERED]:
        answered = domain_of(each.address)
        if answered is None or answered == domain or answered in known:
            continue
        is_below = domain.endswith(f".{answered}") or answered.endswith(f".{domain}")
        if is_below:
            continue
        others = (other for other in (domain, *sorted(known)) if resembles(answered, other, other == domain))
        if (other := next(others, None)) is not None:
            yield "reply_elsewhere", f"{answered} is not {other}"
        elif domain in known and sender.dmarc == "fail":
            yield "reply_elsewhere", f"{domain} is not proven, and answers go to {answered}"


def _people(known: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """The name in letters only, the domain and the address of each known correspondent."""
    for text in islice(known, MAX_KNOWN):
        name, _, rest = text.rpartition("<")
        written = rest.strip().rstrip(">").lower()
        yield _letters(name), written.rpartition("@")[2].rstrip("."), written if "@" in written else ""


def _letters(name: str) -> str:
    """With sorted words: some write the last name first."""
    return "".join(sorted(_NOT_LETTERS.split(plain_letters(name).translate(TO_LATIN)))) if name else ""


def name_of(from_addr: str) -> str:
    """The displayed name in letters only, if long enough to be distinctive; else ""."""
    mailbox = next(iter(address.parse_list(from_addr)), None)
    name = _letters(mailbox.name[:MAX_NAME_CHARS]) if mailbox else ""
    return name if len(name) >= SHORTEST_NAME else ""


def _by_domain(domain: str, dmarc: str, known: set[str]) -> Iterator[tuple[str, str]]:
    if any(domain == other or domain.endswith(f".{other}") for other in known):
        if dmarc == "fail":
            yield "forged_known_sender", domain
        return
    for other in sorted(known):
        if resembles(domain, other, is_proven=dmarc == "pass"):
            yield "resembles_known_sender", f"{domain} is not {other}"
            return


def resembles(domain: str, other: str, is_proven: bool) -> bool:
    """Looks the same; or, if not proven, one letter off, or the known name with an added word."""
    if skeleton(domain) == skeleton(other):
        return True
    ours, theirs = domain.partition(".")[0], other.partition(".")[0]
    if is_proven or len(theirs) < SHORTEST_RESEMBLED:
        return False
    return is_one_edit_apart(domain, other) or _is_dressed_up(ours, theirs)


def _is_dressed_up(name: str, known: str) -> bool:
    """northwind-billing for northwind."""
    return name.replace(known, "", 1).strip("-") in _TRUSTED_WORDS if known in name else False


@lru_cache(maxsize=4_096)
def skeleton(domain: str) -> str:
    """The domain as a hasty reader sees it."""
    shown = _unicode(domain)
    letters = plain_letters(shown).translate(TO_LATIN)
    for pair, single in _PAIRS:
        letters = letters.replace(pair, single)
    return letters.translate(_DIGITS).replace("i", "l").replace("-", "")


def _unicode(domain: str) -> str:
    labels = domain.split(".")
    return ".".join(_unicode_label(label) for label in labels)


def _unicode_label(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return label


def is_one_edit_apart(one: str, other: str) -> bool:
    """A letter changed, added, left out, or two neighbours swapped."""
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    start = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    rest_one, rest_other = one[start:], other[start:]
    return (
        rest_one[1:] == rest_other[1:]
        or rest_one[1:] == rest_other
        or rest_one == rest_other[1:]
        or (rest_one[:2] == rest_other[1::-1] and rest_one[2:] == rest_other[2:])
    )


def _by_name(mailbox: address.Address, people: list[tuple[str, str, str]]) -> Iterator[tuple[str, str]]:
    own = address.normalize(mailbox.address)
    shown = _ADDRESS.search(mailbox.name)
    if shown and domain_of(shown[0]) != domain_of(own) and " via " not in mailbox.name.lower():
        yield "name_shows_other_address", str(mailbox)
    if not people:
        return
    name = name_of(str(mailbox))
    addresses = {person[2] for person in people if person[0] == name and person[2]}
    if name and addresses and own not in addresses:
        yield "borrowed_name", str(mailbox)
