"""The certificates that the server gets itself, the accounts at their authorities, and open challenges."""

from collections.abc import Sequence

from msgspec import Struct

from postroom.clock import HOUR, MINUTE
from postroom.storage.database import Row, Tx, all_of, item_from_row

# The challenges that it can answer: RFC 8555 section 8.3, RFC 8737, RFC 8555 section 8.4.
HTTP_01, TLS_ALPN_01, DNS_01 = "http-01", "tls-alpn-01", "dns-01"
CHALLENGE_LIFETIME = 10 * MINUTE
FIRST_RETRY, LONGEST_RETRY = HOUR, 24 * HOUR  # authorities allow few failures an hour


class StoredCertificate(Struct, frozen=True):
    name: str  # the first of its names
    names: tuple[str, ...]
    chain: str | None  # PEM; None until the first one was issued
    key: str | None
    issued_at: int | None
    expires_at: int | None
    due_at: int  # when the next one is to be ordered
    failures: int  # since the last success
    error: str | None

    @classmethod
    def from_row(cls, row: Row) -> "StoredCertificate":
        return cls(
            row["name"],
            tuple(row["names"].split()),
            row["chain"],
            row["key"],
            row["issued_at"],
            row["expires_at"],
            row["due_at"],
            row["failures"],
            row["error"],
        )


class CertificateOutlook(Struct, frozen=True):
    """For people: without the key."""

    name: str
    names: str  # separated by spaces
    issued_at: int | None
    expires_at: int | None
    due_at: int
    error: str | None


class OpenChallenge(Struct, frozen=True):
    token: str
    name: str
    type: str
    key_authorization: str


class AcmeAccount(Struct, frozen=True):
    directory: str
    key: str
    url: str


def list_all(tx: Tx) -> list[StoredCertificate]:
    return [
        StoredCertificate.from_row(row) for row in tx.all("select * from acme_certificates order by name")
    ]


def list_issued(tx: Tx) -> dict[str, int]:
    """Return when each certificate was issued, by its name."""
    rows = tx.all("select name, issued_at from acme_certificates where issued_at is not null")
    return {row["name"]: row["issued_at"] for row in rows}


def list_named(tx: Tx, names: Sequence[str]) -> list[StoredCertificate]:
    rows = all_of(tx, "select * from acme_certificates where :wanted", "name", names)
    return [StoredCertificate.from_row(row) for row in rows]


def list_states(tx: Tx, limit: int, *, failing: bool = False) -> list[CertificateOutlook]:
    """Return a page of them; those that cannot be renewed come first."""
    rows = tx.all(
        "select name, names, issued_at, expires_at, due_at, error from acme_certificates"
        f" {'where failures > 0' if failing else ''} order by failures desc, due_at limit :limit",
        limit=limit,
    )
    return [item_from_row(CertificateOutlook, row) for row in rows]


def set_wanted(tx: Tx, wanted: Sequence[tuple[str, ...]], now: int) -> None:
    """Adds what is missing, orders anew what shall have other names, and removes what nobody needs."""
    stored = {each.name: each for each in list_all(tx)}
    for names in wanted:
        there = stored.pop(names[0], None)
        if there is None or there.names != names:
            _want(tx, names, now)
    for name in stored:
        tx.run("delete from acme_certificates where name = :name", name=name)


def _want(tx: Tx, names: tuple[str, ...], now: int) -> None:
    tx.run(
        "insert into acme_certificates (name, names, due_at) values (:name, :names, :now)"
        " on conflict (name) do update set names = excluded.names, due_at = excluded.due_at",
        name=names[0],
        names=" ".join(names),
        now=now,
    )


def find_due(tx: Tx, now: int) -> StoredCertificate | None:
    row = tx.one("select * from acme_certificates where due_at <= :now order by due_at limit 1", now=now)
    return None if row is None else StoredCertificate.from_row(row)


def record_issued(tx: Tx, name: str, chain: str, key: str, expires_at: int, due_at: int, now: int) -> None:
    tx.run(
        "update acme_certificates set chain = :chain, key = :key, issued_at = :now, expires_at = :expires_at,"
        " due_at = :due_at, failures = 0, error = null where name = :name",
        name=name,
        chain=chain,
        key=key,
        expires_at=expires_at,
        due_at=due_at,
        now=now,
    )


def record_failure(tx: Tx, failed: StoredCertificate, error: str, retry_at: int | None, now: int) -> None:
    """Record a failure. The existing certificate stays in use."""
    wait = min(FIRST_RETRY * 2 ** min(failed.failures, 8), LONGEST_RETRY)
    tx.run(
        "update acme_certificates set failures = failures + 1, error = :error, due_at = :due_at"
        " where name = :name",
        name=failed.name,
        error=error,
        due_at=max(now + wait, min(retry_at or 0, now + LONGEST_RETRY)),
    )


def order_now(tx: Tx, now: int) -> None:
    tx.run("update acme_certificates set due_at = :now where due_at > :now", now=now)


def find_account(tx: Tx, directory: str) -> AcmeAccount | None:
    row = tx.one(
        "select directory, key, url from acme_accounts where directory = :directory", directory=directory
    )
    return None if row is None else AcmeAccount(row["directory"], row["key"], row["url"])


def save_account(tx: Tx, account: AcmeAccount, now: int) -> None:
    tx.run(
        "insert into acme_accounts (directory, key, url, created_at) values (:directory, :key, :url, :now)"
        " on conflict (directory) do update set key = excluded.key, url = excluded.url",
        directory=account.directory,
        key=account.key,
        url=account.url,
        now=now,
    )


def add_challenge(tx: Tx, challenge: OpenChallenge, now: int) -> None:
    tx.run("delete from acme_challenges where expires_at <= :now", now=now)
    tx.run(
        "insert into acme_challenges (token, name, type, key_authorization, expires_at)"
        " values (:token, :name, :type, :key_authorization, :expires_at)"
        " on conflict (token) do update set key_authorization = excluded.key_authorization",
        token=challenge.token,
        name=challenge.name,
        type=challenge.type,
        key_authorization=challenge.key_authorization,
        expires_at=now + CHALLENGE_LIFETIME,
    )


def remove_challenges(tx: Tx, names: Sequence[str]) -> None:
    for name in names:
        tx.run("delete from acme_challenges where name = :name", name=name)


def answer_http(tx: Tx, token: str, now: int) -> str | None:
    """Return the key authorization that the authority wants to read (RFC 8555, 8.3)."""
    row = tx.one(
        "select key_authorization from acme_challenges where token = :token and type = 'http-01'"
        " and expires_at > :now",
        token=token,
        now=now,
    )
    return None if row is None else str(row["key_authorization"])


def list_tls(tx: Tx, now: int) -> list[OpenChallenge]:
    rows = tx.all(
        "select token, name, type, key_authorization from acme_challenges where type = 'tls-alpn-01'"
        " and expires_at > :now",
        now=now,
    )
    return [OpenChallenge(row["token"], row["name"], row["type"], row["key_authorization"]) for row in rows]
