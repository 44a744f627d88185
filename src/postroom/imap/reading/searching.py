"""SEARCH: the index finds candidates; then rows, documents and the emails themselves decide."""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime

import msgspec
from msgspec import Struct, structs

from postroom.clock import DAY
from postroom.errors import ApiError
from postroom.imap import listing
from postroom.imap.dialogue.requests import STAR, SearchKey, SearchMails
from postroom.imap.state import ImapState
from postroom.imap.view import FolderView, batches
from postroom.mailbox import draft_mail, drafts, messages, raw_mails
from postroom.mailbox.folders import views
from postroom.mailbox.folders.views import FolderMail
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.search import message_search as search_index
from postroom.resources import Blobs, Tx
from postroom_mail.mime import headers, imap_values
from postroom_mail.mime.headers import Headers
from postroom_mail.search.query import Field

SECONDS = 20.0  # then the search ends with NO (RFC 9051 section 7.1.2)
ROWS_TOGETHER = 500
DOCUMENTS_TOGETHER = 50
HEADER_BYTES = 64 * 1024  # in which a search for a field looks
BY_INDEX_ABOVE = 2_000  # in smaller folders each email is read, and any substring is found
MOST_BY_INDEX = 20_000
INDEXED: dict[str, Field] = {
    "TEXT": "",
    "BODY": "",
    "SUBJECT": "subject",
    "FROM": "from",
    "TO": "to",
    "CC": "to",
}
IN_DOCUMENT = {"BCC", "BODY", "CC", "FROM", "SUBJECT", "TEXT", "TO"}
ADDRESSES = {"BCC", "CC", "FROM", "TO"}
IN_HEADER = {"HEADER", "SENTBEFORE", "SENTON", "SENTSINCE"}


class SearchedText(Struct, rename="camel", frozen=True):
    """The fields of a document that are searched."""

    from_addr: str = ""
    header_to: str = ""
    to_addr: str = ""
    cc: list[str] = []
    bcc: list[str] = []
    subject: str = ""
    body_text: str = ""


class Candidate(Struct):
    mail: FolderMail
    number: int
    text: SearchedText | None = None
    headers: Headers | None = None


async def search(client: ImapState, request: SearchMails) -> bytes:
    view = client.selected
    assert client.inbox is not None
    found = await client.resources.db.read_long(
        _search, SECONDS, client.inbox, view, request.key, client.resources.blobs
    )
    listing.want_modseq(client, request.wants_modseq)
    uids = [candidate.mail.uid for candidate in found]
    shown = uids if request.by_uid else [candidate.number for candidate in found]
    modseq = max((candidate.mail.modseq for candidate in _told(request, found)), default=0)
    if request.returns is None:
        tail = b" (MODSEQ %d)" % modseq if request.wants_modseq and found else b""
        said = b"".join(b" %d" % number for number in shown)
        client.output.write(b"* SEARCH" + said + tail + b"\r\n")
    else:
        client.output.write(_extended(request, shown, modseq))
    await listing.write_changes(client, may_expunge=request.by_uid, by_uid=request.by_uid)
    return b"OK Done."


def _told(request: SearchMails, found: "list[Candidate]") -> "list[Candidate]":
    """Return those whose MODSEQ counts.

    Of MIN and MAX alone, the first and the last (RFC 7162 section 3.1.10).
    """
    if request.returns is None or not found or not set(request.returns) <= {"MIN", "MAX"}:
        return found
    ends = {"MIN": found[0], "MAX": found[-1]}
    return [ends[word] for word in request.returns]


def _extended(request: SearchMails, shown: list[int], modseq: int) -> bytes:
    """Return an ESEARCH response (RFC 4731); its tag names the command that it answers (RFC 4466, 2.6.2)."""
    assert request.returns is not None
    words = [b'* ESEARCH (TAG "%s")' % request.tag]
    if request.by_uid:
        words.append(b"UID")
    if "COUNT" in request.returns:
        words.append(b"COUNT %d" % len(shown))
    if shown:
        if "MIN" in request.returns:
            words.append(b"MIN %d" % shown[0])
        if "MAX" in request.returns:
            words.append(b"MAX %d" % shown[-1])
        if "ALL" in request.returns:
            words.append(b"ALL " + imap_values.numbers(shown))
        if request.wants_modseq:
            words.append(b"MODSEQ %d" % modseq)
    return b" ".join(words) + b"\r\n"


