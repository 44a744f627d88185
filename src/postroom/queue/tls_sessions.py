"""TLS sessions: how they began with the servers of a domain, counted by day (RFC 8460 section 4)."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from postroom.clock import DAY
from postroom.storage.database import Row, Tx

SUCCESS = "success"
LIFETIME = 3 * DAY  # by then a report was written, or none is wanted
MOST_OF_A_DAY = 200  # distinct rows of a domain: one that keeps changing its servers must not fill the disk


class TlsPolicyKept(Struct, frozen=True):
    """The policy of a session: `kind` is tlsa, sts or no-policy-found, `lines` the policy itself."""

    kind: str
    lines: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class TlsSession(Struct, frozen=True):
    """How one session began; `result` is success or a term of section 4.3."""

    domain: str
    policy: TlsPolicyKept
    result: str
    host: str = ""
    ip: str = ""
    reason: str = ""
    own_ip: str = ""  # from which it was tried


class CountedSession(Struct, frozen=True):
    session: TlsSession
    count: int

    @classmethod
    def from_row(cls, row: Row) -> "CountedSession":
        policy = msgspec.json.decode(row["policy"], type=TlsPolicyKept)
        session = TlsSession(
            row["domain"], policy, row["result"], row["host"], row["ip"], row["reason"], row["own_ip"]
        )
        return cls(session, int(row["count"]))


def add_all(tx: Tx, sessions: Sequence[TlsSession], now: int) -> None:
    for session in sessions:
        _add(tx, session, now)


def _add(tx: Tx, session: TlsSession, now: int) -> None:
    values = {
        "day": now // DAY,
        "domain": session.domain,
        "policy_type": session.policy.kind,
        "policy": msgspec.json.encode(session.policy).decode(),
        "result": session.result,
        "host": session.host,
        "ip": session.ip,
        "own_ip": session.own_ip,
        "reason": session.reason,
    }
    same = " and ".join(f"{name} = :{name}" for name in values)
    if tx.run(f"update tls_sessions set count = count + 1 where {same}", **values):
        return
    kinds = tx.one(
        "select count(*) as number from tls_sessions where day = :day and domain = :domain",
        day=now // DAY,
        domain=session.domain,
    )
    if kinds is not None and int(kinds["number"]) < MOST_OF_A_DAY:
        tx.run(
            f"insert into tls_sessions ({', '.join(values)}, count, noted_at)"
            f" values ({', '.join(f':{name}' for name in values)}, 1, :now)"
            f" on conflict ({', '.join(values)}) do update set count = tls_sessions.count + 1",
            now=now,
            **values,
        )


def list_days(tx: Tx, before: int, limit: int) -> list[tuple[int, str]]:
    """List the days and domains not reported yet."""
    rows = tx.all(
        "select distinct day, domain from tls_sessions where day < :before order by day, domain limit :limit",
        before=before,
        limit=limit,
    )
    return [(row["day"], row["domain"]) for row in rows]


def take(tx: Tx, domain: str, day: int) -> list[CountedSession]:
    """Removes and returns all of a domain and day."""
    rows = tx.all(
        "delete from tls_sessions where day = :day and domain = :domain returning *", day=day, domain=domain
    )
    return sorted((CountedSession.from_row(row) for row in rows), key=lambda each: str(each.session))
