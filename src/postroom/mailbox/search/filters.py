"""Filters of a search: as index words, as conditions on rows, or as the few messages they leave.

Facts about a message that never change are index words. Those that change with its thread are not: if few
messages match, these are checked one by one; if many do, the next match is near.
"""

from collections.abc import Sequence

from postroom.accounts.scope import Scope
from postroom.mailbox import inboxes, labels
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.search import contents
from postroom.storage.database import Tx
from postroom_mail.mime.address import mailbox_of
from postroom_mail.search import days
from postroom_mail.search.query import Condition, Term

FEW = 4_096
NOWHERE = "nowhere"  # a scope that no mail is in
FLAGS: dict[tuple[str, str | int], str] = {
    ("has", "attachment"): contents.HAS_FILES,
    ("is", "sent"): contents.SENT,
    ("is", "blocked"): contents.BLOCKED,
    ("is", "junk"): contents.JUNK,
}
DAYS = ("before", "after")
IN_NEW_ENTRIES = (*DAYS, "category")  # entries of an index that is being rebuilt may lack them
_SIZE = "(select size_bytes from raw_mails where raw_mails.message_id = messages.id)"
# These are in no column: they are read from the message.
READ = frozenset(("verdict", "auth", "header", "junk_score"))
CONDITIONS: dict[str | int, str] = {
    "label": "exists (select 1 from labels where labels.thread_id = messages.thread_id and label = :value)",
    "assignee": "exists (select 1 from threads where threads.id = messages.thread_id"
    " and coalesce(threads.assignee_id, '') = :value)",
    "in": "inboxes.address = :value or"
    " substr(inboxes.address, 1, length(cast(:value as text)) + 1) = cast(:value as text) || '@' or"
    " exists (select 1 from aliases where aliases.inbox_id = inboxes.id and aliases.address = :value)",
    "has": "messages.has_attachments = 1",
    "unread": "exists (select 1 from threads where threads.id = messages.thread_id and is_read = 0)",
    "sent": "messages.direction = 'outbound'",
    "failed": "messages.status = 'failed'",
    "held": "exists (select 1 from holds where holds.message_id = messages.id and holds.state = 'held')",
    "snoozed": "exists (select 1 from threads where threads.id = messages.thread_id and state = 1)",
    "done": "exists (select 1 from threads where threads.id = messages.thread_id and state = 2)",
    "awaiting": "exists (select 1 from threads where threads.id = messages.thread_id"
    " and awaiting_until is not null)",
    "overdue": "exists (select 1 from threads where threads.id = messages.thread_id and is_overdue = 1)",
    "flagged": "exists (select 1 from threads where threads.id = messages.thread_id and is_risky = 1)",
    "blocked": "messages.direction = 'blocked' and messages.is_junk = 0",
    "junk": "messages.is_junk = 1",
    "category": "coalesce(messages.category, '') = :value",
    "larger": f"{_SIZE} > :value",
    "smaller": f"{_SIZE} < :value",
    "first": "messages.direction = 'inbound' and not exists (select 1 from messages as earlier"
    " where earlier.inbox_id = messages.inbox_id and earlier.from_address = messages.from_address"
    " and earlier.direction = 'inbound' and earlier.id < messages.id)",
    "before": "messages.created_at < :value",
    "after": "messages.created_at >= :value",
}
# Threads that a filter of their state leaves, by an index.
THREADS: dict[str | int, str] = {
    "label": "labels where label = :value",
    "assignee": "threads where assignee_id = :value",
    "unread": "threads where is_read = 0",
    "snoozed": "threads where state = 1",
    "done": "threads where state = 2",
    "awaiting": "threads where awaiting_until is not null",
    "overdue": "threads where awaiting_until is not null and is_overdue = 1",
    "flagged": "threads where account_id = :account_id and is_risky = 1",
}
# The same of messages.
MESSAGES: dict[str | int, str] = {
    "failed": "select messages.id as message_id from inboxes join messages on messages.inbox_id = inboxes.id"
    " and status = 'failed' where inboxes.{place} = :place",
    "held": "select message_id from holds where state = 'held' and {place} = :place",
}


def is_in_index(group: Sequence[Condition], is_whole: bool) -> bool:
    """Return whether the index can answer all of an OR group; a negated `in:` only when it is alone."""
    return all(
        (each.name, each.value) in FLAGS
        or (each.name in IN_NEW_ENTRIES and is_whole)
        or (each.name == "in" and (len(group) == 1 or not each.is_negated))
        for each in group
    )


def to_terms(tx: Tx, scope: Scope, group: Sequence[Condition], service_domain: str) -> list[tuple[Term, ...]]:
    """Return the terms of a group. Inboxes of the same name are ORed; if negated, all are excluded."""
    terms = [term for each in group for term in _terms(tx, scope, each, service_domain)]
    is_unwanted = len(group) == 1 and all(term.is_negated for term in terms)
    return [(term,) for term in terms] if is_unwanted else [tuple(terms)]


