"""Inboxes: an address that sends and receives."""

import re
from collections.abc import Collection, Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postroom import ids
from postroom.accounts import accounts, domains, keys, names, pods
from postroom.accounts.keys import Caller
from postroom.accounts.rules import limits
from postroom.accounts.rules.limits import AccountLimits
from postroom.accounts.scope import Scope, default_pod
from postroom.errors import AddressTaken, InvalidMailboxName, no_such
from postroom.limits import ADDRESS_CHARACTERS, INBOXES_PER_DAY, MAILBOX_NAME_CHARACTERS
from postroom.mailbox import aliases, inbox_calendars, usage
from postroom.mailbox.usage import UsageGrowth
from postroom.storage import database
from postroom.storage.database import LOCK_ROWS, Row, Tx, all_of, insert, one_of, update, update_item
from postroom_mail.mime.address import mailbox_of

NEWEST_WITH_MAIL, ADDRESSES = 1_000, 100  # of inboxes; of one request that are looked up
UNKNOWN = f"{ids.INBOX}_{'0' * 32}"  # what an address names that belongs to no inbox
MAILBOX_NAME = rf"^(?!.*[.][.])[a-z0-9][a-z0-9.-]{{1,{MAILBOX_NAME_CHARACTERS - 2}}}[a-z0-9]$"
MetadataValue = str | int | float | bool
RESERVED_NAMES = set(
    "postmaster abuse hostmaster webmaster mailer-daemon noc security root admin noreply no-reply".split()
)
_mailbox_name = re.compile(MAILBOX_NAME[1:-1])
CHANGEABLE = "display_name approval limits metadata retention_days canary junk origin_guard".split()
GONE = "inboxes-gone"  # a bell that rings when one was deleted
# Condition on a row that names an inbox: leftovers of a deleted one belong to nobody until removed.
IS_THERE = "inbox_id not in (select inbox_id from removed_inboxes)"


class Outdated(Exception):
    """The cached caller or inbox has changed: it has to be read again."""


class Inbox(Struct, frozen=True):
    id: str
    account_id: str
    address: str
    display_name: str | None
    created_at: int
    pod_id: str
    webhook_url: str | None = None  # its own webhook, a copy of the row in webhooks
    approval: str | None = None
    limits: str | None = None
    metadata: str | None = None
    retention_days: int | None = None
    canary: str | None = None  # a token that must not leave
    external_address: str | None = None  # of the external mailbox that it is connected with
    connection_id: str | None = None  # the connection by which its mail leaves
    client_id: str | None = None  # an id chosen by the client: the same one again returns this inbox
    aliases: str | None = None  # its further addresses, separated by spaces
    catch_all: int = 0  # takes mail to every address of its domain that nobody has
    subdomains: int = 0  # takes mail to its name at every subdomain of its domain
    junk: str | None = None
    origin_guard: str | None = None
    disclosure: str | None = None
    legal_hold: int = 0

    @property
    def known_as(self) -> str:
        """The address that others write to."""
        return self.external_address or self.address

    @property
    def sender(self) -> str:
        """The From address; the external one only if mail leaves through that mailbox."""
        return self.known_as if self.connection_id else self.address

    @property
    def own_addresses(self) -> tuple[str, ...]:
        """The addresses here that it may write from: its own first, then its aliases."""
        return (self.address, *(self.aliases or "").split())

    @property
    def mailboxes(self) -> frozenset[str]:
        """All addresses that are itself, elsewhere too."""
        elsewhere = () if self.external_address is None else (mailbox_of(self.external_address),)
        return frozenset((*self.own_addresses, *elsewhere))

    @property
    def scope(self) -> Scope:
        return Scope(self.account_id, self.pod_id, self.id)

    @classmethod
    def from_row(cls, row: Row) -> "Inbox":
        return cls(*[row[name] for name in cls.__struct_fields__])

    def stores(self, size_bytes: int, now: int) -> UsageGrowth:
        return UsageGrowth(self.id, self.account_id, self.pod_id, usage.STORED_BYTES, size_bytes, now)


_HAS_ADDRESS = "(address = :address or id = (select inbox_id from aliases where address = :address))"
_ASKED = tuple(f"asked_{name}" for name in Inbox.__struct_fields__)
_CALLER_AND_INBOX = f"{keys.OF_CALLER}, {', '.join(f'inboxes.{name[6:]} as {name}' for name in _ASKED)}"
_WITH_CALLER = (
    f"select {_CALLER_AND_INBOX} from {keys.WITH_ACCOUNT}"
    " left join inboxes on inboxes.id = :inbox_id and inboxes.account_id = keys.account_id"
    " where keys.token_hash = :token_hash"
)
_WITH_CALLERS = (
    f"select {_CALLER_AND_INBOX} from (values :rows) as asked cross join {keys.WITH_ACCOUNT}"
    " join inboxes on inboxes.id = asked.column2 and inboxes.account_id = keys.account_id"
    " where keys.id = asked.column1"
)


