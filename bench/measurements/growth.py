"""Hot queries where much is stored beside where little is, on SQLite and PostgreSQL, with their plans."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

import uvloop

from bench.measurements.search import opened
from bench.plans import plans_of
from bench.processes import scratch_folder
from bench.results import Aim, Peer, Result
from bench.smtp_load import SmtpLoad, compose
from postroom.accounts import accounts, keys
from postroom.accounts.scope import Scope
from postroom.clock import SECOND, SystemClock
from postroom.events import event_log, webhooks
from postroom.events.event_log import EventChoice
from postroom.inward import destinations
from postroom.inward.deposit import deposit
from postroom.inward.mails import AcceptedMail, Arrival, Destination, Origin
from postroom.inward.receive import read_mail
from postroom.mailbox import contacts, inboxes, message_lists, messages, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.search import message_facts
from postroom.mailbox.thread_work import ANY_WORK
from postroom.queue import deliveries, statistics
from postroom.queue.claims import Claims
from postroom.storage.data_folder import DATABASE_NAME
from postroom.storage.database import Tx
from postroom.storage.engines.postgres import PostgresSession
from postroom.storage.engines.sqlite import SqliteSession
from postroom.upkeep import expiry
from tests import filled_inbox
from tests.postgres_engine import running_postgres

DOMAIN, SECRET = "postroom.localhost", b"bench"
MESSAGES, FEW_MESSAGES = 30_000, 3_000  # of one inbox; few, too, are more than a total is counted
RATIO = 1.2
ROUNDS, WARM_UP = 60, 16  # PostgreSQL settles on a plan after ten
PAGE = 50
TOGETHER = 16
BYTES = 5_000
AT_ONCE = 50_000  # rows of a statement
ANALYZED = ("inboxes", "threads", "messages", "events", "deliveries", "webhooks", "contacts")
HEAD = b"Received: from bench.example by postroom.localhost;\r\n\tMon, 1 Jan 2026 00:00:00 +0000\r\n"
KINDS = "case n % 4 when 0 then 'message.sent' when 1 then 'message.failed' else 'message.received' end"
NUMBERS = (
    "with recursive numbers (n) as (select cast(:first as bigint) union all"
    " select n + 1 from numbers where n < :last)"
)

Session = SqliteSession | PostgresSession


@dataclass(frozen=True, slots=True)
class Amount:
    """A million messages of one inbox come with 100,000 inboxes, 10,000 webhooks and ten million events."""

    messages: int

    @property
    def inboxes(self) -> int:
        return self.messages // 10

    @property
    def webhooks(self) -> int:
        return self.messages // 100

    @property
    def events(self) -> int:
        return self.messages * 10


@dataclass(frozen=True, slots=True)
class Place:
    """What is asked for: an inbox that holds much, and its account."""

    session: Session
    inbox: Inbox
    token: str
    message_id: str
    thread_id: str
    event_position: int
    backend: int  # the process of PostgreSQL
    mails: list[AcceptedMail]

    @property
    def whole(self) -> Scope:
        return Scope(self.inbox.account_id)


def measure(size: int = MESSAGES) -> list[Result]:
    with scratch_folder() as folder, running_postgres() as url, ExitStack() as stack:
        results = []
        for engine, urls in (("SQLite", ("", "")), ("PostgreSQL", _databases(url))):
            few, many = (
                stack.enter_context(_filled(folder / f"{engine}-{number}", each, Amount(amount)))
                for number, (each, amount) in enumerate(
                    zip(urls, (min(FEW_MESSAGES, size), size), strict=True)
                )
            )
            results += [_compare(engine, name, ask, few, many) for name, ask in HOT.items()]
        return results


HOT: dict[str, Callable[[Tx, Place], object]] = {
    "key of a request": lambda tx, at: keys.find_caller(tx, at.token, _now()),
    "inbox of a request": lambda tx, at: inboxes.get(tx, at.whole, at.inbox.id),
    "recipient": lambda tx, at: destinations.find(tx, at.inbox.address, SECRET, DOMAIN, _now()),
    "unknown recipient": lambda tx, _: destinations.find(tx, f"nobody@{DOMAIN}", SECRET, DOMAIN, _now()),
    "list of inboxes": lambda tx, at: inboxes.list_within(tx, at.whole, PAGE, 0),
    "list of messages": lambda tx, at: message_lists.list_of_inbox(tx, at.inbox.id, None, PAGE, 0),
    "list of received messages": lambda tx, at: message_lists.list_of_inbox(
        tx, at.inbox.id, messages.INBOUND, PAGE, 0
    ),
    "message": lambda tx, at: messages.find(tx, at.message_id),
    "messages of a thread": lambda tx, at: messages.list_of_thread(tx, at.thread_id, PAGE, 0),
    "list of threads of an inbox": lambda tx, at: threads.list_of_inbox(tx, at.inbox.id, None, PAGE, 0),
    "list of unread threads": lambda tx, at: threads.list_within(
        tx, at.whole, False, None, PAGE, 0, ANY_WORK
    ),
    "newest received messages": lambda tx, at: message_facts.list_newest(tx, at.whole, PAGE),
    "events behind a position": lambda tx, at: event_log.list_after(
        tx, EventChoice(at.whole), at.event_position - PAGE, PAGE
    ),
    "events of a kind in an inbox": lambda tx, at: event_log.list_before(
        tx, EventChoice(at.inbox.scope, kinds=frozenset({"message.received"})), None, PAGE
    ),
    "webhooks of an inbox": lambda tx, at: webhooks.list_for_inbox(tx, at.inbox.id, at.inbox.account_id),
    "due deliveries": lambda tx, _: Claims(deliveries.WEBHOOK).claim(tx, [], TOGETHER, _now()),
    "contacts": lambda tx, at: contacts.list_within(tx, at.inbox.scope, PAGE, 0),
    "depths of the queue": lambda tx, _: statistics.depths(tx, _now()),
    "rows to expire": lambda tx, _: expiry.expire_rows(tx, _now(), TOGETHER),
    f"deposit of {TOGETHER}": lambda tx, at: deposit(tx, at.mails),
}


def _databases(url: str) -> tuple[str, str]:
    """One more, beside the first."""
    session = PostgresSession(url)
    session.tx.run("create database many")
    session.close()
    return url, url.replace("/postgres?", "/many?")


@contextmanager
def _filled(folder: Path, url: str, amount: Amount) -> Iterator[Place]:
    """A session of a new database with so much stored."""
    uvloop.run(_migrate(folder, url))
    session = PostgresSession(url) if url else SqliteSession(folder / DATABASE_NAME)
    with closing(session):
        yield _fill(session, amount)


async def _migrate(folder: Path, url: str) -> None:
    async with opened(folder, url):
        pass


def _now() -> int:
    return SystemClock().now()


def _fill(session: Session, amount: Amount) -> Place:
    tx, now, token = session.tx, _now(), keys.new_token()
    with _commit(session):
        account = accounts.add(tx, "bench", "developer", now)
        keys.add(tx, account.id, None, "bench", token, now)
        inbox_id = filled_inbox.fill(tx, account.id, "full", DOMAIN, amount.messages, now)
        tx.run("update accounts set event_position = :last where id = :id", last=amount.events, id=account.id)
    inbox = inboxes.get(tx, Scope(account.id), inbox_id)
    given = {"account": account.id, "inbox": inbox_id, "pod": inbox.pod_id, "now": now}
    for table, count, columns in _rows(amount):
        for first in range(1, count + 1, AT_ONCE):
            with _commit(session):
                _insert(tx, table, columns, first, min(count, first + AT_ONCE - 1), given)
    for table in ANALYZED:
        tx.run(f"analyze {table}")
    number = f"{inbox_id}{100_000_000 + amount.messages // 2}"
    mails = [_accepted(inbox, number) for number in range(TOGETHER)]
    return Place(
        session,
        inbox,
        token,
        f"msg_{number}",
        f"thr_{number}",
        amount.events // 2,
        _find_backend(session),
        mails,
    )


@contextmanager
def _commit(session: Session) -> Iterator[None]:
    session.begin()
    yield
    session.commit()


def _rows(amount: Amount) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Other accounts of 50 inboxes, webhooks of inboxes, events with their deliveries, contacts."""
    owner = "'acc_' || (n / 50)"
    yield (
        "accounts",
        amount.inboxes // 50 + 1,
        {
            "id": "'acc_' || (n - 1)",
            "name": "'other ' || n",
            "plan": "'free'",
            "created_at": ":now",
        },
    )
    yield (
        "inboxes",
        amount.inboxes,
        {
            "id": "'inb_' || n",
            "account_id": owner,
            "pod_id": "'pod_' || (n / 50)",
            "address": f"'other' || n || '@{DOMAIN}'",
            "domain": f"'{DOMAIN}'",
            "created_at": ":now - n",
        },
    )
    yield (
        "webhooks",
        amount.webhooks,
        {
            "owner": "'inb_' || n",
            "account_id": owner,
            "url": "'https://there.example/' || n",
            "event_types": "'message.received'",
            "secret": "'s'",
            "enabled": "1",
            "created_at": ":now",
        },
    )
    about = {
        "account_id": ":account",
        "inbox_id": ":inbox",
        "message_id": "'msg_' || n",
        "created_at": ":now - n",
    }
    yield (
        "events",
        amount.events,
        about
        | {
            "id": "'evt_' || n",
            "position": "n",
            "pod_id": ":pod",
            "kind": KINDS,
            "text_files": "''",
            "payload": "cast('{}' as bytea)",
        },
    )
    yield (
        "deliveries",
        amount.messages,
        about
        | {
            "id": "'whd_' || n",
            "kind": "'webhook'",
            "event_id": "'evt_' || n",
            "target": "'https://there.example/'",
            "lane": "'https://there.example/'",
            "position": "0",
            "is_cold": "0",
            "state": "'delivered'",
            "attempts": "1",
            "waits_used": "0",
            "due_at": ":now - n",
            "last_reply": "''",
            "finished_at": ":now - n",
        },
    )
    counts = dict.fromkeys(contacts.COUNTS, "1")
    yield (
        "contacts",
        amount.messages,
        counts
        | {
            "inbox_id": ":inbox",
            "address": "'someone' || n || '@x.example'",
            "pod_id": ":pod",
            "account_id": ":account",
            "name": "'Someone'",
            "first_at": ":now - n",
            "last_at": ":now - n",
        },
    )


