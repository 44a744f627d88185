"""Both databases with the search index of a few mails, and a slow reading of the same question."""

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence

import psycopg

from postroom.storage.engines.postgres_fulltext import to_copy
from postroom_mail.search import index_entry, match_expression, tokens
from postroom_mail.search.index_entry import IndexEntry, Searchable
from postroom_mail.search.query import Query, Term

REALM, SCOPE = "a1", "inb1"


class Engines:
    """Mails are known by their number, and found newest first."""

    def __init__(self, sqlite: sqlite3.Connection, postgres: "psycopg.Connection[tuple[int]]") -> None:
        self.sqlite, self.postgres = sqlite, postgres

    def fill(self, mails: Sequence[Searchable]) -> None:
        self.put([index_entry.of_mail(mail, REALM, [SCOPE]) for mail in mails])

    def put(self, entries: Sequence[IndexEntry]) -> None:
        self.sqlite.execute("insert into mails (mails) values ('delete-all')")
        self.postgres.execute("truncate mails")
        for number, entry in enumerate(entries):
            words = (number, index_entry.to_fts5(entry))
            self.sqlite.execute("insert into mails (rowid, words) values (?, ?)", words)
        vectors = [(number, index_entry.to_tsvector(entry)) for number, entry in enumerate(entries)]
        with self.postgres.cursor().copy("copy mails from stdin (format binary)") as copy:
            copy.write(to_copy(vectors))

    def find_on_sqlite(self, query: Query, realm: str = REALM, scope: str = "") -> list[int]:
        sql = "select rowid from mails where mails match ? order by rowid desc"
        expression = match_expression.to_fts5(within(query, scope), [realm])
        return [row[0] for row in self.sqlite.execute(sql, (expression,))]

    def find_on_postgres(self, query: Query, realm: str = REALM, scope: str = "") -> list[int]:
        sql = "select id from mails where words @@ %s::tsquery order by id desc"
        expression = match_expression.to_tsquery(within(query, scope), [realm])
        return [row[0] for row in self.postgres.execute(sql, (expression,))]

    def find(self, query: Query, realm: str = REALM, scope: str = "") -> list[int]:
        found = self.find_on_sqlite(query, realm, scope)
        assert self.find_on_postgres(query, realm, scope) == found
        return found


def within(query: Query, scope: str) -> Query:
    return Query((*query.terms, (Term((scope,), "scope"),)), query.filters) if scope else query


@contextlib.contextmanager
def opened(postgres_url: str) -> Iterator[Engines]:
    with (
        contextlib.closing(sqlite3.connect(":memory:")) as sqlite,
        psycopg.connect(postgres_url, autocommit=True) as postgres,
    ):
        tokenizer = f'tokenize = "{index_entry.FTS5_TOKENIZER}"'
        sqlite.execute(f"create virtual table mails using fts5 (words, content = '', {tokenizer})")
        postgres.execute("create table mails (id bigint primary key, words tsvector not null)")
        postgres.execute("create index on mails using gin (words)")
        postgres.execute("set enable_seqscan = off")  # so that few mails, too, are found by the index
        yield Engines(sqlite, postgres)


def matches(query: Query, mail: Searchable) -> bool:
    return all(any(holds(term, mail) for term in group) for group in query.terms)


def holds(term: Term, mail: Searchable) -> bool:
    return any(stands_in(term, tokens.split(text)) for text in looked_in(term, mail)) != term.is_negated


def looked_in(term: Term, mail: Searchable) -> list[str]:
    subject, sender, recipients = [mail.subject], [mail.sender], list(mail.recipients)
    everything = [*subject, *sender, *recipients, mail.text, *mail.filenames, *mail.file_texts]
    return {"subject": subject, "from": sender, "to": recipients, "": everything}[term.field]


def stands_in(term: Term, words: list[str]) -> bool:
    *whole, last = term.tokens
    for start in range(len(words) - len(whole)):
        word = words[start + len(whole)]
        fits = word.startswith(last) if term.is_beginning else word == last
        if fits and words[start : start + len(whole)] == whole:
            return True
    return False
