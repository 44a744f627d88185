"""Random play of evidence: an agent obeys attackers, people decide at random, nodes die, contacts are erased.

Legal holds are set and lifted, contacts exported and erased while email arrives and old email expires. The
judge asks: did a value travel that nobody saw? Do the audit log, its exports and every receipt verify without
the server? Did anything go that was held? Is anything left of what was erased?
POSTROOM_TEST_EVIDENCE_PLAYS=100 POSTROOM_TEST_PLAY_STEPS=300 plays as long as you like.
"""

import contextlib
import hashlib
import io
import json
import os
import random
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.accounts.actors import USER
from postroom.clock import DAY, HOUR, MINUTE
from postroom.mailbox import jobs
from postroom.mailbox.search import index_upkeep, indexing
from postroom.outward.courier import OutgoingMail
from postroom.upkeep import keep_evidence, upkeep_loop
from postroom.upkeep.erasure import run_jobs
from tests import warm_start
from tests.doubles import FakeClock
from tests.outward.test_evidence import require_signed
from tests.simulation import ways_in
from tests.simulation.evidence_world import (
    WRITTEN,
    Bait,
    Node,
    NodeDied,
    Person,
    let_in,
    living,
    tables_with,
)

PLAYS = int(os.environ.get("POSTROOM_TEST_EVIDENCE_PLAYS", "1"))
STEPS = int(os.environ.get("POSTROOM_TEST_PLAY_STEPS", "70"))
FIRST_SEED = int(os.environ.get("POSTROOM_TEST_EVIDENCE_SEED", "4"))
DEATHS = 0.04  # of each transaction of background work
ATTACKERS = [f"eve{number}@evil{number}.example" for number in range(3)]
CUSTOMERS = ["ann@one.example", "ben@two.example"]
INBOXES = ["amy", "bob"]
LINE = "written by an AI assistant"
FREE = dict.fromkeys(("SENDS_PER_MINUTE", "SENDS_PER_DAY", "COLD_PER_DAY", "REQUESTS_PER_MINUTE"), "0")


@dataclass
class Sent:
    """What the agent sent: where the value in it came from, and what people decided."""

    id: str
    recipient: str
    bait: Bait
    must_be_seen: bool
    approved_by: Person | None = None
    left: list[bytes] = field(default_factory=list)


@dataclass
class Held:
    """A legal hold, and the messages that were there when it was set."""

    path: str
    messages: set[str]


