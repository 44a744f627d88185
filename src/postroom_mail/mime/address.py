"""Email addresses: lists in header fields, the form to compare by, and strict validation."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import idna
from msgspec import Struct, field

from postroom_mail.html.text import visible
from postroom_mail.mime import charset, headers

MAX_ADDRESSES = 10_000
# Limits of a list: so many tokens or one for four letters, and so many without finding a mailbox.
MIN_TOKENS = 10_000
MAX_IDLE_TOKENS = 2_000
MAX_TOKENS_EACH = 60
MAX_PARENTHESES = 2_000
MAX_ADDRESS_LENGTH = 320
MAX_NAME_LENGTH = 1_000
RECALLED, RECALLED_LENGTH = 2_000, 200  # addresses whose form to compare is remembered

# email-validator refuses these (RFC 6761, 6762, 7686); here they name local and test servers.
_SPECIAL_USE = frozenset(("localhost", "local", "test", "invalid", "onion", "arpa"))
_STAND_IN = ".example"

# Needs no closer look: strict validation of these takes forty times as long.
_ATEXT = r"[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"(?!..--)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,40}[a-zA-Z0-9])?"
_PLAIN_ADDRESS = re.compile(
    rf"(?=.{{1,200}}\Z)(?=[^@]{{1,64}}@)({_ATEXT}(?:\.{_ATEXT})*)@((?:{_LABEL}\.)+[a-zA-Z]{{2,20}})", re.ASCII
)

_QUOTED = r'"(?P<quoted>(?:[^"\\]++|\\.)*+)" |'
_OTHERS = r"""
    (?P<space>\s++)
    | <++(?P<angle>@[^<>]*+|(?:[^<>,;(]++|\([^()<>]{0,60}\)|\()*+)>?
    | (?P<mark>[,;:])
    | (?P<open>\()
    | (?P<word>=\?[^?\s]{1,64}\?[bBqQ]\?[^?\s]*+\?= | [^\s"<>,;:(]++)
    | (?P<stray>.)
    """
_TOKEN = re.compile(_QUOTED + _OTHERS, re.VERBOSE | re.DOTALL)
# For text after a quote that never ends: searching for its end again and again would be quadratic.
_TOKEN_WITHOUT_QUOTES = re.compile(_OTHERS, re.VERBOSE | re.DOTALL)
# One mailbox in the plainest form, as most fields hold; all else is read token by token.
_PLAIN = re.compile(
    r"([A-Za-z0-9]{1,40}(?: [A-Za-z0-9]{1,40}){0,9}) <([\w.+-]{1,64}@[A-Za-z0-9.-]{1,200})>"
    r"|([\w.+-]{1,64}@[A-Za-z0-9.-]{1,200})",
    re.ASCII,
)
# A mailbox of a list that needs no tokenizing either, up to the comma after it.
_PLAIN_ENTRY = re.compile(
    r"""\s*+(?:(?:"([^"\\<>=]{1,100}+)"\s?|([^\s"<>,;:()@=\\][^"<>,;:()@=\\]{0,100}+))<([a-zA-Z0-9_.+-]{1,64}+@[a-zA-Z0-9.-]{1,200}+)>"""
    r"|([a-zA-Z0-9_.+-]{1,64}+@[a-zA-Z0-9.-]{1,200}+))\s*+(?:[,;]|\Z)",
)
_AROUND_MARKS = re.compile(r"(?:(?<!\s)\s++)?([.@])\s*+")
_PARENTHESES = re.compile(r'"(?:[^"\\]++|\\.)*+"|\\.|[()]', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NEEDS_QUOTES = re.compile(r'[()<>\[\]:;@\\,"]')
_NOT_IN_ADDRESS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff<>]")


class Address(Struct, frozen=True):
    """One mailbox: the decoded display name ("" if none) and the address as it was written."""

    name: str
    address: str

    def __str__(self) -> str:
        """Name <address>, quoted where needed, so that `parse_list` reads it back."""
        if not self.name:
            return self.address
        if not _NEEDS_QUOTES.search(self.name):
            return f"{self.name} <{self.address}>"
        escaped = self.name.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}" <{self.address}>'


def shown(address: Address) -> Address:
    """Return the visible form of the name. The address stays: a cleaned one would be somebody else's."""
    return address if address.name.isascii() else Address(visible(address.name).strip(), address.address)


class _Entry(Struct):
    """The mailbox being read. A word is a list of glued tokens, each as written and as meant."""

    words: list[list[tuple[str, str]]] = field(default_factory=list)
    comment: str = ""
    angle: str | None = None
    has_at: bool = False
    is_glued: bool = False

    def add(self, written: str, meant: str) -> None:
        if self.is_glued:
            self.words[-1].append((written, meant))
        else:
            self.words.append([(written, meant)])
        self.is_glued = True
        self.has_at = self.has_at or "@" in written

    def is_open(self) -> bool:
        """Return whether an address is being read whose domain goes on."""
        return self.words[-1][-1][0].endswith(("@", "."))

    def mailbox(self) -> Address | None:
        """Return the mailbox that was read, if it is one."""
        if self.angle is not None:
            if "@" not in self.angle:
                return None
            address, names = _tidied(_without_route(self.angle.strip())), self._words(meant=1)
        else:
            address, names = _picked_address(self._words(meant=0)) if self.has_at else ("", [])
        if not address or not is_plausible(address):
            return None
        return Address(_display_name(" ".join(names) or self.comment), address)

    def _words(self, meant: int) -> list[str]:
        return ["".join(token[meant] for token in word) for word in self.words]


def parse_list(header_value: str) -> tuple[Address, ...]:
    """Return the mailboxes of an address list, groups flattened, without what is no address; never fails."""
    plain = _PLAIN.fullmatch(header_value)
    if plain is not None:
        return (Address(plain[1] or "", plain[2] or plain[3]),)
    return tuple(islice(_mailboxes(header_value), MAX_ADDRESSES)) if header_value else ()


def _mailboxes(value: str, is_quick: bool = True) -> Iterator[Address]:
    entry, pattern, position = _Entry(), _TOKEN, 0
    comment_ends = _comment_ends(value) if "(" in value else {}
    tokens_left, is_at_start = MAX_IDLE_TOKENS, True
    for _ in range(max(MIN_TOKENS, len(value) // 4)):
        tokens_left -= 1
        if tokens_left < 0:
            break
        if is_quick and is_at_start and (plain := _PLAIN_ENTRY.match(value, position)):
            yield Address(_plain_name(plain), plain[3] or plain[4])
            position, tokens_left = plain.end(), tokens_left + 1
            continue
        match = pattern.match(value, position)
        if match is None:
            break
        position, is_at_start = match.end(), False
        kind, text = match.lastgroup, match[0]
        if kind == "word":
            entry.add(text, text)
        elif kind == "quoted":
            entry.add(text, _ESCAPED.sub(r"\1", match["quoted"]))
        elif kind == "space":
            entry.is_glued = False
        elif kind == "open":
            position = comment_ends.get(match.start(), position)
            entry.comment = value[match.end() : position - 1]
            entry.is_glued = entry.is_glued and (
                entry.is_open() or value[position : position + 1] in ("@", ".")
            )
        elif text == ":" and entry.has_at and entry.angle is None:
            entry.add(text, text)
        elif text == ":":
            entry, is_at_start = _Entry(), True
        elif kind == "mark" or (kind == "angle" and entry.angle is not None):
            if mailbox := entry.mailbox():
                tokens_left += MAX_TOKENS_EACH
                yield mailbox
            entry, is_at_start = _Entry(angle=match["angle"]), kind == "mark"
        elif kind == "angle":
            entry.angle = match["angle"]
        elif text == '"':
            pattern = _TOKEN_WITHOUT_QUOTES
    if mailbox := entry.mailbox():
        yield mailbox


def _comment_ends(value: str) -> dict[int, int]:
    """Return where the comment that opens at each position ends (RFC 5322 section 3.2.2: they nest)."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for match in islice(_PARENTHESES.finditer(value), MAX_PARENTHESES):
        if match[0] == "(":
            opened.append(match.start())
        elif match[0] == ")" and opened:
            ends[opened.pop()] = match.end()
    return ends


def _without_route(text: str) -> str:
    """Remove the hosts of an obsolete route, which end at the last colon (RFC 5322, 4.4)."""
    return text.rpartition(":")[2].strip() if text.startswith("@") else text


def _tidied(text: str) -> str:
    """Remove comments and spaces around the dots and the "@" of an address (RFC 5322, 4.4)."""
    if len(text) > MAX_NAME_LENGTH or '"' in text or not ("(" in text or " " in text or "\t" in text):
        return text
    text = _without_comments(text) if "(" in text else text
    return _AROUND_MARKS.sub(r"\1", text).strip()


def _without_comments(text: str) -> str:
    ends = _comment_ends(text)
    kept, read_to = "", 0
    for start in sorted(ends):
        if start >= read_to:
            kept, read_to = kept + text[read_to:start], ends[start]
    return kept + text[read_to:]


def _picked_address(words: list[str]) -> tuple[str, list[str]]:
    """Return the last word with an "@", and the other words.

    Spaces around the "@" and its dots are accepted.
    """
    merged: list[str] = []
    is_behind_dot = False
    for word in words:
        before = merged[-1] if merged else ""
        is_dot = word == "."
        if before and len(before) < MAX_ADDRESS_LENGTH and (is_behind_dot or _goes_on(before, word)):
            word = merged.pop() + word
        merged.append(word)
        is_behind_dot = is_dot
    place = max(index for index, word in enumerate(merged) if "@" in word)
    return merged[place], merged[:place] + merged[place + 1 :]


def _goes_on(before: str, word: str) -> bool:
    if before.endswith("@") or word.startswith(("@", ".")):
        return True
    # "a@x. example" goes on; the dot behind a whole address, or behind an initial, ends something.
    return "@" in before and before.endswith(".") and "." not in before.partition("@")[2][:-1]


def _plain_name(entry: re.Match[str]) -> str:
    quoted, words = entry[1], entry[2]
    return charset.clean_line(quoted or " ".join(words.split())) if quoted or words else ""


def _display_name(text: str) -> str:
    return charset.clean_line(headers.decode_words(text))[:MAX_NAME_LENGTH].strip()


def is_plausible(address: str) -> bool:
    """Return whether it could be an address: text on both sides of the "@", no space outside quotes."""
    local, domain = split(address)
    if not local or not domain or len(address) > MAX_ADDRESS_LENGTH:
        return False
    is_quoted = len(local) > 2 and local[0] == local[-1] == '"' and charset.clean_line(local) == local
    return not _NOT_IN_ADDRESS.search(domain if is_quoted else address)


def split(address: str) -> tuple[str, str]:
    """Return local part and domain; no domain when there is no "@"."""
    local, at, domain = address.rpartition("@")
    return (local, domain) if at else (address, "")


def normalize(address: str) -> str:
    """Return the form to compare: lower case, the domain in ASCII (xn--), no dot at its end."""
    return (_recall_normal if len(address) <= RECALLED_LENGTH else _to_normal)(address)


def _to_normal(address: str) -> str:
    if _PLAIN_ADDRESS.fullmatch(address):
        return address.lower()
    local, domain = split(charset.clean(address).strip())
    domain = _ascii_domain(domain.lower().rstrip("."))
    local = unicodedata.normalize("NFC", local[:MAX_ADDRESS_LENGTH].lower())
    return f"{local}@{domain}" if domain else local


_recall_normal = lru_cache(maxsize=RECALLED)(_to_normal)  # one send asks six times for its recipient


def _ascii_domain(domain: str) -> str:
    if domain.isascii() or len(domain) > 253:
        return domain
    try:
        return idna.encode(domain, uts46=True).decode("ascii")
    except UnicodeError:
        return domain


def with_readable_domain(address: str) -> str:
    """Return a normalized address with its domain as people write it: without xn--."""
    local, domain = split(address)
    if "xn--" not in domain:
        return address
    try:
        return f"{local}@{idna.decode(domain)}"
    except UnicodeError:
        return address


def base_of(address: str) -> str:
    """Return name+tag@domain without its tag: name@domain."""
    local, domain = split(address)
    base = local if local.startswith(('"', "+")) else local.partition("+")[0]
    return f"{base}@{domain}" if domain else base


def mailbox_of(address: str) -> str:
    """Return the form under which an inbox is found: without case and tag."""
    return (_recall_mailbox if len(address) <= RECALLED_LENGTH else _to_mailbox)(address)


def _to_mailbox(address: str) -> str:
    return normalize(base_of(address))


_recall_mailbox = lru_cache(maxsize=RECALLED)(_to_mailbox)


def find_plain(written: str) -> Address | None:
    """Return the valid address if nothing else is written and it needs no closer look."""
    plain = _PLAIN_ADDRESS.fullmatch(written)
    return None if plain is None else Address("", f"{plain[1]}@{plain[2].lower()}")


def validate(address: str) -> str:
    """Return the address, its domain in ASCII; ValueError says what is wrong with it."""
    plain = _PLAIN_ADDRESS.fullmatch(address)
    if plain:
        return f"{plain[1]}@{plain[2].lower()}"
    if len(address) > MAX_ADDRESS_LENGTH:
        raise ValueError("The email address is too long.")
    from email_validator import EmailNotValidError, validate_email  # slow to load, and not needed to start

    stand_in = _STAND_IN if normalize(address).rpartition("@")[2].rpartition(".")[2] in _SPECIAL_USE else ""
    try:
        valid = validate_email(address.removesuffix(".") + stand_in, check_deliverability=False, strict=True)
    except EmailNotValidError as error:
        raise ValueError(str(error)) from error
    return f"{valid.local_part}@{valid.ascii_domain.removesuffix(stand_in)}"
