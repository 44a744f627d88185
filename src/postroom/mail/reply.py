"""The new words of a reply: its text without quotes, the heads above them, and signatures.

Read line by line in one pass; nothing here looks further than a few lines around.
"""

import re

from postroom.mail.phrases import (
    DEVICE_LINES,
    FIRST_FIELDS,
    FORWARD_HEADS,
    HEAD_ENDS,
    HEAD_FIELDS,
    HEAD_STARTS,
    RULED_WORDS,
    one_of,
)

MAX_REPLY_CHARS = 100_000
MAX_HEAD_CHARS = 400
MAX_HEAD_LINES = 4
MAX_BLOCK_LINES = 8
MAX_DEVICE_LINE_CHARS = 80


_BLANK_RUN = re.compile(r"\n{3,}")
# How every line begins that may quote or end something, in lower case. Most lines do not, and need no look.
_NOTABLE = re.compile(
    r"\n(?:[^\S\n]|\*)*+(?:[\d>\uff1e_=—-]|\|>|"
    + one_of((*HEAD_STARTS, *DEVICE_LINES, *FORWARD_HEADS), "")
    + "|"
    + one_of(FIRST_FIELDS, r"[ \t\u00a0*]*+[:\uff1a]")
    + ")"
)


def reply_text(body_text: str) -> str:
    """Only what is new. When nothing is left, the text without quotes; empty when all of it is quoted."""
    text = body_text[:MAX_REPLY_CHARS]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines, notable = text.split("\n"), _notable_lines(text)
    if not notable:
        return _joined(lines)
    return _joined(_new_lines(lines, notable)) or _joined(_unquoted_lines(lines))


def _notable_lines(text: str) -> set[int]:
    lowered = f"\n{text}".lower()
    found: set[int] = set()
    place, line = 0, 0
    for match in _NOTABLE.finditer(lowered):
        line += lowered.count("\n", place, match.start())
        place = match.start()
        found.add(line)
    return found


def _joined(lines: list[str]) -> str:
    text = "\n".join(map(str.rstrip, lines))
    return (_BLANK_RUN.sub("\n\n", text) if "\n\n\n" in text else text).strip("\n")


def _new_lines(lines: list[str], notable: set[int]) -> list[str]:
    kept: list[str] = []
    place = 0
    while place < len(lines):
        if place not in notable:
            kept.append(lines[place])
            place += 1
            continue
        folded = _folded(lines[place])
        if _ends_the_reply(lines, place, folded):
            break
        head = _quote_head_lines(lines, place, folded)
        if head and not _quote_follows(lines, place + head):
            break
        if not head and not _is_quoted(lines[place]):
            kept.append(lines[place])
        place += head or 1
    return kept


def _unquoted_lines(lines: list[str]) -> list[str]:
    kept: list[str] = []
    place = 0
    while place < len(lines):
        head = _quote_head_lines(lines, place, _folded(lines[place]))
        if not head and not _is_quoted(lines[place]):
            kept.append(lines[place])
        place += head or 1
    return kept


def _is_quoted(line: str) -> bool:
    return line.lstrip(" \t\u00a0").startswith((">", "|>", "\uff1e"))


def _ends_the_reply(lines: list[str], place: int, folded: str) -> bool:
    if lines[place] in ("-- ", "--", "--\u00a0"):
        return True
    return bool(folded) and (
        _is_ruled(folded)
        or folded in FORWARD_HEADS
        or _is_device_line(folded)
        or _is_copied_head(lines, place)
        or (_is_rule(folded) and _is_copied_head(lines, _next_filled(lines, place)))
    )


def _folded(line: str) -> str:
    return line[:MAX_HEAD_CHARS].strip().strip("*").lower()


def _is_ruled(folded: str) -> bool:
    """Words between dashes, such as `-----Original Message-----`."""
    if not folded.startswith(("--", "__", "==", "—")):
        return False
    return folded.strip("-_=—* :").startswith(RULED_WORDS)


def _is_rule(folded: str) -> bool:
    return folded[0] in "-_=—" and len(folded) >= 3 and not folded.strip("-_=—")


def _is_device_line(folded: str) -> bool:
    return len(folded) <= MAX_DEVICE_LINE_CHARS and folded.startswith(DEVICE_LINES)


def _is_copied_head(lines: list[str], place: int) -> bool:
    """`From:` and at least two more header lines below it, as Outlook writes them above a quoted mail."""
    if place >= len(lines) or _field_of(lines[place]) not in FIRST_FIELDS:
        return False
    block = lines[place : place + MAX_BLOCK_LINES]
    return sum(_field_of(line) in HEAD_FIELDS for line in block) >= 3


def _field_of(line: str) -> str:
    start = line[:40]
    if ":" not in start and "\uff1a" not in start:
        return ""
    return start.replace("\uff1a", ":").partition(":")[0].strip(" \t\u00a0*").lower()


def _next_filled(lines: list[str], place: int) -> int:
    for following in range(place + 1, min(place + 3, len(lines))):
        if lines[following].strip():
            return following
    return len(lines)


def _quote_head_lines(lines: list[str], place: int, start: str) -> int:
    """How many lines an "On ... wrote:" head takes here; mail programs wrap it. 0: there is none."""
    if not start or not (start.startswith(HEAD_STARTS) or start[0].isdigit()):
        return 0
    joined = ""
    for count, line in enumerate(lines[place : place + MAX_HEAD_LINES], 1):
        folded = _folded(line)
        if not folded:
            return 0
        joined = f"{joined} {folded}".lstrip()
        if _is_quote_head(joined):
            return count
    return 0


def _is_quote_head(joined: str) -> bool:
    if len(joined) > MAX_HEAD_CHARS:
        return False
    ends_as_head = joined.endswith(HEAD_ENDS) or (joined.endswith((">:", "> :", ">\uff1a")) and "@" in joined)
    return ends_as_head and any(letter.isdigit() for letter in joined)


def _quote_follows(lines: list[str], place: int) -> bool:
    following = _next_filled(lines, place - 1)
    return following < len(lines) and _is_quoted(lines[following])
