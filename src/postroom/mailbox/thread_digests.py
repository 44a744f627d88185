"""Digests of threads: who takes part, and the newest text, kept in the thread's row.

A list of threads reads no message. Each new message adds itself to the digest. A change that cannot be added
leaves null; then a list makes the digest from the newest messages, and the background stores it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postroom.mailbox import documents, messages
from postroom.mailbox.documents import Document, Verdict
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import INBOUND
from postroom.mailbox.threads import VERDICTS, Thread
from postroom.storage.database import SKIP_LOCKED, Tx, all_of
from postroom_mail.html.text import visible
from postroom_mail.mime.address import Address, mailbox_of, normalize, parse_list

PEOPLE = 10
PREVIEW_CHARACTERS = 200
MOSTLY_ENOUGH_CHARACTERS = 300  # of a text, for a whole preview
NAME_CHARACTERS = 100
READ_CHARACTERS = 2_000  # of a text, for its preview
READ_PEOPLE = 50  # of a message
READ_MESSAGES = 20  # of a thread whose digest is made anew
FILLED_AT_ONCE = 50

Person = tuple[str, str]  # name and address
Direction = Literal["inbound", "outbound"]


class Digest(Struct, frozen=True, array_like=True):
    at: int = 0  # when its newest message came
    direction: Direction | None = None
    sender: Person = ("", "")
    people: list[Person] = []
    preview: str = ""
    codes: list[str] = []
    has_files: bool = False
    has_own: bool = False  # the inbox wrote in it


class ThreadDigest(Struct, frozen=True):
    """A digest, and the worst verdict of the thread's messages."""

    digest: Digest
    verdict: Verdict | None


EMPTY = Digest()  # of a thread whose messages are all in Trash
_decoder = msgspec.json.Decoder(Digest)


def preview(text: str) -> str:
    """Return the beginning of a text in one line, without invisible characters."""
    head = text[:MOSTLY_ENOUGH_CHARACTERS]
    if head.isascii() and len(line := " ".join(visible(head).split())) >= PREVIEW_CHARACTERS:
        return line[:PREVIEW_CHARACTERS].rstrip()
    return " ".join(visible(text[:READ_CHARACTERS]).split())[:PREVIEW_CHARACTERS].rstrip()


def of_inbox(inbox: Inbox) -> frozenset[str]:
    return inbox.mailboxes


def of_document(document: Document, has_files: bool, at: int, own: Collection[str]) -> Digest:
    """Return the digest of a thread that has this message alone; `own` are the inbox's addresses."""
    to = parse_list(documents.first_addresses(document.header_to or document.to_addr))
    cc = parse_list(documents.first_addresses(", ".join(document.cc[:READ_PEOPLE])))
    return of_parts(
        "inbound" if document.direction == INBOUND else "outbound",
        document.from_addr,
        (*to, *cc),
        document.reply_text or document.body_text,
        document.codes,
        has_files,
        at,
        own,
    )


def of_parts(
    direction: Direction,
    from_addr: str,
    others: Sequence[Address],
    text: str,
    codes: list[str],
    has_files: bool,
    at: int,
    own: Collection[str],
) -> Digest:
    found = parse_list(documents.first_addresses(from_addr))
    sender = _person(found[0]) if found else (plain_name(from_addr), "")
    listed = [_person(each) for each in others[:READ_PEOPLE]]
    people = [each for each in (sender, *listed) if not each[1] or mailbox_of(each[1]) not in own]
    return Digest(
        at, direction, sender, _once(people), preview(text), codes, has_files, direction == "outbound"
    )


def _person(address: Address) -> Person:
    return plain_name(address.name), address.address


def plain_name(name: str) -> str:
    """Return a name in one line, without invisible characters."""
    return " ".join(visible(name[:READ_CHARACTERS]).split())[:NAME_CHARACTERS]


