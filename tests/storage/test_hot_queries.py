"""No query walks a table: each runs beside thousands of rows that are not meant, and its work is counted."""

import contextlib
import json
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
import pytest_asyncio
from msgspec.structs import replace

from postroom.accounts import keys
from postroom.accounts.permissions import READING
from postroom.accounts.scope import Scope
from postroom.events import kinds
from postroom.inward import examine
from postroom.inward.mails import Arrival, Destination, Origin
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader, receive_mail
from postroom.mailbox import inboxes, thread_digests, usage
from postroom.mailbox.documents import encode
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.mailbox.search import contents, indexing, message_facts, message_search
from postroom.outward import deliver_mail
from postroom.outward.courier import DeliveryError, Receipt, WebhookAnswer, to_outcome
from postroom.outward.delivering import mail_job
from postroom.outward.delivering.mail_job import TriedMail
from postroom.queue import deliveries, leader_leases
from postroom.queue.claims import Claims
from postroom.resources import Resources
from postroom.smtp.recipient_directory import DatabaseDirectory
from postroom.storage.database import Tx
from postroom.web.app import App
from postroom.web.streams.hub import Hubs
from postroom.web.streams.stream import Streams
from postroom_mail.search import days, index_entry
from postroom_mail.search.index_entry import Searchable
from postroom_mail.search.query import parse
from tests.api.test_dashboard import new_link
from tests.conftest import ENGINES, Server, new_postgres_database, running_server, settings
from tests.doubles import FakeClock, post_intake
from tests.filled_inbox import NUMBERS, document, write_at_leisure
from tests.first_pages import put_audit
from tests.postgres_databases import MIGRATED
from tests.watched_database import WatchedDatabase, Work

T = TypeVar("T")

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = 4_000
# A walk through the rows above takes SQLite some 20,000 steps at least, and PostgreSQL shows all of them.
MOST_STEPS = 9_000
MOST_ROWS = 1_500
COUNTED = "limit :most"  # totals count so far and no farther
COUNTED_THREADS = re.compile(r"limit (:shown|1050)\)( as part_\d_\d)?\) as found$")
DOCUMENT = b'{"direction":"inbound","fromAddr":"","headerTo":"","bodyText":"","bodyHtml":"","replyText":""}'
PAYLOAD = b'{"message":{"body_text":"","reply_text":""}}'
OTHERS = ("message.sent", "message.failed")  # kinds of the many; what is asked for is rare


def insert(tx: Tx, table: str, values: dict[str, str], **params: object) -> None:
    columns, selected = ", ".join(values), ", ".join(values.values())
    tx.run(f"insert into {table} ({columns}) {NUMBERS} select {selected} from numbers", count=ROWS, **params)