class Play:
    def __init__(self, folder: Path, database_url: str, seed: int) -> None:
        self.folder, self.database_url = folder, database_url
        self.dice = random.Random(seed)
        self.clock = FakeClock()
        self.stack = contextlib.AsyncExitStack()
        self.nodes: list[Node] = []
        self.lives: list[contextlib.AsyncExitStack] = []
        self.token = ""
        self.agent = ""
        self.inboxes: dict[str, str] = {}
        self.people: list[Person] = []
        self.baits: list[Bait] = []
        self.sent: dict[str, Sent] = {}  # by mark
        self.holds: dict[str, Held] = {}
        self.jobs: list[str] = []
        self.deaths = 0
        self.methods: set[str] = set()  # how those had signed in whose approvals are in receipts
        self.faults: list[str] = []

    # --- machinery

    async def open(self) -> None:
        self.folder.mkdir()
        for number in range(2 if self.database_url else 1):
            await self.start(number)
        api = self.api
        account = {"disclosure": {"text": "ready"}, "originGuard": "hold", "retentionDays": 20}
        assert (await api.patch("/v1/account", json=account)).status_code == 200
        for name in INBOXES:
            made = await api.post("/v1/inboxes", json={"mailboxName": name})
            self.inboxes[name] = made.json()["id"]
        self.agent = (await self.nodes[0].house.key(None, "read", "draft", "send"))[1]
        for name, with_passkey in (("rita", True), ("carl", False)):
            self.people.append(await let_in(self.nodes[0].house, name, with_passkey))

    async def start(self, number: int) -> None:
        """A node begins a life; the first one of all makes the account."""
        life = contextlib.AsyncExitStack()
        values = {**FREE, "AUDIT_EXPORT": str(self.folder.parent / f"{self.folder.name}-audit")}
        node = await life.enter_async_context(
            living(self.folder, self.database_url, self.clock, self.dice, self.token, **values)
        )
        node.house.sink.watch = self.watch
        self.token = self.token or node.house.api.headers["Authorization"].removeprefix("Bearer ")
        self.nodes[number:] = [node, *self.nodes[number + 1 :]]
        self.lives[number:] = [life, *self.lives[number + 1 :]]

    async def close(self) -> None:
        for life in self.lives:
            await life.aclose()

    @property
    def node(self) -> Node:
        return self.dice.choice(self.nodes)

    @property
    def api(self) -> httpx2.AsyncClient:
        return self.node.house.api

    async def works(self, work: Callable[[Node], Any]) -> None:
        """Background work of a node, which may die of it and then lives again."""
        node = self.node
        node.db.rate = DEATHS
        try:
            await work(node)
        except NodeDied:
            self.deaths += 1
            number = self.nodes.index(node)
            await self.lives[number].aclose()
            await self.start(number)
        finally:
            node.db.rate = 0.0

    async def select(self, statement: str, **values: str) -> list[Any]:
        return await self.nodes[0].house.resources.db.read(lambda tx: tx.all(statement, **values))

    # --- the judge, at the moment at which an email leaves

    def watch(self, mail: OutgoingMail) -> None:
        if mail.mail_from == "":
            return  # a letter of the server to its people
        found = message_from_bytes(mail.raw, policy=policy.default)
        sent = self.sent.get(str(found["X-Mark"]))
        if sent is None:
            self.faults.append(f"nobody sent this to {mail.recipient}")
            return
        if sent.must_be_seen and sent.approved_by is None and not sent.bait.is_erased:
            self.faults.append(f"a value of {sent.bait.sender} left to {mail.recipient} unseen")
        body = found.get_body(("plain",))
        if LINE not in str(body and body.get_content()):
            self.faults.append(f"{sent.id} does not say that an agent wrote it")
        sent.left.append(mail.raw)

    # --- what happens, each at random

    async def an_attacker_writes(self) -> None:
        bait = Bait(self.dice.choice(ATTACKERS), self.dice.choice(INBOXES), len(self.baits) + 1)
        self.baits.append(bait)
        house = self.node.house
        await ways_in.receive(house, self.inboxes[bait.inbox], bait.sender, bait.raw())
        name = f"<{bait.secret}@outside.example>"
        [row] = await self.select("select id from messages where rfc_message_id = :name", name=name)
        bait.id = row["id"]

    async def the_agent_obeys(self) -> None:
        there = [each for each in self.baits if not each.is_erased and await self.is_there(each.id)]
        if not there:
            return await self.an_attacker_writes()
        bait = self.dice.choice(there)
        written = self.dice.choice(WRITTEN)(self.dice.choice(bait.values))
        recipient = self.dice.choice([*CUSTOMERS, *CUSTOMERS, bait.sender])
        must_be_seen = recipient != bait.sender
        body = {"to": recipient, "subject": "As asked", "body": f"Here: {written}"}
        if written.startswith("<p>"):
            body["bodyHtml"] = written
        answer = await self.send(self.agent, bait, body, must_be_seen)
        reasons = answer.get("hold", {}).get("reasons", [])
        assert ("origin" in reasons) == must_be_seen, (written, recipient, answer)

    async def send(self, token: str, bait: Bait, body: dict[str, Any], must_be_seen: bool) -> dict[str, Any]:
        mark = f"mark-{len(self.sent)}"
        house = self.node.house
        answer = await house.client(token).post(
            f"/v1/inboxes/{self.inboxes[bait.inbox]}/send",
            json={**body, "headers": {"X-Mark": mark}},
            headers={"Idempotency-Key": mark},
        )
        found: dict[str, Any] = answer.json()
        if answer.status_code == 422:
            assert found["error"] == "recipient_suppressed", found
            return {"hold": {"reasons": ["origin"] if must_be_seen else []}}
        assert answer.status_code == 200, found
        self.sent[mark] = Sent(found["id"], str(body["to"]), bait, must_be_seen)
        return found

    async def a_person_decides(self) -> None:
        page = (await self.api.get("/v1/approvals?limit=100")).json()["data"]
        if page:
            word = self.dice.choice(["approve", "approve", "reject"])
            await self.decide(self.dice.choice(self.people), self.dice.choice(page), word)

    async def decide(self, person: Person, waiting: dict[str, Any], word: str) -> None:
        sent = next(each for each in self.sent.values() if each.id == waiting["message"]["id"])
        if word == "approve":
            sent.approved_by = person
        if not await person.decide(self.node.house, sent.id, word, waiting["hold"]["contentHash"]):
            sent.approved_by = None

    async def mail_leaves(self) -> None:
        await self.works(lambda node: node.house.step(self.dice.choice([0, MINUTE, HOUR])))

    async def time_passes(self) -> None:
        self.clock.turn(self.dice.choice([HOUR, DAY, 3 * DAY]))
        await self.works(lambda node: upkeep_loop.one_round(node.house.resources))

    async def evidence_is_kept(self) -> None:
        await self.works(lambda node: keep_evidence.one_round(node.house.resources))

    async def a_hold_is_set_or_lifted(self) -> None:
        name = self.dice.choice(INBOXES)
        path = f"/v1/inboxes/{self.inboxes[name]}"
        where, place = "inbox_id", self.inboxes[name]
        if self.dice.random() < 0.6 and self.baits:
            rows = await self.select("select id from threads")
            if rows:
                where, place = "thread_id", self.dice.choice(rows)["id"]
                path = f"/v1/threads/{place}"
        if path in self.holds:
            return await self.lift(path)
        assert (await self.api.patch(path, json={"legalHold": True})).status_code == 200
        self.holds[path] = Held(path, await self.messages_in(where, place))

    async def lift(self, path: str) -> None:
        await self.require_kept(self.holds.pop(path))
        assert (await self.api.patch(path, json={"legalHold": False})).status_code == 200

    async def require_kept(self, held: Held) -> None:
        there = await self.messages_in("1", "1")
        assert held.messages <= there, f"{held.path} was held and lost {held.messages - there}"

    async def messages_in(self, where: str, place: str) -> set[str]:
        rows = await self.select(f"select id from messages where cast({where} as text) = :place", place=place)
        return {row["id"] for row in rows}

    async def is_there(self, message_id: str) -> bool:
        return bool(await self.select("select id from messages where id = :id", id=message_id))

    async def a_contact_is_erased(self) -> None:
        address = self.dice.choice([*ATTACKERS, *CUSTOMERS])
        answer = await self.api.delete(f"/v1/contacts/{address}")
        assert answer.status_code in (202, 404, 409), answer.text
        if answer.status_code == 409:
            assert (answer.json()["error"], bool(self.holds)) == ("legal_hold", True)
        if answer.status_code == 202:
            self.jobs.append(answer.json()["jobId"])
            for bait in self.baits:
                bait.is_erased = bait.is_erased or bait.sender == address

    async def a_job_goes_on(self) -> None:
        for job_id in await self.nodes[0].house.resources.db.read(jobs.list_running):
            await self.works(partial(self.carry_out, job_id))

    async def carry_out(self, job_id: str, node: Node) -> None:
        await run_jobs.carry_out(node.house.resources, job_id)

    async def a_contact_is_exported(self) -> None:
        address = self.dice.choice([*ATTACKERS, *CUSTOMERS])
        answer = await self.api.get(f"/v1/contacts/{address}/export")
        if answer.status_code == 404:
            return
        archive = zipfile.ZipFile(io.BytesIO(answer.content))
        assert archive.testzip() is None
        manifest = json.loads(archive.read("manifest.json"))
        for each in manifest["files"]:
            content = archive.read(each["path"])
            assert (len(content), hashlib.sha256(content).hexdigest()) == (each["sizeBytes"], each["sha256"])
        found = {name.split("/")[1].removesuffix(".eml") for name in archive.namelist() if ".eml" in name}
        own = [each for each in self.baits if each.sender == address and await self.is_there(each.id)]
        assert {each.id for each in own} <= found
        whole = b"".join(archive.read(name) for name in archive.namelist()).decode(errors="replace")
        others = [each.secret for each in self.baits if each.sender != address and each.secret in whole]
        assert others == [], "an export holds email of somebody else"

    # --- the whole

    async def play(self, steps: int) -> None:
        weights = {
            self.an_attacker_writes: 5,
            self.the_agent_obeys: 6,
            self.a_person_decides: 5,
            self.mail_leaves: 5,
            self.time_passes: 1,
            self.evidence_is_kept: 2,
            self.a_hold_is_set_or_lifted: 3,
            self.a_contact_is_erased: 4,
            self.a_job_goes_on: 3,
            self.a_contact_is_exported: 2,
        }
        for act in self.dice.choices(list(weights), list(weights.values()), k=steps):
            await act()
            assert self.faults == []

    async def end(self) -> None:
        """All that waits comes to its end, then everything is asked."""
        for path in sorted(self.holds):
            await self.lift(path)
        for address in {each.sender for each in self.baits if each.is_erased}:
            answer = await self.api.delete(f"/v1/contacts/{address}")
            assert answer.status_code in (202, 404), answer.text
            self.jobs += [answer.json()["jobId"]] if answer.status_code == 202 else []
        self.clock.turn(MINUTE)
        house = self.nodes[0].house
        for job_id in await house.resources.db.read(jobs.list_running):
            await run_jobs.carry_out(house.resources, job_id)
        await house.step(2 * DAY)
        await upkeep_loop.one_round(house.resources)
        await self.let_each_person_approve()
        await house.step(MINUTE)
        assert self.faults == []
        await self.require_jobs_done()
        await self.require_receipts()
        await self.require_nothing_left()
        await self.require_log()

    async def let_each_person_approve(self) -> None:
        """So that every play ends with receipts of decisions."""
        for person in self.people:
            await self.an_attacker_writes()
            value = self.baits[-1].values[0]
            body = {"to": CUSTOMERS[0], "subject": "As asked", "body": value}
            sent = await self.send(self.agent, self.baits[-1], body, must_be_seen=True)
            page = (await self.api.get("/v1/approvals?limit=100")).json()["data"]
            waiting = next(each for each in page if each["message"]["id"] == sent["id"])
            await self.decide(person, waiting, "approve")

    async def require_jobs_done(self) -> None:
        for job_id in self.jobs:
            job = (await self.api.get(f"/v1/jobs/{job_id}")).json()
            assert (job["state"], job["done"]) == ("done", job["total"]), job

    async def require_receipts(self) -> None:
        keys = (await self.api.get("/.well-known/postroom-keys.json")).json()
        for sent in self.sent.values():
            answer = await self.api.get(f"/v1/messages/{sent.id}/receipt")
            if answer.status_code == 404:
                assert not await self.is_there(sent.id)
                continue
            receipt = answer.json()
            require_signed(receipt, keys)
            left = {hashlib.sha256(raw).hexdigest() for raw in sent.left}
            told = {each["sha256"] for each in receipt["deliveries"] if each["state"] == "delivered"}
            assert told <= left, "a receipt names bytes that never left"
            assert bool(told) == bool(left) or receipt["message"]["status"] != "sent"
            decided = [each for each in receipt["decisions"] if each["action"] == "message.approved"]
            assert len(decided) == (sent.approved_by is not None), receipt["decisions"]
            for each in decided:
                assert sent.approved_by is not None
                told_by = (each["actor"]["type"], each["actor"]["name"], each["method"])
                assert told_by == (USER, sent.approved_by.name, sent.approved_by.method)
                assert each["contentHash"] == receipt["content"]["contentHash"]
                self.methods.add(each["method"])

    async def require_nothing_left(self) -> None:
        secrets = {each.secret for each in self.baits if each.is_erased}
        db = self.nodes[0].house.resources.db
        if not secrets:
            return
        while await indexing.step(db, "index", self.clock.now()):
            pass
        await index_upkeep.tidy(db)
        assert await db.read(lambda tx: tables_with(tx, secrets)) == {}
        for secret in secrets:
            assert (await self.api.get(f"/v1/search?q={secret}")).json()["data"] == []
        for path in (self.folder / "blobs").rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            assert not [secret for secret in secrets if secret.encode() in content], path

    async def require_log(self) -> None:
        """By the command, without the server, over all that was exported on the way."""
        self.clock.turn(2 * DAY)
        await self.nodes[0].house.api.post("/v1/pods", json={})
        await keep_evidence.one_round(self.nodes[0].house.resources)
        audit = self.folder.parent / f"{self.folder.name}-audit"
        checked = warm_start.run(["audit", "verify", "--no-json", str(audit)], dict(os.environ))
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert "entries and" in checked.stderr


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + PLAYS))
async def test_whatever_an_agent_obeys_evidence_holds_and_what_is_erased_is_gone(
    database_url: str, tmp_path: Path, seed: int
) -> None:
    play = Play(tmp_path / "play", database_url, seed)
    try:
        await play.open()
        await play.play(STEPS)
        await play.end()
    finally:
        await play.close()
    assert play.methods == {"passkey", "link"}
