"""Whether one message meets a filter: from what is at hand of it, else by its row, as a search does."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from postroom.accounts.scope import Scope
from postroom.mailbox import documents, messages, raw_mails, thread_selects
from postroom.mailbox.documents import Document
from postroom.mailbox.messages import OUTBOUND
from postroom.mailbox.search import filters
from postroom.mailbox.thread_work import ANY_WORK
from postroom.storage.database import Row, Tx
from postroom_mail.mime import headers
from postroom_mail.search.query import Condition

READ_TOGETHER = 64


Check = tuple[str | int, str | int, bool]  # the kind of a filter, its value, whether it is negated


class Facts(Struct):
    """What is known of a message. The header is read when a filter asks for it."""

    document: Document
    created_at: int
    has_files: bool
    size_bytes: int | None = None
    fields: headers.Headers | None = None

    def at_hand(self) -> dict[str | int, str | None]:
        """Return what filters compare for equality, by their kind."""
        document = self.document
        return {
            "has": "attachment" if self.has_files else None,
            "category": document.category,
            "verdict": document.verdict,
            "auth": None if document.auth is None else document.auth.dmarc,
            "junk_score": None if document.junk is None else ("yes" if document.junk.is_junk else "no"),
            "sent": "sent" if document.direction == OUTBOUND else None,
        }

    def field(self, tx: Tx, name: str) -> Sequence[bytes]:
        """Return the values of a header field; none for an email whose header is not in its row."""
        if self.fields is None:
            self.fields = read_fields(raw_mails.heads(tx, [self.document.id]).get(self.document.id, b""))
        return self.fields.fields.get(name, ())


def read_fields(head: bytes) -> headers.Headers:
    return headers.split(head, 0).headers


def checks(groups: Sequence[Sequence[Condition]]) -> list[Check]:
    """Return the filters that stand alone and are checked at once, before any other."""
    alone = [group[0] for group in groups if len(group) == 1]
    return [
        (filters.kind_of(each), each.value, each.is_negated)
        for each in alone
        if filters.kind_of(each) in _EQUAL
    ]


def meets_all(tx: Tx, facts: Facts, groups: Sequence[Sequence[Condition]]) -> bool:
    """Return whether all groups match. Cheap ones first: a row is read only if all else matches."""
    return all(_meets(tx, facts, group) for group in sorted(groups, key=_is_costly))


def _is_costly(group: Sequence[Condition]) -> bool:
    return any(filters.kind_of(each) not in _AT_HAND for each in group)


def _meets(tx: Tx, facts: Facts, group: Sequence[Condition]) -> bool:
    return any(_holds(tx, facts, each) != each.is_negated for each in sorted(group, key=_is_costly_alone))


def _is_costly_alone(condition: Condition) -> bool:
    return _is_costly((condition,))


def _holds(tx: Tx, facts: Facts, condition: Condition) -> bool:
    kind, value, document = filters.kind_of(condition), condition.value, facts.document
    match kind:
        case "has" | "category" | "verdict" | "auth" | "junk_score" | "sent":
            return facts.at_hand()[kind] == value
        case "before" | "after":
            return (facts.created_at < int(value)) == (kind == "before")
        case "header":
            return _has_field(tx, facts, str(value))
        case "larger" | "smaller" if facts.size_bytes is not None:
            is_equal = facts.size_bytes == value
            return not is_equal and (facts.size_bytes > int(value)) == (kind == "larger")
    return _row_meets(tx, document.id, condition)


_EQUAL = frozenset(("has", "category", "verdict", "auth", "junk_score", "sent"))
_AT_HAND = _EQUAL | {"before", "after", "larger", "smaller"}


def _has_field(tx: Tx, facts: Facts, asked: str) -> bool:
    name, has_text, text = asked.partition("=")
    values = facts.field(tx, name)
    if not has_text:
        return bool(values)
    return any(text in headers.decode_words(headers.unfold(value)).lower() for value in values)


def _row_meets(tx: Tx, message_id: str, condition: Condition) -> bool:
    sql, params = filters.conditions([[Condition(condition.name, condition.value)]])
    row = tx.one(
        "select 1 as found from messages join inboxes on inboxes.id = messages.inbox_id"
        f" where messages.id = :id{sql}",
        id=message_id,
        **params,
    )
    return row is not None


def passing(tx: Tx, rows: Sequence[Row], groups: Sequence[Sequence[Condition]]) -> list[Row]:
    """Return the rows of messages, by `message_id`, that meet the filters that no column holds."""
    if not groups or not rows:
        return list(rows)
    asks_header = any(each.name == "header" for group in groups for each in group)
    found: list[Row] = []
    for start in range(0, len(rows), READ_TOGETHER):
        part = rows[start : start + READ_TOGETHER]
        known = read_facts(tx, [row["message_id"] for row in part], asks_header)
        found += [
            row
            for row in part
            if row["message_id"] in known and meets_all(tx, known[row["message_id"]], groups)
        ]
    return found


def read_facts(tx: Tx, message_ids: Sequence[str], asks_header: bool) -> Mapping[str, Facts]:
    heads = raw_mails.heads(tx, message_ids) if asks_header else {}
    return {
        each.id: Facts(
            documents.decode(each.document),
            each.created_at,
            each.has_attachments,
            fields=read_fields(heads.get(each.id, b"")) if asks_header else None,
        )
        for each in messages.list_outlines(tx, message_ids)
    }


def list_newest(tx: Tx, scope: Scope, most: int) -> list[str]:
    """List the ids of received messages in scope, newest first: all of them are in the newest threads."""
    column, owner_id = scope.owner
    parts = thread_selects.with_work(column, None, thread_selects.KEYS, ANY_WORK)
    parts = thread_selects.with_first_page(parts, most, 0)
    rows = tx.all(
        f"select messages.id from (select * from ({parts}) as parts {thread_selects.NEWEST_FIRST}"
        f" limit {most}) as recent cross join messages where messages.thread_id = recent.id"
        " and messages.direction = 'inbound' and messages.is_trashed = 0"
        f" order by messages.created_at desc, messages.id desc limit {most}",
        owner_id=owner_id,
    )
    return [row["id"] for row in rows]