def crowd(tx: Tx, account_id: str, inbox_id: str, now: int, is_analysed: bool) -> None:
    """Rows of the account and the inbox in every table, none of which is asked for."""
    given = {"account": account_id, "inbox": inbox_id, "now": now, "content": DOCUMENT}
    delivery = {
        "id": "'whd_' || :inbox || n",
        "account_id": ":account",
        "inbox_id": ":inbox",
        "kind": "'webhook'",
        "message_id": "'msg_' || n",
        "event_id": "'evt_' || n",
        "target": "'http://there.example/' || n",
        "lane": "'http://there.example/'",
        "position": "0",
        "is_cold": "0",
        "state": "'delivered'",
        "attempts": "1",
        "waits_used": "0",
        "due_at": ":now - n",
        "last_reply": "''",
        "created_at": ":now - n",
        "finished_at": ":now - n",
    }
    insert(tx, "deliveries", delivery, **without(given, "content"))
    insert(
        tx,
        "deliveries",
        delivery | {"id": "'out_' || :inbox || n", "kind": "'mail'", "state": "'delivered'", "is_cold": "0"},
        **without(given, "content"),
    )
    insert(
        tx,
        "attempts",
        {"delivery_id": "'whd_' || :inbox || n", "number": "1", "started_at": ":now"},
        inbox=inbox_id,
        now=now,
    )
    thread = {
        "id": "'thr_' || n",
        "account_id": ":account",
        "pod_id": "'pod_' || substr(:account, 5)",
        "inbox_id": ":inbox",
        "subject": "'Hello'",
        "is_read": "1",
        "message_count": "1",
        "last_message_at": ":now - n",
        "created_at": ":now - n",
        "digest": ":digest",
    }
    digest = thread_digests.encode(thread_digests.EMPTY)
    insert(tx, "threads", thread, account=account_id, inbox=inbox_id, now=now, digest=digest)
    message = {
        "id": "'msg_' || n",
        "inbox_id": ":inbox",
        "thread_id": "'thr_' || n",
        "direction": "'inbound'",
        "status": "'received'",
        "rfc_message_id": "'<' || n || '@x>'",
        "from_address": "'alice@example.com'",
        "has_attachments": "0",
        "document": ":content",
        "created_at": ":now - n",
    }
    insert(tx, "messages", message, **without(given, "account"))
    raw_mail = {"message_id": "'msg_' || n", "size_bytes": "1", "content": ":content"}
    insert(tx, "raw_mails", raw_mail, content=b"x")
    event = {
        "id": "'evt_' || n",
        "account_id": ":account",
        "position": "n",
        "pod_id": "'pod_' || substr(:account, 5)",
        "inbox_id": ":inbox",
        "text_files": "''",
        "kind": f"case when n % 2 = 0 then '{OTHERS[0]}' else '{OTHERS[1]}' end",
        "payload": ":content",
        "message_id": "'msg_' || n",
        "created_at": ":now - n",
    }
    insert(tx, "events", event, **given | {"content": PAYLOAD})
    tx.run("update accounts set event_position = :count where id = :id", count=ROWS, id=account_id)
    correspondent = {
        "inbox_id": ":inbox",
        "address": "'someone' || n || '@x.example'",
        "is_trusted": "1",
        "name": "'someone' || n",
    }
    insert(tx, "correspondents", correspondent, inbox=inbox_id)
    suppression = {
        "account_id": ":account",
        "address": "'someone' || n || '@x.example'",
        "type": "'manual'",
        "created_at": ":now - n",
    }
    insert(tx, "suppressions", suppression, account=account_id, now=now)
    crowd_beside_threads(tx, account_id, inbox_id, now)
    insert(
        tx,
        "handovers",
        {"inbox_id": ":inbox", "content_hash": "'hash' || n", "received_at": ":now"},
        inbox=inbox_id,
        now=now,
    )
    insert(tx, "participants", {"thread_id": "'thr_1'", "address": "'someone' || n || '@x.example'"})
    inbox = {
        "id": "'inb_' || n",
        "account_id": ":account",
        "pod_id": "'pod_' || substr(:account, 5)",
        "domain": "'postroom.localhost'",
        "address": "'name' || n || '@postroom.localhost'",
        "created_at": ":now - n",
    }
    insert(tx, "inboxes", inbox, account=account_id, now=now)
    insert(
        tx,
        "idempotency_keys",
        {
            "account_id": ":account",
            "idempotency_key": "'key' || n",
            "request_hash": "''",
            "answer": ":content",
            "created_at": ":now",
        },
        **without(given, "inbox"),
    )
    if is_analysed:
        tx.run("analyze")


def crowd_beside_threads(tx: Tx, account_id: str, inbox_id: str, now: int) -> None:
    named = {"inbox_id": ":inbox", "rfc_message_id": "'<named' || n || '@x>'", "thread_id": "'thr_' || n"}
    insert(tx, "named_ids", named, inbox=inbox_id)
    insert(tx, "related_threads", {"thread_id": "'thr_' || n", "related_id": "'thr_' || (n + 1)"})
    label = {
        "thread_id": "'thr_' || n",
        "label": "'other'",
        "shown": "'Other'",
        "account_id": ":account",
        "pod_id": "''",
        "inbox_id": ":inbox",
        "last_message_at": ":now - n",
    }
    insert(tx, "labels", label, account=account_id, inbox=inbox_id, now=now)
    check = {
        "message_id": "'msg_' || n",
        "peer_ip": "''",
        "helo": "''",
        "mail_from": "''",
        "due_at": ":now + 100000 + n",
    }
    insert(tx, "examinations", check, now=now)
    day = {"inbox_id": ":inbox", "day": "n", "account_id": ":account", "pod_id": "''"}
    counters = dict.fromkeys(usage.COUNTERS, "0")
    insert(tx, "usage_days", day | counters, inbox=inbox_id, account=account_id)


