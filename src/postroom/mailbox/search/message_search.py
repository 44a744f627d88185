"""Search: the messages in scope that match a query, newest first, in pages."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct, field

from postroom import ids
from postroom.accounts.scope import Scope
from postroom.errors import BadRequest
from postroom.limits import PAGE_BYTES
from postroom.mailbox import inboxes, message_json, messages
from postroom.mailbox.message_json import Links
from postroom.mailbox.messages import Message
from postroom.mailbox.search import contents, filters, index_upkeep, indexing, latecomers, message_facts
from postroom.mailbox.search.latecomers import Latecomer
from postroom.processes.analysis import Analysis
from postroom.storage.database import Overdue, Row, Tx, one_of
from postroom_mail.search import query as grammar
from postroom_mail.search import snippet, tokens
from postroom_mail.search.index_entry import Searchable
from postroom_mail.search.query import Field, InvalidQuery, Query, Term

SHOWN_TOGETHER = 10
FIRST_CHUNK, LARGEST_CHUNK = 128, 2_048
REALMS_TOGETHER = 16
HIGHEST_DOC = 2**62
ROWS_TOGETHER = 256
LOOKED_AT_EACH = 512
BEHIND_ALL = Latecomer(2**62, 0)
IN_ORDER = (
    " and not exists (select 1 from search_latecomers where search_latecomers.doc = search_documents.doc)"
)
# The names of parts in `matched`, and where the snippet comes from: the first of these that matches.
SHOWN_PARTS = {
    "text": "text",
    "file_texts": "file",
    "subject": "subject",
    "filenames": "filename",
    "sender": "from",
    "recipients": "to",
}


class Question(Struct, frozen=True):
    """`query` is for the index; its filters are for the rows. Without realms nothing is found."""

    scope: Scope
    query: Query
    realms: list[str]
    asked: Query  # as written, for the snippets
    with_trash: bool = False


# What is found only where a filter asks for it.
ASIDE = {"blocked": contents.BLOCKED, "junk": contents.JUNK}


class Found(Struct, frozen=True):
    message: bytes
    matched: list[str]
    snippet: str


class ResultPage(Struct, frozen=True):
    found: list[Found]
    next: str | None


def parse(q: str, field: str = "q") -> Query:
    try:
        return grammar.parse(q)
    except InvalidQuery as error:
        raise BadRequest(str(error), field=field) from None


def ask(tx: Tx, scope: Scope, asked: Query, service_domain: str, including: str | None = None) -> Question:
    terms: list[tuple[Term, ...]] = []
    if scope.inbox_id is not None:
        terms.append((Term((contents.inbox_scope(scope.inbox_id),), "scope"),))
    for word, mark in ASIDE.items():
        if word != including and not any(
            each.value == word and not each.is_negated for group in asked.filters for each in group
        ):
            terms.append((Term((mark,), "scope", is_negated=True),))
    is_whole = indexing.is_whole(tx)
    left = []
    for group in asked.filters:
        if filters.is_in_index(group, is_whole):
            terms += filters.to_terms(tx, scope, group, service_domain)
        else:
            left.append(group)
    in_index = Query((*terms, *asked.terms), tuple(left))
    return Question(scope, in_index, _realms(tx, scope), asked, including == "trash")


def _realms(tx: Tx, scope: Scope) -> list[str]:
    pod_id = scope.pod_id
    if scope.inbox_id is not None:
        inbox = inboxes.find(tx, scope.inbox_id)
        if inbox is None or not inboxes.is_within(inbox, scope):
            return []
        pod_id = inbox.pod_id
    of_pod = "" if pod_id is None else " and pod_id = :pod_id"
    rows = tx.all(
        f"select number from search_realms where account_id = :account_id{of_pod} order by number",
        account_id=scope.account_id,
        **({} if pod_id is None else {"pod_id": pod_id}),
    )
    return [indexing.realm_of(row["number"]) for row in rows]


class PageStart(Struct, frozen=True):
    """Where a page begins: among entries in order, and among those made late."""

    below: int = HIGHEST_DOC
    condition: str = ""  # on the messages of entries in order, if their numbers do not say it
    params: dict[str, object] = field(default_factory=dict)
    late: Latecomer = BEHIND_ALL


def find(
    tx: Tx, question: Question, cursor: str | None, limit: int, links: Links, is_over: Callable[[], bool]
) -> ResultPage:
    """Return a page of results. It ends early if it is large, or if time is up and something was found."""
    rows = _find_rows(tx, question, _place_of(tx, cursor), limit, is_over)
    shown = _show(tx, question, [row["message_id"] for row in rows[:limit]], links, is_over)
    has_more = len(shown) < len(rows)
    return ResultPage(shown, rows[len(shown) - 1]["message_id"] if has_more else None)


def _place_of(tx: Tx, cursor: str | None) -> PageStart:
    """Return the position after the last message shown, or where it was if it is deleted."""
    if cursor is None:
        return PageStart()
    if not ids.is_id(ids.MESSAGE, cursor):
        raise BadRequest("cursor must be `next` of the previous page.", field="cursor")
    row = tx.one(
        "select doc, created_at from search_documents join messages on messages.id = message_id"
        " where message_id = :id",
        id=cursor,
    )
    if row is None:
        late = Latecomer(ids.moment_of(cursor) + 1, -HIGHEST_DOC)
        return PageStart(condition=" and messages.id < :shown", params={"shown": cursor}, late=late)
    late_one = latecomers.find(tx, row["doc"])
    if late_one is None:
        return PageStart(below=row["doc"], late=Latecomer(row["created_at"] + 1, -HIGHEST_DOC))
    came_before: dict[str, object] = {"shown": late_one.arrived_at}
    return PageStart(condition=" and messages.created_at < :shown", params=came_before, late=late_one)


def _find_rows(
    tx: Tx, question: Question, place: PageStart, limit: int, is_over: Callable[[], bool]
) -> list[Row]:
    """Return the rows of a page and one more, if there is one.

    Many may match the words and few the filters.
    """
    found: list[Row] = []
    is_all = True
    for docs in _find_parts(tx, question, place.below, limit):
        found += _passing(tx, question, docs, place)
        if len(found) > limit or (found and is_over()):
            is_all = False
            break
        if is_over():
            raise Overdue
    above = -1 if is_all else found[: limit + 1][-1]["created_at"]
    return _merged(found[: limit + 1], _find_late(tx, question, place, above, limit))[: limit + 1]


def _find_late(tx: Tx, question: Question, place: PageStart, above: int, limit: int) -> list[Row]:
    """Return the entries made late, ordered by when their mail came, within the range of the page."""
    late = latecomers.list_between(tx, question.scope.account_id, above, place.late)
    having = set(_having_words(tx, question, [each.doc for each in late])) if late else set()
    docs = [each.doc for each in late if each.doc in having]
    found: list[Row] = []
    for start in range(0, len(docs), ROWS_TOGETHER):
        part = docs[start : start + ROWS_TOGETHER]
        rows = {row["doc"]: row for row in _passing(tx, question, part)}
        found += [rows[doc] for doc in part if doc in rows]
        if len(found) > limit:
            break
    return found


def _having_words(tx: Tx, question: Question, docs: Sequence[int]) -> list[int]:
    """Return those documents that have the words.

    A few are checked one by one; for more, the index is searched.
    """
    if len(docs) <= LOOKED_AT_EACH:
        return _find_among(tx, question, docs)
    found: list[int] = []
    for part in _walk(tx, question, max(docs) + 1, LARGEST_CHUNK):
        found += part
        if part and part[-1] < min(docs):
            break
    return found


def _merged(in_order: list[Row], late: list[Row]) -> list[Row]:
    """Merge both lists, newest first. If two came at the same moment, the one indexed in order is first."""
    merged: list[Row] = []
    waiting = late[::-1]
    for row in in_order:
        while waiting and waiting[-1]["created_at"] > row["created_at"]:
            merged.append(waiting.pop())
        merged.append(row)
    return merged + waiting[::-1]


def _find_parts(tx: Tx, question: Question, below: int, limit: int) -> Iterator[list[int]]:
    """Yield the entries with the words, highest first, in parts.

    Rare words and near matches are found at once.
    """
    chunk = max(FIRST_CHUNK, limit + 1) if question.query.filters else limit + 1
    docs = _find_docs(tx, question, below, chunk)
    yield docs
    if len(docs) < chunk:
        return
    few = filters.find_few(tx, question.scope, question.query.filters)
    if few is None:
        yield from _walk(tx, question, docs[-1], chunk * 2)
    else:
        yield from _walk_few(tx, question, [doc for doc in few if doc < docs[-1]])


def _walk(tx: Tx, question: Question, below: int, chunk: int) -> Iterator[list[int]]:
    while True:
        chunk = min(chunk, LARGEST_CHUNK)
        docs = _find_docs(tx, question, below, chunk)
        yield docs
        if len(docs) < chunk:
            return
        below, chunk = docs[-1], chunk * 2


def _walk_few(tx: Tx, question: Question, few: list[int]) -> Iterator[list[int]]:
    """Yield those of a few entries that match.

    They are checked one by one, or found from one match in the index to the next.
    """
    while len(few) > LOOKED_AT_EACH:
        docs = _find_docs(tx, question, few[0] + 1, LARGEST_CHUNK)
        yield sorted(set(docs) & set(few), reverse=True)
        if len(docs) < LARGEST_CHUNK:
            return
        few = [doc for doc in few if doc < docs[-1]]
    for start in range(0, len(few), ROWS_TOGETHER):
        yield _find_among(tx, question, few[start : start + ROWS_TOGETHER])


def _find_docs(tx: Tx, question: Question, below: int, count: int) -> list[int]:
    return _in_realms(question, lambda realms: tx.fulltext.find(question.query, realms, below, count))[:count]


def _find_among(tx: Tx, question: Question, docs: Sequence[int]) -> list[int]:
    return _in_realms(question, lambda realms: tx.fulltext.find_among(question.query, realms, docs))


def _in_realms(question: Question, find_in: Callable[[Sequence[str]], list[int]]) -> list[int]:
    """Searches an account with many pods in groups of pods."""
    realms = question.realms
    groups = [realms[start : start + REALMS_TOGETHER] for start in range(0, len(realms), REALMS_TOGETHER)]
    docs = [doc for group in groups for doc in find_in(group)]
    return docs if len(groups) == 1 else sorted(docs, reverse=True)


def _passing(tx: Tx, question: Question, docs: Sequence[int], place: PageStart | None = None) -> list[Row]:
    """Return the rows of `doc`, `message_id` and `created_at` that are in scope and match the filters.

    With a cursor, only those in order after it; without one, all that were given.
    """
    passing: list[Row] = []
    condition, params = filters.conditions(question.query.filters)
    to_read = list(filter(filters.is_read, question.query.filters))
    if not question.with_trash:
        condition += " and messages.is_trashed = 0"
    if place is not None:
        condition, params = f"{condition}{place.condition}{IN_ORDER}", params | place.params
    for start in range(0, len(docs), ROWS_TOGETHER):
        is_wanted, wanted = one_of("search_documents.doc", docs[start : start + ROWS_TOGETHER])
        rows = tx.all(
            "select search_documents.doc, message_id, messages.created_at, inboxes.account_id,"
            " inboxes.pod_id, messages.inbox_id from search_documents"
            " join messages on messages.id = message_id join inboxes on inboxes.id = messages.inbox_id"
            f" where {is_wanted}{condition} order by search_documents.doc desc",
            **wanted,
            **params,
        )
        passing += message_facts.passing(tx, rows, to_read)
    scope = question.scope
    return [row for row in passing if scope.covers(row["account_id"], row["pod_id"], row["inbox_id"])]


def find_ids(tx: Tx, scope: Scope, sought: Sequence[tuple[Field, str]], most: int) -> set[str] | None:
    """Return the messages of an inbox with these words, the last as a prefix, or not indexed yet.

    None if the index cannot tell: no words, more than `most` matches, or it is being rebuilt.
    """
    assert scope.inbox_id is not None
    words = [(tokens.split_sought(text)[0], field) for field, text in sought]
    terms = [(Term(tuple(found), field, is_beginning=True),) for found, field in words if found]
    if not terms or not indexing.is_whole(tx):
        return None
    of_inbox = Term((contents.inbox_scope(scope.inbox_id),), "scope")
    query = Query(((of_inbox,), *terms))
    question = Question(scope, query, _realms(tx, scope), query)
    docs: list[int] = []
    for part in _walk(tx, question, HIGHEST_DOC, LARGEST_CHUNK):
        docs += part
        if len(docs) > most:
            return None
    waiting = index_upkeep.list_waiting(tx, most + 1)
    found = set(waiting)
    for start in range(0, len(docs), ROWS_TOGETHER):
        is_wanted, wanted = one_of("doc", docs[start : start + ROWS_TOGETHER])
        rows = tx.all(f"select message_id from search_documents where {is_wanted}", **wanted)
        found |= {row["message_id"] for row in rows}
    return found if len(waiting) <= most else None


def answers(tx: Tx, asked: Query, message: Message) -> bool:
    """Return whether one message matches a query, checked without the index: it may be too new for that."""
    condition, params = filters.conditions(asked.filters)
    is_passing = tx.one(
        "select messages.id as message_id from messages join inboxes on inboxes.id = messages.inbox_id"
        f" where messages.id = :id{condition}",
        id=message.id,
        **params,
    )
    if is_passing is None or not message_facts.passing(
        tx, [is_passing], list(filter(filters.is_read, asked.filters))
    ):
        return False
    mail = contents.read(tx, message)
    return Analysis().run("search", False, lambda: snippet.holds(asked, mail))


def _show(
    tx: Tx, question: Question, message_ids: Sequence[str], links: Links, is_over: Callable[[], bool]
) -> list[Found]:
    """Stops when the results together are large; shows at least one."""
    shown: list[Found] = []
    size = 0
    for start in range(0, len(message_ids), SHOWN_TOGETHER):
        found = messages.list_by_ids(tx, message_ids[start : start + SHOWN_TOGETHER])
        for message, document in zip(found, message_json.to_json(tx, found, links), strict=True):
            size += len(document)
            if shown and (size > PAGE_BYTES or is_over()):
                return shown
            shown.append(_found_in(document, contents.read(tx, message), question.asked))
    return shown


def _found_in(document: bytes, mail: Searchable, asked: Query) -> Found:
    """Return the result, without the place where it matches if that cannot be read."""
    return Analysis().run("snippet", Found(document, [], ""), lambda: _to_found(document, mail, asked))


def _to_found(document: bytes, mail: Searchable, asked: Query) -> Found:
    parts = snippet.matched_fields(asked, mail)
    first = next((name for name in SHOWN_PARTS if name in parts), "text")
    matched = [shown for name, shown in SHOWN_PARTS.items() if name in parts]
    return Found(document, matched, _piece(mail, first, asked))


def _piece(mail: Searchable, part: str, asked: Query) -> str:
    match part:
        case "subject":
            texts, field = [mail.subject], "subject"
        case "sender":
            texts, field = [mail.sender], "from"
        case "recipients":
            texts, field = [*mail.recipients], "to"
        case "filenames":
            texts, field = [*mail.filenames], ""
        case "file_texts":
            texts, field = [*mail.file_texts], ""
        case _:
            texts, field = [mail.text], ""
    pieces = [snippet.snippet(text, asked, field) for text in texts]
    return next((piece.text for piece in pieces if piece.end), pieces[0].text)
