"""The grammar of a search, and the expressions made of it."""

import pytest

from postroom_mail.search import match_expression
from postroom_mail.search.query import Condition, InvalidQuery, Query, Term, parse
from tests.samples import samples


def word(*tokens: str) -> Term:
    return Term(tokens)


@samples(
    ("q", "groups"),
    [
        ("Red Apple", ((word("red"),), (word("apple"),))),
        ('"red apple"', ((word("red", "apple"),),)),
        ("alice@example.com", ((word("alice", "example", "com"),),)),
        ("1,234.56", ((word("1", "234", "56"),),)),
        ("-red", ((Term(("red",), is_negated=True),),)),
        ('-"red apple"', ((Term(("red", "apple"), is_negated=True),),)),
        ("a-b --c", ((word("a", "b"),), (Term(("c",), is_negated=True),))),
        ("x a OR b y", ((word("x"),), (word("a"), word("b")), (word("y"),))),
        ("a OR b OR c", ((word("a"), word("b"), word("c")),)),
        ("a or b", ((word("a"),), (word("or"),), (word("b"),))),
        ('a "OR" b', ((word("a"),), (word("or"),), (word("b"),))),
        ("OR a OR", ((word("or"),), (word("a"),), (word("or"),))),
        ("a OR OR b", ((word("a"), word("or")), (word("b"),))),
        ("-a OR b", ((Term(("a",), is_negated=True), word("b")),)),
        ("inv*", ((Term(("inv",), is_beginning=True),),)),
        ('"red app"*', ((Term(("red", "app"), is_beginning=True),),)),
        ("alice@exam*", ((Term(("alice", "exam"), is_beginning=True),),)),
        ('"red*"', ((word("red"),),)),
        ("from:bob", ((Term(("bob",), "from"),),)),
        ("FROM:Bob -to:eve", ((Term(("bob",), "from"),), (Term(("eve",), "to", is_negated=True),))),
        ('subject:"red apple"', ((Term(("red", "apple"), "subject"),),)),
        ("subject:inv* OR bill", ((Term(("inv",), "subject", is_beginning=True), word("bill")),)),
        ("from:to:x", ((Term(("to", "x"), "from"),),)),
        ("foo:bar https://x.org", ((word("foo", "bar"),), (word("https", "x", "org"),))),
        ("a & b - !", ((word("a"),), (word("b"),))),
        ("a OR & b", ((word("a"),), (word("b"),))),
        ("(a OR b)", ((word("a"), word("b")),)),
        ('big"red apple"', ((word("big"),), (word("red", "apple"),))),
        ("東京", ((word("東京"),),)),
        ("京*", ((Term(("京",), is_beginning=True),),)),
    ],
)
def test_words_are_read_as_these_groups(q: str, groups: tuple[tuple[Term, ...], ...]) -> None:
    assert parse(q) == Query(groups)


@samples(
    ("q", "groups"),
    [
        ("label:urgent", ((Condition("label", "urgent"),),)),
        ('-label:"Two Words"', ((Condition("label", "Two Words", is_negated=True),),)),
        (
            "in:sales OR in:help@example.com",
            ((Condition("in", "sales"), Condition("in", "help@example.com")),),
        ),
        ("has:attachment is:Unread", ((Condition("has", "attachment"),), (Condition("is", "unread"),))),
        ("is:sent OR -is:blocked", ((Condition("is", "sent"), Condition("is", "blocked", is_negated=True)),)),
        ("-category:Marketing", ((Condition("category", "marketing", is_negated=True),),)),
        ("after:1970-01-02", ((Condition("after", 86_400_000),),)),
        ("before:2026-02-01", ((Condition("before", 1_769_904_000_000),),)),
    ],
)
def test_filters_are_read_apart_from_words(q: str, groups: tuple[tuple[Condition, ...], ...]) -> None:
    assert parse(q) == Query(filters=groups)
    assert parse(q + " word") == Query(((word("word"),),), groups)


@samples(
    ("q", "sentence"),
    [
        ("", "nothing to search for"),
        ("  \t\u3000", "nothing to search for"),
        ('"" - & "…"', "nothing to search for"),
        ("x" * 513, "512 characters"),
        (" ".join("x" * 33), "32 terms"),
        (" OR ".join("x" * 33), "32 terms"),
        ('say "hello', "not closed"),
        ('"a" b"', "not closed"),
        ("from: alice", "right after"),
        ("subject:&", "right after"),
        ('-to:""', "right after"),
        ("label:", "right after"),
        ('in:" "', "right after"),
        ("label:a\x00b", "control characters"),
        ("in:\ud800", "control characters"),
        ("is:read", "is:unread or is:sent or is:failed or is:held or is:flagged or is:blocked"),
        ("has:", "has:attachment"),
        ("category:spam", "category:personal or category:automated or"),
        ("before:yesterday", "before:2026-01-31"),
        ("after:2026-02-30", "after:2026-01-31"),
        ("after:20260201", "after:2026-01-31"),
        ("after:0000-01-01", "after:2026-01-31"),
        ("after:٢٠٢٦-01-01", "after:2026-01-31"),
        ("invoice OR label:urgent", "search twice"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_write(q: str, sentence: str) -> None:
    with pytest.raises(InvalidQuery, match=sentence):
        parse(q)


def test_the_longest_query_is_read() -> None:
    assert len(parse(" ".join(["x" * 15] * 32)).terms) == 32


@samples(
    ("q", "fts5", "tsquery"),
    [
        ("is:unread", '("7@")', "('7@')"),
        ("a b*", '(("7_a") AND ("7_b" *))', "((('7_a')) & (('7_b':*)))"),
        ('from:"x y"', '(("7<x 7<y"))', "((('7<x' <-> '7<y')))"),
        ("-a", '(("7@") NOT (("7_a")))', "('7@' & (!('7_a')))"),
        ("-a OR b", '(("7@") NOT (((("7_a") NOT ("7_b")))))', "('7@' & (!('7_a') | ('7_b')))"),
    ],
)
def test_a_query_is_written_for_both_databases(q: str, fts5: str, tsquery: str) -> None:
    assert match_expression.to_fts5(parse(q), ["7"]) == fts5
    assert match_expression.to_tsquery(parse(q), ["7"]) == tsquery
