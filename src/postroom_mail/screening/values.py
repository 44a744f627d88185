"""Values in a text that somebody could be made to carry elsewhere: addresses, links, accounts, phrases.

Each is a kind and a form in which two spellings of it are equal.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import chain, filterfalse, islice
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from postroom_mail.languages.folding import TO_LATIN
from postroom_mail.mime.address import mailbox_of, normalize
from postroom_mail.screening import checksums, pieces
from postroom_mail.screening.disguises import MOST_CHARACTERS_TWICE, hidden_in, readable, turned, undone
from postroom_mail.screening.hosts import bare_hosts, is_reachable, number_of_host, says_something, with_calls
from postroom_mail.screening.known_names import COMMON_HOSTS
from postroom_mail.screening.marks import marked_of, may_be_marked, numbers_in
from postroom_mail.screening.said import Said, shapes_of
from postroom_mail.screening.spellings import is_ordinary, spelled

ADDRESS, LINK, HOST, TELEPHONE = "address", "link", "host", "telephone"
IBAN, CARD, CRYPTO = "iban", "card", "crypto"
CODE, TOKEN, HASH, PHRASE, FILE = "code", "token", "hash", "phrase", "file"
KINDS = (ADDRESS, LINK, HOST, TELEPHONE, IBAN, CARD, CRYPTO, CODE, TOKEN, HASH, PHRASE, FILE)

MOST_CHARACTERS = 100_000  # of one text that is looked through
MOST_VALUES = 200
MOST_CARRIED = 10_000  # of the texts of a send
MOST_TURNED = 50  # words that may be encoded and then turned around
OVERLAP = 500  # of the pieces of a long text
MOST_PHRASES = 8
LINKS_OF_A_HOST = 4
PHRASE_WORDS = 8  # of which the first one is long
SHOWN_CHARACTERS = 200
MIN_TELEPHONE, MAX_TELEPHONE, COMPARED_DIGITS = 8, 15, 8
MIN_TOKEN, MIN_SEGMENT = 20, 10
DIFFERENT_DIGITS = 3  # of a telephone number: fewer are a counter or zeros
SHORTEST, LONGEST_CODE, LONGEST_CODE_WORD = 4, 10, 16  # a one-time code: of digits, and with letters
SHORTEST_ACCOUNT = 26  # of a cryptocurrency
HASH_LENGTHS = frozenset((32, 40, 56, 64, 96, 128))

_BEFORE_AT = re.compile(r"[\w!#$%&'*+/=?^`{|}~.-]{1,64}+")
_AROUND_A_NAME = re.compile(r"[!#$%&'*/=?^`{|}~]+[._+-]*|\A[._+-]+")  # of quotes, Markdown or a link
_DOMAIN = re.compile(r"[\w-]{1,63}+(?>(?:\.[\w-]{1,63}+)+)")
_URL = re.compile(r"://([^\s<>\"'`\\^{|}]+)")
# Digits with at most two signs between each: as many as a telephone number has, or two behind two letters.
_NUMBERS = re.compile(rb"0(?:(?:-{0,2}0){7,}+|(?<=aa0)0(?:-{0,2}0)*+)")
_IBAN_HEAD = b"aa00"
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?!\d)|\d{1,2}[./-]\d{1,2}[./-](?:\d\d){1,2}(?!\d)")
_NUMBERS_OF_A_HOST = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}")
_TOKENISH = re.compile(r"[A-Za-z0-9_-]{20,}+")
_SEGMENT = re.compile(r"[-_]")
_DIGIT = re.compile(r"[0-9]")
_ENCODED = re.compile(r"[A-Za-z0-9+/_=-]{12,}")
_NO_DIGIT = re.compile(r"[^0-9]+")
_TRAILING = ".,;:!?)]}>*_~\"'\u2019\u201d\u00bb\u3002"
_EDGES = "\"'<>().,;:!?[]{}*_`\u201c\u201d\u2018\u2019\u00ab\u00bb"


class Value(Struct, frozen=True):
    """`key` is equal for all spellings; `shown` is how it is written, `within` the address around it."""

    kind: str
    key: str
    shown: str
    within: str = ""
    is_piece: bool = False  # it could be a part of a value


Found = dict[str, Value]  # by key


def held_by(text: str, new_words: str | None = None) -> Found:
    """Return the values of a received text, also encoded ones, and phrases of what is new in it."""
    text = text[:MOST_CHARACTERS]
    said = Said(readable(text))
    found: Found = {}
    _collect(found, said)
    for plain in undone(said):
        _collect(found, Said(readable(plain)))
    if new_words is not None and (new := new_words[:MOST_CHARACTERS]).strip() != text.strip():
        said = Said(readable(new))
    for phrase in _phrases(said, MOST_PHRASES):
        found[phrase.key] = phrase
    return found


def with_few_links(found: Found) -> Found:
    """Return the values to store of a message: of a host that is a value itself only its first links."""
    kept: Found = {}
    links: Counter[str] = Counter()
    for key, value in found.items():
        host = domain_in(value) if value.kind == LINK else ""
        links[host] += 1
        if not host or host in COMMON_HOSTS or links[host] <= LINKS_OF_A_HOST:
            kept[key] = value
    return kept


def carried_by(texts: Iterable[str], most: int = MOST_CARRIED) -> Found:
    """Return all values that texts to be sent could carry, also turned around, and all of their phrases."""
    found: Found = {}
    given = list(texts)
    for text in chain.from_iterable(map(_pieces_of, (*given, *filter(None, map(hidden_in, given))))):
        said = Said(readable(text))
        marked = marked_of(said) if said.has_digits or may_be_marked(said.text) else []
        numbers = numbers_in(said) if said.has_digits else []
        _collect(found, said, most)
        for form in _forms_of(said, marked):
            _collect(found, form, most)
            if form.has_digits:
                numbers += numbers_in(form)
                marked += filter(_DIGIT.search, filterfalse(str.isalpha, form.words))
        if numbers or marked:
            _collect_codes(found, numbers, marked)
        for each in _phrases(said, len(said.words)) if len(said.words) >= PHRASE_WORDS else ():
            found.setdefault(each.key, each)
        for kind, compared, shown in islice(_in_pieces(said), most) if said.has_digits else ():
            if (key := f"{kind}:{compared}") not in found:
                found[key] = Value(kind, key, shown, is_piece=kind != IBAN)
    return with_calls(found)


def _forms_of(said: Said, marked: Sequence[str]) -> Iterator[Said]:
    """Yield what a text stands for once it is decoded, put together or turned around, and what that does."""
    forms = [] if is_ordinary(said) else [*undone(said), *spelled(said)]
    for word in islice(filter(_ENCODED.fullmatch, tuple(marked)), MOST_TURNED):
        forms += chain.from_iterable(undone(Said(form)) for form in turned("", [word]))
    if marked or "\n" in said.text:
        for form in turned(said.text, marked):
            if marked != [form]:  # which the text has too
                yield Said(form)
    if forms and (form := _together(forms)):
        yield (whole := Said(form))
        some = whole if len(form) <= MOST_CHARACTERS_TWICE else Said(form, MOST_CHARACTERS_TWICE)
        yield Said(_together([*undone(some), *spelled(some), *turned(form, some.words)]))


def _together(forms: Iterable[str]) -> str:
    return apart(readable(form) for form in dict.fromkeys(forms) if len(form) >= SHORTEST)


def _in_pieces(said: Said) -> Iterator[tuple[str, str, str]]:
    """Yield numbers and parts of tokens in words that stand together, whatever signs are between them.

    Each is its kind, the form to compare by, and the one to show.
    """
    runs = list(pieces.runs_in(said.words, said.digits))
    together = "\n".join(runs)
    if len(together) >= pieces.SHORTEST_IBAN:
        for iban in pieces.ibans_in(together):
            yield IBAN, iban, iban
    for digits in pieces.digits_in(together):
        if len(digits) >= checksums.CARD_LENGTHS[0]:
            for card in pieces.cards_in(digits):
                yield CARD, card, card
        if MIN_TELEPHONE <= len(digits) <= MAX_TELEPHONE and len(set(digits)) >= DIFFERENT_DIGITS:
            yield TELEPHONE, digits[-COMPARED_DIGITS:], digits
        if SHORTEST <= len(digits) <= LONGEST_CODE:
            yield CODE, digits, digits
    if len(together) >= pieces.SHORTEST_ACCOUNT:
        for small in pieces.hashes_in(together, HASH_LENGTHS):
            yield HASH, small, small
        for account in filter(checksums.is_crypto, pieces.accounts_in(together)):
            yield CRYPTO, account, account
    for run in runs:
        if len(run) >= pieces.PART:
            for part in pieces.parts_in(run):
                yield TOKEN, part, part


def _pieces_of(text: str) -> Sequence[str]:
    """Return a long text in pieces that overlap: nothing is hidden behind the first one."""
    if len(text) <= MOST_CHARACTERS:
        return (text,)
    starts = range(0, len(text) - OVERLAP, MOST_CHARACTERS - OVERLAP)
    return [text[at : at + MOST_CHARACTERS] for at in starts]


def apart(texts: Iterable[str]) -> str:
    """Return short texts as one to look through, where no number goes on into the next.

    Between numbers stands a word with a digit, since words without one are left out where texts are turned.
    """
    parts = list(filter(None, texts))
    with_numbers = sum(any(map(str.isdigit, part)) for part in parts)
    return (" |0| " if with_numbers > 1 else " | ").join(parts)


def _phrases(said: Said, most: int) -> Iterator[Value]:
    words = said.words
    last = len(words) - PHRASE_WORDS
    starts = [at for at in said.long if at <= last]
    if len(starts) > most:
        sums = {at: crc32(words[at].lower().strip(_EDGES).encode(errors="replace")) for at in starts}
        starts = sorted(starts, key=sums.__getitem__)[:most]
    for at in starts:
        if not words[at].strip(_EDGES).isalpha():
            continue
        written = [word.strip(_EDGES) for word in words[at : at + PHRASE_WORDS]]
        if all(written):
            phrase = " ".join(written).lower()
            yield _value(PHRASE, phrase, phrase)


def _collect_codes(found: Found, numbers: Iterable[str], words: Iterable[str]) -> None:
    """Add all that could be a one-time code: digits, also in groups, and words with a digit in them."""
    for written in dict.fromkeys(numbers):
        digits = written if written.isdecimal() else _NO_DIGIT.sub("", written)
        is_year = len(digits) == 4 and digits[:2] in ("19", "20")
        if (
            SHORTEST <= len(digits) <= LONGEST_CODE
            and not is_year
            and (key := f"{CODE}:{digits}") not in found
        ):
            found[key] = Value(CODE, key, digits)
    for word in filter(_DIGIT.search, dict.fromkeys(words)):
        letters = word.strip(_EDGES).replace("-", "")
        if (
            SHORTEST <= len(letters) <= LONGEST_CODE_WORD
            and letters.isalnum()
            and f"{CODE}:{letters}" not in found
        ):
            found.setdefault((value := code(letters)).key, value)


def code(written: str) -> Value:
    """Return a one-time code as a value."""
    large = written.upper()
    return _value(CODE, large if large.isalnum() else "".join(filter(str.isalnum, large)), written)


def file(content: bytes, filename: str) -> Value:
    """Return a file as a value, by the hash of its content."""
    return _value(FILE, sha256(content).hexdigest(), filename)


def address(written: str) -> Value:
    """Return an email address as a value."""
    return _value(ADDRESS, _folded(mailbox_of(written)), written)


@lru_cache(maxsize=1_000)  # an inbox writes to the same few addresses
def inside(written: str) -> Mapping[str, Value]:
    """Return what somebody may write into an address: into the local part, and labels of its domain."""
    local, _, domain = written.rpartition("@")
    found = carried_by((apart((local, domain.replace(".", " "))),))
    return {key: replace(value, within=normalize(written)) for key, value in found.items()}


def domain_in(value: Value) -> str:
    """Return the domain of an address, a host or a link; "" for any other value."""
    said = value.key.partition(":")[2]
    if value.kind == ADDRESS:
        return said.rpartition("@")[2]
    return said.partition("/")[0].rstrip("(") if value.kind in (HOST, LINK) else ""


def _value(kind: str, key: str, shown: str) -> Value:
    return Value(kind, f"{kind}:{key}", shown[:SHOWN_CHARACTERS])


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else readable(text).lower().translate(TO_LATIN)


def _collect(found: Found, said: Said, most: int = MOST_VALUES) -> None:
    for value in _values(said):
        if len(found) >= most:
            return
        found.setdefault(value.key, value)


def _values(said: Said) -> Iterator[Value]:
    text, shapes = said.text, said.shapes
    if "@" in text:
        yield from _addresses(text)
    if "://" in text:
        for url in _URL.finditer(text):
            for rest in url[1].split("://"):  # a link may name another one
                yield from _of_link(rest)
        text = _URL.sub(_query_of, text)
        shapes = shapes_of(text)
    if "." in text:
        for host in bare_hosts(text):
            yield from _of_link(host)
    if said.has_digits:
        yield from _of_numbers(text, shapes)
    if said.long and (long := [said.words[at] for at in said.places_from(MIN_TOKEN)]):
        yield from _tokens("\n".join(long))


def _addresses(text: str) -> Iterator[Value]:
    """At each sign its two sides: the text is not searched for what could stand in front of one."""
    at = text.find("@")
    while at >= 0:
        local = _BEFORE_AT.match(text[max(0, at - 64) : at][::-1])
        domain = _DOMAIN.match(text, at + 1)
        if local and domain:
            name = local[0][::-1].lstrip(".")
            host = domain[0].rstrip("_-")
            for each in dict.fromkeys((name, _AROUND_A_NAME.split(name)[-1])):  # a name may have these too
                if each:
                    written = f"{each}@{host}"
                    yield _value(ADDRESS, _folded(mailbox_of(written)), written)
        at = text.find("@", at + 1)


def _of_link(rest: str) -> Iterator[Value]:
    """The host, and the link without its query: who carries one may add to it."""
    rest = rest.rstrip(_TRAILING)
    authority = rest.partition("/")[0].partition("?")[0].partition("#")[0]
    host = _folded(authority.rpartition("@")[2].partition(":")[0]).strip(".")
    if not host:
        return
    host = number_of_host(host)
    name = host.removeprefix("www.")
    path = rest[len(authority) :].partition("?")[0].partition("#")[0].rstrip("/")
    if says_something(name):
        yield _value(HOST, name, host)
    if len(path) > 1:
        yield _value(LINK, f"{name}{path}", f"{authority}{path}")
    if len(rest) >= MIN_TOKEN:
        yield from _tokens(rest)


def _query_of(url: re.Match[str]) -> str:
    """Return what a link says behind its path: it may name a host, a number or an address."""
    return f" {url[1].partition('?')[2].replace('&', ' ')}"


def _of_numbers(text: str, shapes: bytes) -> Iterator[Value]:
    for group in _NUMBERS.finditer(shapes):
        start, end = group.span()
        if shapes.endswith(_IBAN_HEAD, 0, start + 2) and (iban := checksums.iban_at(text, start - 2)):
            yield _value(IBAN, iban, iban)
        elif shapes.count(b"0", start, end) >= MIN_TELEPHONE:
            yield from _of_long_number(text[max(0, start - 1) : start], text[start:end])


def _of_long_number(before: str, written: str) -> Iterator[Value]:
    digits = _NO_DIGIT.sub("", written)
    if checksums.is_card(digits):
        yield _value(CARD, digits, written)
    elif _NUMBERS_OF_A_HOST.fullmatch(written):
        if is_reachable(written):
            yield _value(HOST, written, written)
    elif _is_telephone(before, written, digits):
        yield _value(TELEPHONE, digits[-COMPARED_DIGITS:], written)


def _is_telephone(before: str, written: str, digits: str) -> bool:
    """With a plus, a zero or gaps; a date and a point of time are none."""
    if len(digits) > MAX_TELEPHONE or _DATE.search(written) or before.isalnum():
        return False
    if len(set(digits)) < DIFFERENT_DIGITS:
        return False
    return before in ("+", "(") or written[0] == "0" or len(written) - len(digits) >= 2


def _tokens(text: str) -> Iterator[Value]:
    for token in _TOKENISH.finditer(text):
        yield from _of_token(token[0])


def _of_token(written: str) -> Iterator[Value]:
    if len(written) < SHORTEST_ACCOUNT and written.isalpha():
        return
    small = written.lower()
    if len(written) in HASH_LENGTHS and checksums.is_hexadecimal(small):
        yield _value(HASH, small, written)
    elif checksums.is_crypto(written):
        yield _value(CRYPTO, small if small.startswith(("0x", "bc1", "ltc1", "tb1")) else written, written)
        yield _value(TOKEN, pieces.part_of_token(written), written)
    elif _is_random(written):
        yield _value(TOKEN, pieces.part_of_token(written), written)


def _is_random(written: str) -> bool:
    """Return whether a piece of it mixes letters and digits: words joined by dashes do not."""
    for piece in _SEGMENT.split(written):
        if len(piece) >= MIN_SEGMENT and not piece.isdigit() and len(_DIGIT.findall(piece)) > 1:
            return True
    return False