def _once(people: Iterable[Person]) -> list[Person]:
    """Return each person once, in order of first mention, with the first name found."""
    found: dict[str, Person] = {}
    for name, address in people:
        key = normalize(address) if address else name
        if key not in found:
            if len(found) < PEOPLE:
                found[key] = name, address
        elif not found[key][0]:
            found[key] = name, found[key][1]
    return list(found.values())


def encode(digest: Digest) -> bytes:
    return msgspec.json.encode(digest)


def append(before: bytes | None, new: Digest) -> bytes | None:
    """Return the digest with one more message, or None if it has to be made anew."""
    if before is None:
        return None
    old = _decoder.decode(before)
    if new.at < old.at:  # an older email was imported
        return None
    people = _once((*new.people, *old.people))
    has_files, has_own = new.has_files or old.has_files, new.has_own or old.has_own
    return encode(replace(new, people=people, has_files=has_files, has_own=has_own))


def of_threads(tx: Tx, found: Sequence[Thread]) -> dict[str, ThreadDigest]:
    """Return the digest of each thread; those that are null are made from messages, with three statements."""
    made = make_all(tx, [thread for thread in found if thread.digest is None])
    return {
        thread.id: made[thread.id]
        if thread.digest is None
        else ThreadDigest(_decoder.decode(thread.digest), VERDICTS[thread.verdict])
        for thread in found
    }


def make_all(tx: Tx, found: Sequence[Thread]) -> dict[str, ThreadDigest]:
    """Make digests from the newest messages. The verdict of a longer thread only gets worse."""
    if not found:
        return {}
    rows = all_of(
        tx,
        "select id, thread_id, created_at, has_files, messages from (select id, thread_id, created_at,"
        " row_number() over (partition by thread_id order by created_at desc, id desc) as place,"
        " max(has_attachments) over (partition by thread_id) as has_files,"
        " count(*) over (partition by thread_id) as messages"
        f" from messages where :wanted and is_trashed = 0) as placed where place <= {READ_MESSAGES}"
        " order by thread_id, place desc",
        "thread_id",
        [thread.id for thread in found],
    )
    own = _own_of_inboxes(tx, sorted({thread.inbox_id for thread in found}))
    of_thread = defaultdict(list)
    for row in rows:
        of_thread[row["thread_id"]].append(row)
    read = {each.id: each for each in messages.list_outlines(tx, [row["id"] for row in rows])}
    made = {}
    for thread in found:
        digest, verdict = EMPTY, 0
        for row in of_thread[thread.id]:
            document = documents.decode(read[row["id"]].document)
            own_here = own.get(thread.inbox_id, frozenset())
            new = of_document(document, bool(row["has_files"]), row["created_at"], own_here)
            has_own = new.has_own or digest.has_own
            digest = replace(new, people=_once((*new.people, *digest.people)), has_own=has_own)
            verdict = max(verdict, VERDICTS.index(document.verdict))
            verdict = max(verdict, thread.verdict) if row["messages"] > READ_MESSAGES else verdict
        made[thread.id] = ThreadDigest(digest, VERDICTS[verdict])
    return made


def _own_of_inboxes(tx: Tx, inbox_ids: Sequence[str]) -> dict[str, frozenset[str]]:
    rows = all_of(tx, "select * from inboxes where :wanted", "id", inbox_ids)
    return {row["id"]: Inbox.from_row(row).mailboxes for row in rows}


def fill_some(tx: Tx) -> bool:
    """Store some digests that are null. False if none is left that no other transaction has locked."""
    rows = tx.all(
        f"select * from threads where digest is null order by id limit {FILLED_AT_ONCE} {SKIP_LOCKED}"
    )
    for thread_id, made in make_all(tx, [Thread.from_row(row) for row in rows]).items():
        tx.run(
            "update threads set digest = :digest, verdict = :verdict where id = :id",
            digest=encode(made.digest),
            verdict=VERDICTS.index(made.verdict),
            id=thread_id,
        )
    return bool(rows)