def require_mailbox_name(name: str, field: str = "mailboxName") -> None:
    if not _mailbox_name.fullmatch(name):
        raise InvalidMailboxName(
            f"{'address' if field == 'address' else field} must be 3 to 30 characters of a-z, 0-9,"
            " dot and hyphen, begin and end with a letter or digit, and have no two dots in a row.",
            field=field,
        )


def add(
    tx: Tx,
    account_id: str,
    name: str,
    domain: str | None,
    display_name: str | None,
    service_domain: str,
    now: int,
    pod_id: str | None = None,
    scope: Scope | None = None,
    per_day: int | None = INBOXES_PER_DAY,
    allow_reserved: bool = False,
) -> Inbox:
    """Uses the default pod if none is given. The domain must be in scope of the caller."""
    require_mailbox_name(name)
    names.require_clean(display_name or "", "displayName")
    if name in RESERVED_NAMES and not allow_reserved:
        raise AddressTaken(f"'{name}' is a reserved name. Choose another.", field="mailboxName")
    used_domain = domains.require_usable(tx, scope or Scope(account_id), domain, service_domain)
    pod = pod_id or default_pod(account_id)
    inbox = Inbox(ids.new(ids.INBOX, now), account_id, f"{name}@{used_domain}", display_name, now, pod)
    accounts.change_inbox_count(tx, account_id, +1)
    pods.change_inbox_count(tx, pod, +1)
    limits.require_inbox_creation(tx, account_id, per_day, now)
    _insert(tx, inbox, domains.zone_of(tx, used_domain, service_domain))
    return inbox


def _insert(tx: Tx, inbox: Inbox, zone: str) -> None:
    is_free = aliases.is_free(tx, inbox.address)
    added = tx.run(
        "insert into inboxes (id, account_id, pod_id, address, domain, display_name, created_at)"
        " values (:id, :account_id, :pod_id, :address, :domain, :display_name, :created_at)"
        " on conflict (address) do nothing",
        id=inbox.id,
        pod_id=inbox.pod_id,
        account_id=inbox.account_id,
        address=inbox.address,
        domain=zone,
        display_name=inbox.display_name,
        created_at=inbox.created_at,
    )
    if added == 0 or not is_free:
        raise AddressTaken(f"{inbox.address} is already in use. Choose another.", field="mailboxName")
    insert(tx, "inbox_creations", inbox_id=inbox.id, account_id=inbox.account_id, created_at=inbox.created_at)
    inbox_calendars.add_default(tx, inbox.scope, inbox.created_at)


def find_with_caller(tx: Tx, token: str, inbox_id: str, now: int) -> tuple[Caller | None, Inbox | None]:
    """Return the caller with this token, and the inbox if it belongs to that account."""
    token_hash = keys.hash_token(token)
    row = tx.one(_WITH_CALLER, token_hash=token_hash, inbox_id=inbox_id)
    caller = None if row is None else keys.to_caller(row, token_hash, now)
    if row is None or caller is None or row["asked_id"] is None:
        return caller, None
    return caller, _asked(row)


def require_unchanged(tx: Tx, remembered: Sequence[tuple[Caller, Inbox]], now: int) -> None:
    """Raises Outdated unless caller and inbox are exactly as they were when read."""
    asked = sorted({(caller.key_id, inbox.id) for caller, inbox in remembered})
    found = {
        (row["id"], row["asked_id"]): (keys.to_caller(row, row["token_hash"], now), _asked(row))
        for row in tx.many(_WITH_CALLERS, asked)
    }
    if any(found.get((caller.key_id, inbox.id)) != (caller, inbox) for caller, inbox in remembered):
        raise Outdated


def _asked(row: Row) -> Inbox:
    return Inbox(*[row[name] for name in _ASKED])


def get(tx: Tx, scope: Scope, inbox_id: str) -> Inbox:
    inbox = find(tx, inbox_id) if ids.is_id(ids.INBOX, inbox_id) else None
    if inbox is None or not is_within(inbox, scope):
        raise no_such("inbox")
    return inbox


