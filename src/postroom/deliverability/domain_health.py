"""Domain health: the last result of the daily check, and events when it changes."""

from msgspec import Struct

from postroom.accounts import accounts, audit
from postroom.accounts.actors import THE_SERVER
from postroom.accounts.domains import SERVICE_ID, Domain
from postroom.accounts.scope import Scope, default_pod
from postroom.clock import DAY
from postroom.config import HOME_DOMAIN
from postroom.events import kinds, notifications
from postroom.events.announce import announce_notice
from postroom.events.notice_subjects import EventDomain
from postroom.events.payload import SystemNotice
from postroom.storage.database import Tx, item_from_row

PAGE = "/app/settings/domains"


class LastLook(Struct, frozen=True):
    checked_at: int
    problems: tuple[str, ...]


def find(tx: Tx, domain_id: str) -> LastLook | None:
    row = tx.one("select checked_at, problems from domain_health where domain_id = :id", id=domain_id)
    return None if row is None else LastLook(row["checked_at"], tuple(row["problems"].split()))


def list_due(tx: Tx, service_domain: str, now: int, limit: int) -> list[Domain]:
    """List verified domains not checked for a day; the server's own belongs to the first account."""
    rows = tx.all(
        "select domains.* from domains left join domain_health on domain_id = domains.id"
        " where verified_at is not null and coalesce(checked_at, 0) <= :before order by domains.id"
        " limit :limit",
        before=now - DAY,
        limit=limit,
    )
    found = (item_from_row(Domain, row) for row in rows)
    return [*_service_if_due(tx, service_domain, now), *found]


def _service_if_due(tx: Tx, service_domain: str, now: int) -> list[Domain]:
    first = accounts.find_first(tx)
    last = find(tx, SERVICE_ID)
    is_due = last is None or last.checked_at <= now - DAY
    if service_domain == HOME_DOMAIN or first is None or not is_due:
        return []
    return [Domain(SERVICE_ID, first.id, service_domain, first.created_at, first.created_at, None)]


def record(
    tx: Tx, domain: Domain, seen: tuple[str, ...], unanswered: tuple[str, ...], base_url: str, now: int
) -> None:
    """Records an event in the same transaction if the domain became broken, or works again.

    An earlier fault still counts while DNS gives no answer about it.
    """
    last = find(tx, domain.id)
    lasting = () if last is None else tuple(each for each in last.problems if each in unanswered)
    problems = (*seen, *lasting)
    tx.run(
        "insert into domain_health (domain_id, account_id, checked_at, problems)"
        " values (:id, :account_id, :now, :problems) on conflict (domain_id) do update set"
        " checked_at = excluded.checked_at, problems = excluded.problems",
        id=domain.id,
        account_id=domain.account_id,
        now=now,
        problems=" ".join(problems),
    )
    was_broken = last is not None and bool(last.problems)
    if bool(problems) != was_broken:
        _emit(tx, domain, problems, base_url, now)


def _emit(tx: Tx, domain: Domain, problems: tuple[str, ...], base_url: str, now: int) -> None:
    kind = kinds.DOMAIN_BROKEN if problems else kinds.DOMAIN_MENDED
    pod_id = domain.pod_id or default_pod(domain.account_id)
    found = EventDomain(domain.id, domain.name, list(problems))
    announce_notice(tx, SystemNotice(domain.account_id, pod_id, kind, now, domain=found))
    where = Scope(domain.account_id, pod_id)
    details = {"domain": domain.name, "problems": list(problems)}
    audit.record(tx, THE_SERVER, kind, domain.id, where, now, after=details)
    if problems:
        subject = f"{domain.name}: {', '.join(problems)}"
        link = f"{base_url}{PAGE}"
        notifications.notify(tx, domain.account_id, notifications.DOMAIN_BROKEN, subject, link, now)
