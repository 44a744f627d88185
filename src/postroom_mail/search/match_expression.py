"""A query for each index: an FTS5 expression, and a literal of PostgreSQL's `tsquery`.

Every token is quoted and the operators are ours, so no query can be a syntax error.
"""

from collections.abc import Sequence

from postroom_mail.search import index_entry
from postroom_mail.search.query import Field, Query, Term

MARKS: dict[Field, str] = {
    "": index_entry.ANYWHERE,
    "subject": index_entry.SUBJECT,
    "from": index_entry.SENDER,
    "to": index_entry.RECIPIENTS,
    "scope": index_entry.SCOPE,
}


def to_fts5(query: Query, realms: Sequence[str]) -> str:
    return " OR ".join(f"({_fts5_in_realm(query, realm)})" for realm in realms)


def _fts5_in_realm(query: Query, realm: str) -> str:
    """Subtract unwanted terms from the rest, or from everything: FTS5 can subtract but not negate."""
    wanted = []
    unwanted = []
    for group in query.terms:
        denied = [_fts5_phrase(term, realm) for term in group if term.is_negated]
        allowed = " OR ".join(_fts5_phrase(term, realm) for term in group if not term.is_negated)
        if not denied:
            wanted.append(f"({allowed})")
        else:  # "not a, or b" fails if a is found and b is not
            unwanted.append(
                f"(({' AND '.join(denied)}) NOT ({allowed}))" if allowed else " AND ".join(denied)
            )
    kept = " AND ".join(wanted) or f'"{realm}{index_entry.SCOPE}"'
    return f"({kept}) NOT ({' OR '.join(f'({each})' for each in unwanted)})" if unwanted else kept


def to_tsquery(query: Query, realms: Sequence[str]) -> str:
    return " | ".join(f"({_tsquery_in_realm(query, realm)})" for realm in realms)


def _tsquery_in_realm(query: Query, realm: str) -> str:
    """Return the query.

    Each token begins with its realm, needed alone only if every group has a negated term.
    """
    groups = [" | ".join(_tsquery_phrase(term, realm) for term in group) for group in query.terms]
    has_wanted = any(not any(term.is_negated for term in group) for group in query.terms)
    everything = [] if has_wanted else [f"'{realm}{index_entry.SCOPE}'"]
    return " & ".join([*everything, *(f"({group})" for group in groups)])


def _marked(term: Term, realm: str) -> list[str]:
    return [realm + MARKS[term.field] + token for token in term.tokens]


def _fts5_phrase(term: Term, realm: str) -> str:
    return f'"{" ".join(_marked(term, realm))}"' + (" *" if term.is_beginning else "")


def _tsquery_phrase(term: Term, realm: str) -> str:
    phrase = " <-> ".join(f"'{token}'" for token in _marked(term, realm)) + (
        ":*" if term.is_beginning else ""
    )
    return f"!({phrase})" if term.is_negated else f"({phrase})"