def is_within(inbox: Inbox, scope: Scope) -> bool:
    return scope.covers(inbox.account_id, inbox.pod_id, inbox.id)


def list_within(tx: Tx, scope: Scope, limit: int, offset: int) -> tuple[list[Inbox], int]:
    """List the inboxes in scope, newest first."""
    if scope.inbox_id is not None:
        only = find(tx, scope.inbox_id)
        found = [only] if only is not None and is_within(only, scope) else []
        return found[offset : offset + limit], len(found)
    owner, table = ("account_id", "accounts") if scope.pod_id is None else ("pod_id", "pods")
    owner_id = scope.pod_id or scope.account_id
    rows = tx.all(
        f"select * from inboxes where {owner} = :owner_id"
        " order by created_at desc, id desc limit :limit offset :offset",
        owner_id=owner_id,
        limit=limit,
        offset=offset,
    )
    total = database.count(tx, f"select inbox_count as number from {table} where id = :id", id=owner_id)
    return [Inbox.from_row(row) for row in rows], total


def set_client_id(tx: Tx, inbox_id: str, client_id: str) -> None:
    update(tx, "inboxes", inbox_id, client_id=client_id)


def put(tx: Tx, inbox: Inbox) -> None:
    """Stores the fields that its owner may change."""
    names.require_clean(inbox.display_name or "", "displayName")
    update_item(tx, "inboxes", inbox, (*CHANGEABLE, "catch_all", "subdomains", "disclosure"))


def decode_metadata(stored: str | None) -> dict[str, MetadataValue]:
    return {} if stored is None else msgspec.json.decode(stored, type=dict[str, MetadataValue])


def find_by_address(tx: Tx, mailbox: str) -> Inbox | None:
    """Find by its own address or an alias; `mailbox` is normalized: lower case, without a +tag."""
    row = tx.one(f"select * from inboxes where {_HAS_ADDRESS}", address=mailbox)
    return None if row is None else Inbox.from_row(row)


def find_catch_all(tx: Tx, domain: str) -> Inbox | None:
    row = tx.one("select * from inboxes where domain = :domain and catch_all = 1", domain=domain)
    return None if row is None else Inbox.from_row(row)


def with_ids(tx: Tx, given: Sequence[str]) -> list[str]:
    """Return an id in place of each address; the case and a +tag do not count."""
    named = [each for each in given if "@" in each and len(each) <= ADDRESS_CHARACTERS]
    mailboxes = {each: mailbox_of(each) for each in named[:ADDRESSES]}
    wanted = sorted(set(mailboxes.values()))
    rows = all_of(tx, "select id, address from inboxes where :wanted", "address", wanted)
    rows += all_of(tx, "select inbox_id as id, address from aliases where :wanted", "address", wanted)
    found = {row["address"]: row["id"] for row in rows}
    return [found.get(mailboxes.get(each, ""), UNKNOWN) if "@" in each else each for each in given]


def are_within(tx: Tx, scope: Scope, inbox_ids: Iterable[str]) -> bool:
    """Return whether each of these ids is an inbox in scope."""
    for inbox_id in inbox_ids:
        found = find(tx, inbox_id) if ids.is_id(ids.INBOX, inbox_id) else None
        if found is None or not is_within(found, scope):
            return False
    return True


def find_under_policy(tx: Tx, inbox_ids: Iterable[str]) -> frozenset[str]:
    """Return those inboxes whose mail a policy checks before it is let in."""
    asked = sorted(inbox_ids)
    found: set[str] = set()
    for start in range(0, len(asked), 500):
        is_asked, params = one_of("inboxes.id", asked[start : start + 500])
        rows = tx.all(
            f"select id from inboxes where {is_asked} and exists (select 1 from policies"
            " where direction = 'inbound' and scope_id in (inboxes.id, inboxes.pod_id, inboxes.account_id))",
            **params,
        )
        found |= {row["id"] for row in rows}
    return frozenset(found)


def narrow(tx: Tx, scope: Scope, inbox_id: str | None, pod_id: str | None) -> Scope | None:
    """Return the part of a scope that a filter names. None if there is no such inbox or pod in scope."""
    if pod_id is not None:
        pod = pods.find(tx, scope, pod_id)
        if pod is None:
            return None
        scope = Scope(scope.account_id, pod.id, scope.inbox_id)
    if inbox_id is None and scope.inbox_id is None:
        return scope
    asked = inbox_id or scope.inbox_id or ""
    inbox = find(tx, asked) if ids.is_id(ids.INBOX, asked) else None
    return Scope(inbox.account_id, inbox.pod_id, inbox.id) if inbox and is_within(inbox, scope) else None


