"""The address lists of a request: split in one pass, with limits checked before any address is parsed."""

import re
from collections.abc import Iterator

from postroom import limits
from postroom.errors import BadRequest
from postroom.processes import pools
from postroom_mail.mime.address import Address, find_plain, parse_list, validate
from postroom_mail.writing.header_words import CONTROL

LIST_LIMIT_CHARACTERS = 50_000
LIST_LIMIT_ENTRIES = 1_000  # some of which may be empty
ENTRY_LIMIT_CHARACTERS = 2_000
SMALL_LISTS_CHARACTERS = 500

_COMMENT = re.compile(r"\([^()]*+\)")
# Possessive, and an unclosed quote or bracket is an error, so that no character is read twice.
_PIECE = re.compile(r'"(?:[^"\\]++|\\.)*+"|<[^>]*+>|[^,"<]++|,|(?P<unclosed>["<])', re.DOTALL)


def read_addresses(field: str, value: str | list[str]) -> tuple[Address, ...]:
    if not value:
        return ()
    if isinstance(value, str) and (plain := find_plain(value)) is not None:
        return (plain,)
    items = [value] if isinstance(value, str) else value
    if characters(items) - 1 > LIST_LIMIT_CHARACTERS:
        raise BadRequest(f"{field} has more than {LIST_LIMIT_CHARACTERS:,} characters.", field=field)
    written: list[str] = []
    for item in items:
        if CONTROL.search(item):
            raise BadRequest(f"{field} must not have control characters.", field=field)
        for entry in _entries(field, item):
            written.append(entry)
            if len(written) > limits.RECIPIENTS:
                raise BadRequest(f"An email can have {limits.RECIPIENTS} recipients.", field=field)
    return tuple([read_address(field, entry) for entry in written])


async def read_long_list(field: str, value: str | list[str]) -> tuple[Address, ...]:
    """Read a list of addresses in a thread unless it is short: checking one can take a millisecond."""
    if characters(value) <= SMALL_LISTS_CHARACTERS:
        return read_addresses(field, value)
    return await pools.COMPOSING.run(read_addresses, field, value)


def characters(value: str | list[str]) -> int:
    return len(value) if isinstance(value, str) else sum(map(len, value)) + len(value)


def _entries(field: str, text: str) -> Iterator[str]:
    """Return the non-empty parts between commas outside quotes and angle brackets."""
    start, commas = 0, 0
    for piece in _PIECE.finditer(text):
        if piece["unclosed"]:
            raise _unusable(field, text[start:], f"Its {piece[0]} is never closed.")
        if piece[0] == ",":
            commas += 1
            if commas >= LIST_LIMIT_ENTRIES:
                raise BadRequest(f"{field} can have {LIST_LIMIT_ENTRIES} entries.", field=field)
            yield from _written(field, text[start : piece.start()])
            start = piece.end()
    yield from _written(field, text[start:])


def _written(field: str, entry: str) -> Iterator[str]:
    entry = entry.strip()
    if len(entry) > ENTRY_LIMIT_CHARACTERS:
        raise _unusable(
            field, entry, f"An address with its name can have {ENTRY_LIMIT_CHARACTERS} characters."
        )
    if entry:
        yield entry


def read_address(field: str, entry: str) -> Address:
    parsed = parse_list(entry)
    try:
        if len(parsed) != 1 or _is_loose(entry):
            raise ValueError("It is not an email address.")
        return Address(parsed[0].name, validate(parsed[0].address))
    except ValueError as error:
        raise _unusable(field, entry, str(error)) from None


def _unusable(field: str, entry: str, why: str) -> BadRequest:
    return BadRequest(f"{field}: '{entry.strip()[:100]}' cannot be used. {why}", field=field)


def _is_loose(entry: str) -> bool:
    """Return whether it is several words without angle brackets: a sender must not guess the address."""
    return "<" not in entry and len(_COMMENT.sub("", entry).split()) > 1


def read_reply_to(value: str | None) -> str | None:
    if value is None:
        return None
    (address,) = read_addresses("replyTo", value)[:1] or [None]
    if address is None:
        raise BadRequest("replyTo is not an email address. Use name@example.com.", field="replyTo")
    return str(address)
