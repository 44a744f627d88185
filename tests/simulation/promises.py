"""What docs/reliability.md promises, asked of the rows and of the peers when all is quiet again."""

from collections.abc import Iterator

from postroom.mailbox.search import indexing
from postroom.storage.database import Tx
from postroom.upkeep.verification import verify
from tests.simulation.clients import Clients
from tests.simulation.cluster import Cluster


async def broken(cluster: Cluster, clients: Clients) -> list[str]:
    """Each promise that does not hold, in words; empty: all of them do."""
    tx = cluster.shared.read_tx
    found = [
        *mails_are_there_once(tx, clients),
        *sends_are_there_once(tx, clients),
        *everything_had_its_end(tx),
        *no_nudge_came_twice_or_after_an_answer(tx),
        *invitations_are_events_once(tx, clients),
        *what_left_was_taken(tx, clients, cluster),
        *nothing_went_twice_without_excuse(cluster),
        *events_are_numbered_without_gaps(tx),
        *journals_are_empty(cluster),
    ]
    verified = await verify.verify(cluster.nodes[0].resources, repairs=False, report=lambda by: None)
    return found + [f"{each.part}: {each.id} {each.what}" for each in verified.findings]


def count(tx: Tx, sql: str, **params: object) -> int:
    row = tx.one(f"select count(*) as total from {sql}", **params)
    return int(row["total"]) if row else 0


def mails_are_there_once(tx: Tx, clients: Clients) -> Iterator[str]:
    """A mail that was answered 250 is in its inbox once, with one event."""
    for name, inbox_id in clients.mails.items():
        rows = tx.all(
            "select id from messages where inbox_id = :inbox_id and rfc_message_id = :name",
            inbox_id=inbox_id,
            name=name,
        )
        if len(rows) != 1:
            yield f"the mail {name} is there {len(rows)} times"
        for row in rows:
            told = count(tx, "events where message_id = :id and kind = 'message.received'", id=row["id"])
            if told != 1:
                yield f"the mail {name} was told {told} times"


def sends_are_there_once(tx: Tx, clients: Clients) -> Iterator[str]:
    """A send that was answered 200 is one message; a key never makes two."""
    for key, message_id in clients.sends.items():
        if count(tx, "messages where id = :id and direction = 'outbound'", id=message_id) != 1:
            yield f"the send {key} is not there"
    stored = count(tx, "messages where direction = 'outbound'")
    if stored != count(tx, "idempotency_keys"):
        yield f"{stored} messages were sent by {count(tx, 'idempotency_keys')} keys"


def everything_had_its_end(tx: Tx) -> Iterator[str]:
    for row in tx.all("select id, kind, state, attempts from deliveries where state = 'pending'"):
        yield f"the delivery {row['id']} ({row['kind']}) still waits after {row['attempts']} attempts"
    if left := indexing.progress(tx).waiting:
        yield f"{left} messages wait for the index"
    for row in tx.all("select message_id, state from holds where state in ('held', 'scheduled')"):
        if count(tx, "deliveries where message_id = :id", id=row["message_id"]) == 0:
            yield f"the hold of {row['message_id']} was never let go"


def no_nudge_came_twice_or_after_an_answer(tx: Tx) -> Iterator[str]:
    """A nudge was accepted before its answer, once, or it was cancelled and is nowhere."""
    for row in tx.all("select id, thread_id, state, sent_id from follow_ups"):
        sent = count(tx, "messages where thread_id = :id and direction = 'outbound'", id=row["thread_id"]) - 1
        if sent != (row["sent_id"] is not None):
            yield f"the follow-up {row['id']} is {row['state']}, and {sent} were sent"
        if row["state"] == "scheduled":
            yield f"the follow-up {row['id']} waits though it was answered"


def invitations_are_events_once(tx: Tx, clients: Clients) -> Iterator[str]:
    """An invitation that was answered 200 is one event, told once, that waits no more for its email."""
    for uid in clients.invitations:
        rows = tx.all("select message_id, waits_for from calendar_events where uid_key = :uid", uid=uid)
        if len(rows) != 1:
            yield f"the invitation {uid} is {len(rows)} events"
        for row in rows:
            if count(tx, "messages where id = :id", id=row["message_id"]) != 1:
                yield f"the event {uid} has no email"
            if row["waits_for"] is not None:
                yield f"the event {uid} still waits for its email"
    told = count(tx, "events where kind = 'calendar.created'")
    if told != len(clients.invitations):
        yield f"{len(clients.invitations)} invitations were told {told} times"


def what_left_was_taken(tx: Tx, clients: Clients, cluster: Cluster) -> Iterator[str]:
    """`sent` means that the other side has it; to an inbox here it came exactly once."""
    for key, message_id in clients.sends.items():
        row = tx.one("select rfc_message_id, status from messages where id = :id", id=message_id)
        assert row is not None
        name = row["rfc_message_id"].strip("<>")
        for recipient in clients.recipients[key]:
            if row["status"] == "sent" and not cluster.peers.taken.get((name, recipient)):
                yield f"{key} is sent, and {recipient} never got it"
        inside = tx.all(
            "select target from deliveries where message_id = :id and target like '%@postroom.localhost'",
            id=message_id,
        )
        copies = count(
            tx, "messages where direction = 'inbound' and rfc_message_id = :name", name=row["rfc_message_id"]
        )
        if copies != len(inside):
            yield f"{key} came {copies} times to {len(inside)} inboxes here"
    for row in tx.all("select event_id from deliveries where kind = 'webhook' and state = 'delivered'"):
        if not cluster.peers.taken.get(("webhook", row["event_id"])):
            yield f"the event {row['event_id']} is done, and was never posted"


def nothing_went_twice_without_excuse(cluster: Cluster) -> Iterator[str]:
    is_alone = len(cluster.nodes) == 1
    for name, taken in cluster.peers.taken.items():
        if len(taken) > 1 and not all(each.may_go_again(is_alone) for each in taken[:-1]):
            yield f"{name} went {len(taken)} times, though its answer was known"


def events_are_numbered_without_gaps(tx: Tx) -> Iterator[str]:
    for row in tx.all("select account_id, count(*) as total, max(position) as last from events group by 1"):
        if row["total"] != row["last"]:
            yield f"{row['total']} events are numbered up to {row['last']}"


def journals_are_empty(cluster: Cluster) -> Iterator[str]:
    for path in cluster.folder.glob("node-*/*.journal"):
        yield f"{path.parent.name} still keeps {path.name}"