def put_backlog(tx: Tx, account_id: str, inbox_id: str, now: int) -> None:
    """Deliveries of each kind that are due, in a lane of which as many are under way as may be."""
    for kind in deliveries.BELLS:
        waiting = {
            "id": "'due_' || :kind || n",
            "account_id": ":account",
            "inbox_id": ":inbox",
            "kind": ":kind",
            "message_id": "'msg_' || n",
            "target": "'x@slow.example'",
            "lane": "'slow.example'",
            "position": "0",
            "is_cold": "0",
            "state": "'pending'",
            "attempts": "0",
            "waits_used": "0",
            "due_at": ":now - 100000 - n",
            "last_reply": "''",
            "created_at": ":now - n",
        }
        insert(tx, "deliveries", waiting, kind=kind, account=account_id, inbox=inbox_id, now=now)
    tx.run("analyze deliveries")  # as both databases do by themselves when so many rows are new


def without(values: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in values.items() if key != name}


@dataclass(frozen=True)
class Crowded:
    server: Server
    database_url: str
    account_id: str
    hello: dict[str, Any]


@contextlib.asynccontextmanager
async def crowded_server(folder: Path, database_url: str, is_analysed: bool) -> AsyncIterator[Crowded]:
    async with running_server(settings(folder, DATABASE_URL=database_url), FakeClock()) as server:
        account_id = (await server.api.get("/v1/me")).json()["accountId"]
        hello = (await server.api.get(f"/v1/inboxes/{await server.new_inbox('hello')}")).json()
        crowded = Crowded(server, database_url, account_id, hello)
        await fill_in(crowded, crowd, account_id, hello["id"], crowded.server.clock.now(), is_analysed)
        yield crowded


async def fill_in(crowded: Crowded, work: Callable[..., T], *given: object) -> T:
    write = crowded.server.resources.db.write
    return await write_at_leisure(write, crowded.database_url, work, *given)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=ENGINES)
async def crowded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Crowded]:
    """One for all: what a test leaves are a few rows among thousands."""
    with contextlib.ExitStack() as stack:
        is_postgres = request.param == "postgres"
        database_url = stack.enter_context(new_postgres_database(MIGRATED)) if is_postgres else ""
        async with crowded_server(tmp_path_factory.mktemp("crowded"), database_url, True) as made:
            yield made


def watch(crowded: Crowded, work: Work) -> Resources:
    resources = crowded.server.resources
    return replace(resources, db=WatchedDatabase(resources.db, work))


@contextlib.asynccontextmanager
async def client_of(crowded: Crowded, watched: Resources) -> AsyncIterator[httpx2.AsyncClient]:
    """The same server by a door whose every statement is watched."""
    door = App(watched, RefusingCourier(), Streams(watched, Hubs(watched)), post_intake(watched))
    headers = {"Authorization": f"Bearer {crowded.server.token}"}
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(door), base_url="http://inside", headers=headers
    ) as client:
        yield client


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def watched(crowded: Crowded, work: Work) -> Resources:
    return watch(crowded, work)


@pytest_asyncio.fixture(loop_scope="module")
async def api(crowded: Crowded, watched: Resources) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(crowded, watched) as client:
        yield client


class RefusingCourier:
    async def post(self, url: str, body: bytes, headers: object) -> WebhookAnswer:
        raise DeliveryError("nobody is there", permanent=False)


def is_counted(sql: str) -> bool:
    return COUNTED in sql or (sql.startswith("select count(*)") and COUNTED_THREADS.search(sql) is not None)


def require_short(work: Work, crowded: Crowded) -> None:
    most = MOST_ROWS if crowded.database_url else MOST_STEPS
    walks = {sql: amount for sql, amount in work.of.items() if amount > most and not is_counted(sql)}
    assert not walks, "\n".join(f"{amount}: {sql}" for sql, amount in walks.items())
    assert work.of