def _search(tx: Tx, inbox: Inbox, view: FolderView, key: SearchKey, blobs: Blobs) -> list[Candidate]:
    uids, key = view.uids.tolist(), _with_ranges(view, key)
    if len(uids) > BY_INDEX_ABOVE and (few := _find_few(tx, inbox, view, key)) is not None:
        uids = few
    found: list[Candidate] = []
    for some in batches(uids, ROWS_TOGETHER):
        rows = views.list_mails(tx, inbox.id, view.folder, some)
        numbered = [(mail, view.number_of(mail.uid)) for mail in rows]
        candidates = [Candidate(mail, number) for mail, number in numbered if number is not None]
        found += _MailReader(tx, inbox, blobs).matching(view, key, candidates)
    return found


def _with_ranges(view: FolderView, key: SearchKey) -> SearchKey:
    """Sets of numbers are put in order once, not for each email."""
    if key.name == "RECENT":
        return structs.replace(key, ranges=tuple(view.recent))
    if key.which is not None:
        last = view.last_uid if key.name == "UID" else len(view.uids)
        return structs.replace(key, ranges=tuple(key.which.ranges(last)))
    return structs.replace(key, keys=tuple(_with_ranges(view, inner) for inner in key.keys))


def _find_few(tx: Tx, inbox: Inbox, view: FolderView, key: SearchKey) -> list[int] | None:
    """Return the UIDs that can match at all, by words that every match must have."""
    wanted = key.keys if key.name == "AND" else (key,)
    sought = [(INDEXED[each.name], each.value) for each in wanted if each.name in INDEXED]
    if not sought:
        return None
    found = search_index.find_ids(tx, inbox.scope, sought, MOST_BY_INDEX)
    if found is None:
        return None
    asked = sorted(found)
    uids: list[int] = []
    for some in batches(asked, ROWS_TOGETHER):
        uids += views.find_uids(tx, inbox.id, view.folder, some).values()
    return sorted(uids)


class _MailReader:
    """Reads what is not in the rows."""

    def __init__(self, tx: Tx, inbox: Inbox, blobs: Blobs) -> None:
        self._tx, self._inbox, self._blobs = tx, inbox, blobs

    def matching(self, view: FolderView, key: SearchKey, candidates: list[Candidate]) -> list[Candidate]:
        """Match in up to three rounds, each for those that the one before could not decide."""
        answers = {id(each): _matches(view, key, each) for each in candidates}
        for read in (self._read_documents, self._read_headers):
            open_ones = [each for each in candidates if answers[id(each)] is None]
            for part in batches(open_ones, DOCUMENTS_TOGETHER):
                read(part)
                answers |= {id(each): _matches(view, key, each) for each in part}
                for each in part:
                    if answers[id(each)] is not None:
                        each.text = each.headers = None
        return [each for each in candidates if answers[id(each)]]

    def _read_documents(self, part: Sequence[Candidate]) -> None:
        decode = msgspec.json.Decoder(SearchedText).decode
        found = {
            message.id: decode(message.stored[0])
            for message in messages.list_by_ids(self._tx, [each.mail.message_id for each in part])
        }
        for each in part:
            each.text = found.get(each.mail.message_id) or self._text_of_draft(each.mail.message_id)

    def _text_of_draft(self, draft_id: str) -> SearchedText:
        draft = drafts.find(self._tx, self._inbox.scope, draft_id)
        if draft is None:
            return SearchedText()
        fields = draft_mail.fields_of(draft)
        return SearchedText(
            from_addr=self._inbox.sender,
            header_to=", ".join(fields.to),
            cc=fields.cc,
            bcc=fields.bcc,
            subject=fields.subject,
            body_text=fields.body,
        )

    def _read_headers(self, part: Sequence[Candidate]) -> None:
        heads = raw_mails.heads(self._tx, [each.mail.message_id for each in part])
        for each in part:
            head = heads.get(each.mail.message_id)
            each.headers = headers.split(self._head(each) if head is None else head, 0).headers

    def _head(self, each: Candidate) -> bytes:
        """Return the header of a draft, a large email, or one with a long header."""
        draft = drafts.find(self._tx, self._inbox.scope, each.mail.message_id)
        if draft is not None:
            return draft_mail.write(self._inbox, draft, (), self._blobs.get)
        try:
            raw = raw_mails.get(self._tx, each.mail.message_id)
            content = raw.content if raw.blob is None else next(self._blobs.stream(raw.blob), b"")
        except (ApiError, OSError):
            return b""
        return (content or b"")[:HEADER_BYTES]