def _insert(
    tx: Tx, table: str, columns: dict[str, str], first: int, last: int, given: dict[str, object]
) -> None:
    values = ", ".join(columns.values())
    used = {name: value for name, value in given.items() if f":{name}" in values}
    tx.run(
        f"insert into {table} ({', '.join(columns)}) {NUMBERS} select {values} from numbers",
        first=first,
        last=last,
        **used,
    )


def _accepted(inbox: Inbox, number: int) -> AcceptedMail:
    raw = compose(SmtpLoad(0, inbox.address, 1, number, BYTES), number).removesuffix(b".\r\n")
    origin = Origin((Destination(inbox.id),), HEAD, "127.0.0.1", "bench.example", "sender@example.com")
    return AcceptedMail(read_mail(Arrival(origin, raw)), "http://localhost", _now() + SECOND)


def _compare(engine: str, name: str, ask: Callable[[Tx, Place], object], few: Place, many: Place) -> Result:
    """In turn; what they write is undone. The lower quartile: others' work makes some longer."""
    times: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(WARM_UP + ROUNDS):
        for number, place in enumerate((few, many)):
            times[number].append(_time(place, ask))
    _print_plans(engine, name, ask, many)
    little, much = (quantiles(times[number][WARM_UP:], n=4, method="inclusive")[0] for number in (0, 1))
    aim = Aim(RATIO, is_ceiling=True, is_ratio=True)
    return Result(f"{engine}: {name}", much, "µs", aim, Peer("little stored", little, much / little))


def _time(place: Place, ask: Callable[[Tx, Place], object]) -> float:
    """Microseconds of a processor, here and in the process of PostgreSQL that answers."""
    place.session.begin()
    began = time.thread_time_ns() + _of_backend(place.backend)
    ask(place.session.tx, place)
    nanoseconds = time.thread_time_ns() + _of_backend(place.backend) - began
    place.session.rollback()
    return nanoseconds / 1000


def _of_backend(pid: int) -> int:
    """Nanoseconds on a processor (proc_schedstat); 0 on SQLite, which has none."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) if pid else 0


def _find_backend(session: Session) -> int:
    if isinstance(session, SqliteSession):
        return 0
    row = session.tx.one("select pg_backend_pid() as pid")
    assert row is not None
    return int(row["pid"])


def _print_plans(engine: str, name: str, ask: Callable[[Tx, Place], object], place: Place) -> None:
    place.session.begin()
    for statement, plan in plans_of(place.session.tx, lambda tx: ask(tx, place)):
        print(f"{engine}: {name}: {statement}", *plan, sep="\n    ", file=sys.stderr)
    place.session.rollback()