OLD = 1_577_750_400_000  # the last day of 2019
UNREAD, LABELLED, OF_THAT_DAY = (f"msg_{ROWS - place}" for place in range(3))


def tell_apart(tx: Tx, scope: Scope, address: str) -> Inbox:
    """All have one word in common; the last three, far behind the others, can be told by something else."""
    inbox = inboxes.get(tx, scope, str(scope.inbox_id))
    tx.run(
        "update threads set account_id = :account, pod_id = :pod where inbox_id = :inbox",
        account=inbox.account_id,
        pod=inbox.pod_id,
        inbox=inbox.id,
    )
    for message_id in (UNREAD, LABELLED, OF_THAT_DAY):
        written = encode(replace(document(inbox.id, address), id=message_id))
        tx.run("update messages set document = :document where id = :id", document=written, id=message_id)
    tx.run("update messages set created_at = :old where id = :id", old=OLD, id=OF_THAT_DAY)
    tx.run("update threads set is_read = 0 where id = :id", id=UNREAD.replace("msg", "thr"))
    tx.run(
        "insert into labels (thread_id, label, shown, account_id, pod_id, inbox_id, last_message_at)"
        " select id, 'urgent', 'urgent', account_id, pod_id, inbox_id, last_message_at from threads"
        " where id = :id",
        id=LABELLED.replace("msg", "thr"),
    )
    tx.run("analyze")
    return inbox


def put_words(tx: Tx, inbox: Inbox, now: int) -> None:
    """Into the index, whose tables may be in a file of their own."""
    indexing.add_realms(tx, {inbox.pod_id: inbox.account_id})
    row = tx.one("select number from search_realms where pod_id = :pod_id", pod_id=inbox.pod_id)
    assert row is not None
    entries = []
    for number in range(1, ROWS + 1):
        moment = OLD if f"msg_{number}" == OF_THAT_DAY else now - number
        scopes = [contents.inbox_scope(inbox.id), *days.words_of(moment)]
        mail = Searchable(subject="Words", sender="", recipients=[], text="")
        entries.append((ROWS - number, index_entry.of_mail(mail, indexing.realm_of(row["number"]), scopes)))
    tx.fulltext.put_all(entries)
    tx.run(
        f"insert into search_documents (doc, message_id, version) {NUMBERS}"
        " select :count - n, 'msg_' || n, 2 from numbers",
        count=ROWS,
    )
    tx.run("analyze")


def find_ids(tx: Tx, scope: Scope, q: str) -> list[str]:
    question = message_search.ask(tx, scope, parse(q), "postroom.localhost")
    page = message_search.find(tx, question, None, 20, Links("", 0, b""), lambda: False)
    return [json.loads(found.message)["id"] for found in page.found]


async def test_a_search_by_label_state_or_day_goes_to_the_few_that_have_it(
    crowded: Crowded, watched: Resources, work: Work
) -> None:
    """The first of all: no mail has been put into the index yet."""
    account_id, hello = crowded.account_id, crowded.hello
    whole, own = Scope(account_id), Scope(account_id, hello["podId"], hello["id"])
    inbox = await fill_in(crowded, tell_apart, own, hello["address"])
    write = crowded.server.resources.db.write_index
    await write_at_leisure(write, crowded.database_url, put_words, inbox, crowded.server.clock.now())
    for filters, wanted in {
        "is:unread": UNREAD,
        "label:Urgent": LABELLED,
        "before:2020-01-01": OF_THAT_DAY,
        "after:2019-12-31 before:2020-01-01": OF_THAT_DAY,
    }.items():
        for scope in (whole, own):
            work.total = 0
            assert await watched.db.read_long(find_ids, 60, scope, f"words {filters}") == [wanted]
            assert work.total < (MOST_ROWS if crowded.database_url else MOST_STEPS), (filters, work.of)