def find(tx: Tx, inbox_id: str) -> Inbox | None:
    row = tx.one("select * from inboxes where id = :id", id=inbox_id)
    return None if row is None else Inbox.from_row(row)


def lock(tx: Tx, inbox_id: str) -> Inbox:
    """Lock an inbox, always as the first lock: until the commit nothing is stored in it or deleted."""
    row = tx.one(f"select * from inboxes where id = :id {LOCK_ROWS}", id=inbox_id)
    if row is None:
        raise no_such("inbox")
    return Inbox.from_row(row)


def count(
    tx: Tx,
    inbox_id: str,
    *,
    inbound: int = 0,
    outbound: int = 0,
    new_threads: int = 0,
    unread: int = 0,
    blocked: int = 0,
    junk: int = 0,
    stored_bytes: int = 0,
) -> Inbox:
    """Counts what is about to be stored, and locks the inbox."""
    row = tx.one(
        "update inboxes set inbound_count = inbound_count + :inbound, junk_count = junk_count + :junk,"
        " outbound_count = outbound_count + :outbound, thread_count = thread_count + :new_threads,"
        " unread_count = unread_count + :unread, blocked_count = blocked_count + :blocked,"
        " stored_bytes = stored_bytes + :stored_bytes"
        " where id = :id returning *",
        inbound=inbound,
        outbound=outbound,
        new_threads=new_threads,
        unread=unread,
        blocked=blocked,
        junk=junk,
        stored_bytes=stored_bytes,
        id=inbox_id,
    )
    if row is None:
        raise no_such("inbox")
    return Inbox.from_row(row)


def count_unread(tx: Tx, inbox_ids: Sequence[str]) -> dict[str, int]:
    """Return the number of unread threads of each inbox."""
    wanted = all_of(tx, "select id, unread_count from inboxes where :wanted", "id", inbox_ids)
    return {row["id"]: int(row["unread_count"]) for row in wanted}


def addresses_of(tx: Tx, inbox_ids: Sequence[str]) -> dict[str, str]:
    return {
        row["id"]: row["address"]
        for row in all_of(tx, "select id, address from inboxes where :wanted", "id", inbox_ids)
    }


def find_existing(tx: Tx, inbox_ids: Collection[str]) -> set[str]:
    return {row["id"] for row in all_of(tx, "select id from inboxes where :wanted", "id", sorted(inbox_ids))}


def has_mail(tx: Tx, scope: Scope) -> bool:
    """Return whether one of the newest inboxes in scope has received email; others are not looked at."""
    owner, owner_id = scope.owner_of_inboxes
    found = tx.one(
        f"select max(inbound_count) as most from (select inbound_count from inboxes where {owner} = :owner_id"
        " order by created_at desc, id desc limit :limit) as newest",
        owner_id=owner_id,
        limit=NEWEST_WITH_MAIL,
    )
    return found is not None and (found["most"] or 0) > 0


def set_webhook_url(tx: Tx, inbox: Inbox, url: str | None) -> Inbox:
    tx.run("update inboxes set webhook_url = :url where id = :id", url=url, id=inbox.id)
    return replace(inbox, webhook_url=url)


def remove(tx: Tx, scope: Scope, inbox_id: str, now: int) -> Inbox:
    """Remove an inbox. It disappears at once; upkeep removes its mail in small steps."""
    accounts.change_inbox_count(tx, scope.account_id, -1)
    inbox = get(tx, scope, inbox_id)
    pods.change_inbox_count(tx, inbox.pod_id, -1)
    keys.remove_all_of_inbox(tx, inbox.id)
    aliases.remove_all(tx, inbox.id)
    inbox_calendars.remove_all_of_inbox(tx, inbox.id)
    row = tx.one("delete from inboxes where id = :id returning stored_bytes", id=inbox.id)
    usage.count_all(tx, [inbox.stores(-int(row["stored_bytes"]), now)] if row else [])
    insert(tx, "removed_inboxes", inbox_id=inbox.id, removed_at=now)
    return inbox


def connect(tx: Tx, inbox_id: str, address: str | None, connection_id: str | None) -> None:
    """Connects it with an external mailbox, through which its mail also leaves if there is a connection."""
    update(tx, "inboxes", inbox_id, external_address=address, connection_id=connection_id)


def read_budget(tx: Tx, inbox: Inbox, allowed: AccountLimits, now: int) -> dict[str, limits.Use]:
    return limits.read_uses(tx, inbox.id, limits.decode(inbox.limits), now, allowed)