def _matches(view: FolderView, key: SearchKey, each: Candidate) -> bool | None:
    """Return None while it is not decided."""
    match key.name:
        case "AND":
            return _all([_matches(view, inner, each) for inner in key.keys])
        case "OR":
            return _negated(_all([_negated(_matches(view, inner, each)) for inner in key.keys]))
        case "NOT":
            return _negated(_matches(view, key.keys[0], each))
    if key.name in IN_DOCUMENT:
        found = None if each.text is None else _is_in_text(key, each.text)
        if found is not False or key.name not in ADDRESSES:
            return found
        # Names of groups, further senders and Bcc are in the header alone.
        return None if each.headers is None else _is_in_field(key.name.lower(), key.value, each.headers)
    if key.name in IN_HEADER:
        return None if each.headers is None else _is_in_header(key, each.headers)
    return _is_of_row(key, each)


def _all(answers: list[bool | None]) -> bool | None:
    if False in answers:
        return False
    return None if None in answers else True


def _negated(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def _is_of_row(key: SearchKey, each: Candidate) -> bool:
    mail = each.mail
    match key.name:
        case "FLAG":
            return key.value.lower() in {flag.lower() for flag in mail.flags}
        case "NUMBERS" | "RECENT" | "UID":
            number = each.number if key.name == "NUMBERS" else mail.uid
            at = bisect_right(key.ranges, (number, STAR)) - 1
            return at >= 0 and number <= key.ranges[at][1]
        case "LARGER":
            return mail.size_bytes > key.number
        case "SMALLER":
            return mail.size_bytes < key.number
        case "BEFORE" | "ON" | "SINCE":
            return _is_of_day(key.name, mail.created_at, key.number)
        case "MODSEQ":
            return mail.modseq >= key.number
    return True


def _is_of_day(name: str, at: int, day: int) -> bool:
    if name.endswith("BEFORE"):
        return at < day
    return at >= day if name.endswith("SINCE") else day <= at < day + DAY


def _is_in_text(key: SearchKey, text: SearchedText) -> bool:
    fields = {
        "FROM": (text.from_addr,),
        "TO": (text.header_to or text.to_addr,),
        "CC": text.cc,
        "BCC": text.bcc,
        "SUBJECT": (text.subject,),
        "BODY": (text.body_text,),
        "TEXT": (text.subject, text.from_addr, text.header_to, *text.cc, text.body_text),
    }[key.name]
    wanted = key.value.casefold()
    return any(wanted in field.casefold() for field in fields)


def _is_in_header(key: SearchKey, fields: Headers) -> bool:
    if key.name == "HEADER":
        return _is_in_field(key.field, key.value, fields)
    try:  # the day as it is written, whatever its zone (RFC 3501 section 6.4.4)
        day = parsedate_to_datetime(fields.text("date")).replace(tzinfo=UTC)
        return _is_of_day(key.name, int(day.timestamp() * 1000), key.number)
    except (ValueError, TypeError, OverflowError):
        return False


def _is_in_field(name: str, value: str, fields: Headers) -> bool:
    if name not in fields.fields:
        return False
    return value.casefold() in headers.decode_words(fields.joined(name)).casefold()