async def test_no_request_walks_a_table(
    crowded: Crowded, api: httpx2.AsyncClient, watched: Resources, work: Work
) -> None:
    hello = crowded.hello["id"]
    event = f"/v1/events?after=evt_{'0' * 32}"
    for path in (
        "/v1/inboxes?limit=100&offset=500",
        f"/v1/inboxes/{hello}/threads?is_read=false",
        f"/v1/inboxes/{hello}/threads?is_read=true&offset=100",
        f"/v1/inboxes/{hello}/messages?direction=outbound",
        f"/v1/inboxes/{hello}/messages?direction=inbound&offset=900",
        f"/v1/inboxes/{hello}/wait?timeout=0&after=evt_{'0' * 32}",
        f"/v1/inboxes/{hello}/wait?timeout=0&after=msg_{'0' * 32}",
        f"/v1/inboxes/{hello}/api-keys",
        event,
        "/v1/events",
        "/v1/events?event_types=message.bounced",
        f"/v1/events?event_types={','.join(kind for kind in kinds.KINDS if kind not in OTHERS)}",
        f"/v1/events?event_types=message.bounced&inbox_ids={hello}",
        f"/v1/events?inbox_ids={hello},inb_{'0' * 32}",
        "/v1/suppressions?offset=100",
        "/v1/domains",
        "/v1/webhook",
        "/v1/webhook/deliveries?state=failed",
        "/v1/webhook/deliveries?state=pending",
        "/v1/webhook/deliveries?offset=100",
        "/v1/me",
        "/metrics",
        "/ready",
    ):
        assert (await api.get(path)).status_code in (200, 204, 404), path
    since = {"since": "2020-01-01T00:00:00Z"}
    assert (await api.post("/v1/webhook/deliveries/retry", json=since)).status_code == 200
    assert (await api.post("/v1/suppressions", json={"address": "x@y.example"})).status_code == 201
    assert (await api.delete("/v1/suppressions/x@y.example")).status_code == 204
    assert (await api.post("/v1/inboxes", json={"mailboxName": "another"})).status_code == 201
    made = await api.post(f"/v1/inboxes/{hello}/api-keys", json={"name": "k"})
    assert (await api.delete(f"/v1/inboxes/{hello}/api-keys/{made.json()['id']}")).status_code == 204
    await watched.db.read(message_facts.list_newest, Scope(crowded.account_id), 20)
    require_short(work, crowded)


async def test_neither_sending_nor_the_queue_walks_a_table(
    crowded: Crowded, api: httpx2.AsyncClient, watched: Resources, work: Work
) -> None:
    hello = crowded.hello["id"]
    for number in range(3):
        mail = {"to": [f"a{number}@x.example", f"b{number}@x.example"], "subject": "Hello", "body": "Hello"}
        sent = await api.post(
            f"/v1/inboxes/{hello}/send", json=mail, headers={"Idempotency-Key": uuid.uuid4().hex}
        )
        assert sent.status_code == 200, sent.text
    message_id = sent.json()["id"]
    assert (await api.get(f"/v1/messages/{message_id}")).status_code == 200
    thread_id = sent.json()["threadId"]
    assert (await api.get(f"/v1/threads/{thread_id}/messages")).status_code == 200
    assert (await api.patch(f"/v1/threads/{thread_id}", json={"is_read": False})).status_code == 200
    reply = {"to": "a1@x.example", "threadId": thread_id, "body": "And?"}
    key = {"Idempotency-Key": uuid.uuid4().hex}
    assert (await api.post(f"/v1/inboxes/{hello}/send", json=reply, headers=key)).status_code == 200
    later = crowded.server.clock.now() + 60_000
    claimed = await watched.db.write(Claims(deliveries.MAIL).claim, [], 64, later)
    await watched.db.write(deliveries.renew, claimed, later)
    for delivery in claimed:
        job = await watched.db.read(mail_job.look_up, delivery, "postroom.localhost")
        if job is not None:
            outcome = to_outcome(Receipt(250, "ok"), later, later)
            await watched.db.write(deliver_mail.record_tried, [TriedMail(job, outcome, "http://x")])
    await watched.db.write(Claims(deliveries.WEBHOOK).claim, [], 100, later)
    assert (await api.post(f"/v1/messages/{message_id}/cancel")).status_code in (200, 409)
    await watched.db.read(deliveries.oldest_due_at, later)
    require_short(work, crowded)


