"""A query as each index reads it: an FTS5 expression, and a literal of PostgreSQL's `tsquery`.

Every token is quoted and the words around them are ours, so no query can be a mistake of syntax.
"""

from collections.abc import Sequence

from postroom.mail.query import MARKS, Query, Term


def to_fts5(query: Query, scope: str) -> str:
    """FTS5 takes away but cannot negate: what is not wanted is taken from what scope and the rest give."""
    wanted = [f'"{scope}"']
    unwanted = []
    for group in query.terms:
        denied = [_fts5_phrase(term) for term in group if term.is_negated]
        allowed = " OR ".join(_fts5_phrase(term) for term in group if not term.is_negated)
        if not denied:
            wanted.append(f"({allowed})")
        else:  # "not a, or b" fails where a is found and b is not
            unwanted.append(
                f"(({' AND '.join(denied)}) NOT ({allowed}))" if allowed else " AND ".join(denied)
            )
    kept = " AND ".join(wanted)
    return f"({kept}) NOT ({' OR '.join(f'({each})' for each in unwanted)})" if unwanted else kept


def to_tsquery(query: Query, scope: str) -> str:
    groups = [" | ".join(_tsquery_phrase(term) for term in group) for group in query.terms]
    return " & ".join([f"'{scope}'", *(f"({group})" for group in groups)])


def marked(term: Term) -> Sequence[str]:
    return [MARKS[term.field] + token for token in term.tokens]


def _fts5_phrase(term: Term) -> str:
    return f'"{" ".join(marked(term))}"' + (" *" if term.is_beginning else "")


def _tsquery_phrase(term: Term) -> str:
    phrase = " <-> ".join(f"'{token}'" for token in marked(term)) + (":*" if term.is_beginning else "")
    return f"!({phrase})" if term.is_negated else f"({phrase})"