def _terms(tx: Tx, scope: Scope, filter_: Condition, service_domain: str) -> list[Term]:
    if filter_.name in DAYS:
        is_before = (filter_.name == "before") != filter_.is_negated
        moment = int(filter_.value)
        scopes = days.words_before(moment) if is_before else days.words_from(moment)
        return [Term((scope,), "scope") for scope in scopes or [NOWHERE]]
    if filter_.name == "in":
        found = find_inboxes(tx, scope, str(filter_.value), service_domain)
        scopes = [contents.inbox_scope(inbox_id) for inbox_id in found] or [NOWHERE]
    elif filter_.name == "category":
        scopes = [contents.category_scope(str(filter_.value))]
    else:
        scopes = [FLAGS[filter_.name, filter_.value]]
    return [Term((scope,), "scope", is_negated=filter_.is_negated) for scope in scopes]


def find_inboxes(tx: Tx, scope: Scope, name: str, service_domain: str) -> list[str]:
    """Return the inboxes in scope with this address or alias, or with this name at any own domain."""
    mailbox = mailbox_of(name if "@" in name else f"{name}@{service_domain}")
    rows = tx.all(
        "select * from inboxes where address = :mailbox"
        " or id = (select inbox_id from aliases where address = :mailbox) or address in"
        " (select cast(:name as text) || '@' || name from domains"
        " where account_id = :account_id and verified_at is not null)",
        mailbox=mailbox,
        name=name.lower(),
        account_id=scope.account_id,
    )
    return [row["id"] for row in rows if inboxes.is_within(Inbox.from_row(row), scope)]


def conditions(groups: Sequence[Sequence[Condition]]) -> tuple[str, dict[str, object]]:
    """Return an SQL condition over `messages` and `inboxes` for each group of filters, and its parameters.

    Groups that need the message itself are left to `message_facts.passing`.
    """
    sql, params = "", dict[str, object]()
    for group in groups:
        if is_read(group):
            continue
        parts = []
        for each in group:
            name = f"filter_{len(params)}"
            condition = CONDITIONS[kind_of(each)]
            parts.append(f"{'not ' if each.is_negated else ''}({condition.replace(':value', f':{name}')})")
            if ":value" in condition:
                params[name] = _comparable(each)
        sql += f" and ({' or '.join(parts)})"
    return sql, params


def kind_of(filter_: Condition) -> str | int:
    """Return the name under which a filter is known in CONDITIONS."""
    return filter_.value if filter_.name == "is" else filter_.name


def _comparable(filter_: Condition) -> str | int:
    if filter_.name == "label":
        return labels.fold(str(filter_.value))
    return filter_.value if isinstance(filter_.value, int) else filter_.value.lower()


def is_read(group: Sequence[Condition]) -> bool:
    """Return whether a group asks for what only the message itself says."""
    return any(each.name in READ for each in group)


def find_few(tx: Tx, scope: Scope, groups: Sequence[Sequence[Condition]]) -> list[int] | None:
    """Return the index entries that can match at all, if they are few."""
    for group in groups:
        if any(
            each.is_negated or not each.value or kind_of(each) not in (THREADS | MESSAGES) for each in group
        ):
            continue
        found = [_find_few(tx, scope, each) for each in group]
        if None not in found:
            return sorted({doc for docs in found if docs for doc in docs}, reverse=True)
    return None


def _find_few(tx: Tx, scope: Scope, filter_: Condition) -> list[int] | None:
    if kind_of(filter_) in MESSAGES:
        return _find_few_messages(tx, scope, filter_)
    column, value = _place(scope)
    threads = f"{THREADS[kind_of(filter_)]} and {column} = :place"
    params: dict[str, object] = {"place": value}
    if filter_.name in ("label", "assignee"):
        params["value"] = _comparable(filter_)
    if kind_of(filter_) == "flagged":
        params["account_id"] = scope.account_id
    if tx.one(f"select 1 as found from {threads} limit 1 offset :few", few=FEW, **params):
        return None
    key = "thread_id" if filter_.name == "label" else "id"
    rows = tx.all(
        f"select doc from (select {key} as thread_id from {threads}) as wanted cross join messages"
        " cross join search_documents where messages.thread_id = wanted.thread_id"
        " and search_documents.message_id = messages.id limit :most",
        most=FEW + 1,
        **params,
    )
    return [row["doc"] for row in rows] if len(rows) <= FEW else None


def _find_few_messages(tx: Tx, scope: Scope, filter_: Condition) -> list[int] | None:
    column, value = _place(scope)
    if filter_.value == "failed" and column == "inbox_id":
        column = "id"
    wanted = MESSAGES[kind_of(filter_)].format(place=column)
    rows = tx.all(
        f"select doc from ({wanted} limit :most) as wanted join search_documents"
        " on search_documents.message_id = wanted.message_id",
        place=value,
        most=FEW + 1,
    )
    return [row["doc"] for row in rows] if len(rows) <= FEW else None


def _place(scope: Scope) -> tuple[str, str]:
    if scope.inbox_id is not None:
        return "inbox_id", scope.inbox_id
    return ("account_id", scope.account_id) if scope.pod_id is None else ("pod_id", scope.pod_id)