async def test_mail_in_walks_no_table(crowded: Crowded, watched: Resources, work: Work) -> None:
    hello = crowded.hello["id"]
    directory = DatabaseDirectory(watched, b"secret")
    for address in ("hello@postroom.localhost", "nobody@postroom.localhost", "x@elsewhere.example"):
        verdict = directory.check_recipient(address)
        assert isinstance(verdict, Awaitable)
        await verdict
    for number in range(2):
        raw = (
            f"From: Bob {number} <bob{number}@x.example>\r\nMessage-ID: <n{number}@x>\r\n"
            "To: hello@postroom.localhost\r\n"
            "In-Reply-To: <5@x>\r\nReferences: <none@x> <7@x>\r\nSubject: Re: Hello\r\n\r\nHello\r\n"
        ).encode()
        arrival = Arrival(Origin((Destination(hello),), b"", "127.0.0.1", "x", "bob@x.example"), raw)
        await receive_mail(watched, OwnReader(AT_ONCE_BYTES), arrival)
    now = crowded.server.clock.now()
    due = await watched.db.write(examine.claim_due, [], 8, now)
    await watched.db.write(examine.renew, due, now)
    await watched.db.read(keys.find_allowed, [f"key_{'0' * 32}"], READING, now)
    assert await watched.db.write(leader_leases.take, "a test", "me", now + 1, now)
    require_short(work, crowded)


async def test_sqlite_finds_its_way_before_it_has_looked_at_its_tables(tmp_path: Path, work: Work) -> None:
    """It looks at them every ten minutes."""
    async with crowded_server(tmp_path, "", is_analysed=False) as crowded:
        watched = watch(crowded, work)
        await test_mail_in_walks_no_table(crowded, watched, work)
        async with client_of(crowded, watched) as api:
            await test_neither_sending_nor_the_queue_walks_a_table(crowded, api, watched, work)


async def test_the_first_pages_of_mail_and_audit_look_at_their_own_rows(
    crowded: Crowded, watched: Resources, work: Work
) -> None:
    server = crowded.server
    await fill_in(crowded, put_audit, crowded.account_id, ROWS, crowded.server.clock.now())
    raw = b"From: Eve <eve@x.example>\r\nTo: hello@postroom.localhost\r\nSubject: Latest\r\n\r\nHello\r\n"
    origin = Origin((Destination(crowded.hello["id"]),), b"", "127.0.0.1", "x", "eve@x.example")
    await receive_mail(server.resources, OwnReader(AT_ONCE_BYTES), Arrival(origin, raw))
    door = App(watched, RefusingCourier(), Streams(watched, Hubs(watched)), post_intake(watched))
    headers = {"Origin": "http://inside", "Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(door), base_url="http://inside", headers=headers
    ) as page:
        proof = {"link": await new_link(server), "name": "Ann"}
        assert (await page.post("/app/sign-in", data=proof)).status_code == 303
        [newest] = (await server.api.get(f"/v1/inboxes/{crowded.hello['id']}/messages?limit=1")).json()[
            "data"
        ]
        thread = f"/app/mail/{newest['threadId']}?message={newest['id']}"
        for path in ("/app/mail", "/app/mail?unread=true", thread, "/app/settings/audit"):
            assert (await page.get(path)).status_code == 200, path
        page.headers["Authorization"] = f"Bearer {server.token}"
        for path in ("/v1/audit", "/v1/audit?action=key.created", "/v1/threads"):
            assert (await page.get(path)).status_code == 200, path
    require_short(work, crowded)


async def test_a_backlog_in_a_full_lane_is_walked_through_once(
    crowded: Crowded, watched: Resources, work: Work
) -> None:
    """The last of all: the server tries to deliver what is put there."""
    db, now = crowded.server.resources.db, crowded.server.clock.now()
    await fill_in(crowded, put_backlog, crowded.account_id, crowded.hello["id"], now)
    for claims in map(Claims, deliveries.BELLS):
        running = await db.write(claims.claim, [], 10, now)
        assert [delivery.lane for delivery in running] == ["slow.example"] * deliveries.LANE_WIDTH
        assert await watched.db.write(claims.claim, running, 10, now + 1) == []
        more = await watched.db.write(claims.claim, running[1:], 10, now + 2)
        assert [delivery.lane for delivery in more] == ["slow.example"]
        require_short(work, crowded)
