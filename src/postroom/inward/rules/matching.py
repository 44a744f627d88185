"""Which rules match an email: read once for each change of them, compiled, and looked up by words."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock

from msgspec import Struct

from postroom.accounts.scope import Scope
from postroom.mailbox import rules
from postroom.mailbox.rules import Rule
from postroom.mailbox.search import message_facts
from postroom.mailbox.search.message_facts import Check, Facts
from postroom.storage.database import Tx
from postroom_mail.search import email_matcher, query, snippet
from postroom_mail.search.email_matcher import Searches
from postroom_mail.search.index_entry import Searchable
from postroom_mail.search.query import InvalidQuery, Query

REMEMBERED = 1_000  # inboxes whose rules are kept compiled


class Book(Struct, frozen=True):
    """The rules of an inbox, in order, with their searches."""

    rules: tuple[Rule, ...]
    queries: tuple[Query, ...]
    searches: Searches
    checks: tuple[list[Check], ...] = ()
    unreadable: tuple[Rule, ...] = ()  # this version cannot read their searches


class Books:
    """Books by inbox, each for a version of its account's rules. Several threads may ask."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[int, Book]] = OrderedDict()
        self._lock = Lock()

    def of_inbox(self, tx: Tx, scope: Scope, version: int) -> Book:
        inbox_id = scope.inbox_id or ""
        with self._lock:
            kept = self._kept.get(inbox_id)
            if kept is not None and kept[0] == version:
                self._kept.move_to_end(inbox_id)
                return kept[1]
        book = compile_all(rules.list_for_inbox(tx, scope))
        with self._lock:
            self._kept[inbox_id] = (version, book)
            while len(self._kept) > REMEMBERED:
                self._kept.popitem(last=False)
        return book


def compile_all(found: Sequence[Rule]) -> Book:
    read: list[tuple[Rule, Query]] = []
    unreadable = []
    for rule in found:
        try:
            read.append((rule, query.parse(rule.query)))
        except InvalidQuery:
            unreadable.append(rule)
    queries = tuple(each for _, each in read)
    return Book(
        tuple(rule for rule, _ in read),
        queries,
        email_matcher.prepare(queries),
        tuple(message_facts.checks(each.filters) for each in queries),
        tuple(unreadable),
    )


def matching(tx: Tx, book: Book, mail: Searchable, facts: Facts) -> Iterator[Rule]:
    """Yield the rules that match, in order, up to one that stops."""
    at_hand = facts.at_hand()
    for number in book.searches.candidates(mail):
        if not may_match(at_hand, book.checks[number]) or not matches(tx, book.queries[number], mail, facts):
            continue
        yield book.rules[number]
        if book.rules[number].stop:
            return


def may_match(at_hand: Mapping[str | int, str | None], checks: Sequence[Check]) -> bool:
    """Return whether all checks pass, by a loop: `all` of a generator takes twice the time."""
    for kind, value, is_negated in checks:  # noqa: SIM110
        if (at_hand[kind] == value) == is_negated:
            return False
    return True


def matches(tx: Tx, asked: Query, mail: Searchable, facts: Facts) -> bool:
    return snippet.holds(asked, mail) and message_facts.meets_all(tx, facts, asked.filters)
