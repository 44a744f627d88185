"""Random play: agent, reviewer, owner and world outside do whatever the interface lets them, in any order.

The judge is the sink: it sees each mail at the moment at which it would leave, and compares with a model of
its own what policy and people allow at that moment. In the end, whatever may leave has left.
Emails come in from outside, from mailboxes elsewhere, by APPEND and by import: after each step an inbox knows
those alone who wrote to it. Letters of the server to people come into no inbox.
POSTROOM_TEST_PLAYS=5000 POSTROOM_TEST_PLAY_STEPS=100 plays as long as you like.
"""

import asyncio
import contextlib
import email
import email.policy
import os
import re
import tempfile
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import structs

from postroom.clock import DAY, HOUR, MINUTE, SECOND, from_iso, to_iso
from postroom.errors import ApiError, NotFound, NotHeld
from postroom.inward.mails import Arrival, ReadMail
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader
from postroom.operations.folders.names import FolderRefused
from postroom.outward import reviewers
from postroom.outward.courier import OutgoingMail
from postroom.outward.raw_submission.submitted_mail import FinishedMail
from postroom.queue.deliveries import MAIL, Delivery
from postroom.storage.database import Row, Tx
from postroom_mail.writing.content_hash import content_hash
from tests.raw_mails import raw_mail
from tests.simulation import ways_in
from tests.stepped import House, Mood, stepped

PLAYS = int(os.environ.get("POSTROOM_TEST_PLAYS", "3"))
STEPS = int(os.environ.get("POSTROOM_TEST_PLAY_STEPS", "30"))

T = TypeVar("T")
PEOPLE = ["ann@one.example", "ben@one.example", "cat@two.example", "dan@three.example"]
REVIEWERS = ["boss@office.example", "rita@office.example"]
BANK = "bank.example"  # it signs its email, and has a policy
TELLER = f"teller@{BANK}"
MAILBOXES = [*REVIEWERS, "desk@office.example", TELLER]  # elsewhere: of people, or connected to an inbox
BLOCKED = ["one.example", "two.example", "*.example", "ben@one.example"]
NAMES = ["amy", "bob"]
HERE = "postroom.localhost"
OWN = [f"{name}@{HERE}" for name in NAMES]
REVIEW_LINK = re.compile(r"/review/([a-z2-7]{56})")
WORDS = ["always", "strangers", "links", "attachments"]
FILE = {"filename": "a.txt", "contentType": "text/plain", "data": "YQ=="}
LINK = "see https://shop.example/x"
ACCOUNT = ""


Pick = st.integers(0, 2**12)
Picks = st.lists(Pick, min_size=1, max_size=3)
Directions = st.sampled_from(["outbound", "outbound", "inbound"])


@dataclass
class KeyModel:
    id: str
    token: str
    inbox: str | None  # the name of the inbox that it reaches alone
    may: set[str]
    lineage: frozenset[str] = frozenset()
    rules: set[str] = field(default_factory=set)
    is_revoked: bool = False

    @property
    def fault(self) -> str:
        """What speaks against what it has sent."""
        return "key_revoked" if self.is_revoked else "" if "send" in self.may else "key"


@dataclass
class MailModel:
    """A mail that was accepted: what was asked for, and what was decided."""

    id: str
    inbox: str
    key: KeyModel
    mark: str
    recipients: frozenset[str]
    asked: frozenset[str]  # why a person must see it
    send_at: int
    is_approved: bool = False
    excused: str = ""  # what spoke against its key when it was approved
    is_ended: bool = False
    composed: bytes = b""  # of a mail client: what is stored
    left_to: list[str] = field(default_factory=list)


@dataclass
class Connected:
    id: str
    address: str
    last_uid: int = 0


@dataclass
class Policy:
    """Who may be written to, or who may write."""

    blocks: dict[str, set[str]] = field(default_factory=dict)  # values, by account or inbox
    lists: set[str] = field(default_factory=set)  # where only the allowed are
    allows: dict[str, set[str]] = field(default_factory=dict)

    def is_refused(self, inbox: str, address: str, meets_allow: bool = True) -> bool:
        levels = (ACCOUNT, inbox)
        if any(meets(value, address) for level in levels for value in self.blocks.get(level, ())):
            return True
        return any(
            not (meets_allow and any(meets(value, address) for value in self.allows.get(level, ())))
            for level in levels
            if level in self.lists
        )


@dataclass
class World:
    """What is allowed now, in the words of the documentation."""

    outbound: Policy = field(default_factory=Policy)
    inbound: Policy = field(default_factory=Policy)
    suppressed: set[str] = field(default_factory=set)
    paused: set[str] = field(default_factory=set)
    rules: dict[str, set[str]] = field(default_factory=dict)
    reviewers: dict[str, str] = field(default_factory=dict)  # by account or inbox
    users: dict[str, str] = field(default_factory=dict)  # ids, by address
    people: set[str] = field(default_factory=set)  # who ever was a reviewer or user
    connected: dict[str, Connected] = field(default_factory=dict)  # by inbox
    wrote: dict[str, set[str]] = field(default_factory=dict)  # by inbox
    stopped: set[str] = field(default_factory=set)  # addresses that were ever refused, by us or by themselves

    def policy(self, direction: str) -> Policy:
        return self.inbound if direction == "inbound" else self.outbound

    def is_refused(self, inbox: str, address: str) -> bool:
        return self.outbound.is_refused(inbox, address)

    def is_of_person(self, address: str) -> bool:
        return address in self.users or address in self.reviewers.values()

    def is_of_inbox(self, address: str) -> bool:
        return address in OWN or any(address == each.address for each in self.connected.values())

    def note_arrival(self, inbox: str, sender: str, is_genuine: bool) -> bool:
        """Who has written to an inbox is no stranger to it. Whether it was let in."""
        if self.inbound.is_refused(inbox, sender, meets_allow=is_genuine):
            return False
        if is_genuine:
            self.wrote.setdefault(inbox, set()).add(sender)
        return True

    def is_paused(self, inbox: str) -> bool:
        return ACCOUNT in self.paused or inbox in self.paused

    def note_stopped(self) -> None:
        everybody = [*PEOPLE, *OWN]
        self.stopped |= self.suppressed
        self.stopped |= {each for each in everybody for inbox in NAMES if self.is_refused(inbox, each)}


def meets(value: str, address: str) -> bool:
    domain = address.rpartition("@")[2]
    if value.startswith("*."):
        return domain.endswith(value[1:])
    return value in (address, domain)


def is_composed(mail: MailModel, raw: bytes) -> bool:
    """Before what was composed are signatures alone."""
    if not raw.endswith(mail.composed):
        return False
    added = email.message_from_bytes(raw.removesuffix(mail.composed) if mail.composed else b"")
    return {name.lower() for name in added} <= {"dkim-signature"}


class WatchedReader(OwnReader):
    """Reads mail that stays inside, which is delivered as surely as any other."""

    def __init__(self, watch: Callable[[str, bytes], None], names: dict[str, str]) -> None:
        super().__init__(AT_ONCE_BYTES)
        self._watch, self._names = watch, names

    async def read(self, arrival: Arrival) -> ReadMail:
        for destination in arrival.origin.destinations:
            self._watch(f"{self._names[destination.inbox_id]}@{HERE}", arrival.raw)
        return await super().read(arrival)


class RandomPlay(RuleBasedStateMachine):
    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stack = contextlib.AsyncExitStack()
        self.model = World()
        self.keys: list[KeyModel] = []
        self.mails: dict[str, MailModel] = {}  # by the mark in their text
        self.inboxes: dict[str, str] = {}  # ids by name
        self.in_hand: list[Delivery] = []
        self.faults: list[str] = []
        self.clients: dict[str, httpx2.AsyncClient] = {}
        self.received: dict[str, dict[str, bytes]] = {name: {} for name in NAMES}  # by Message-ID
        self.letters: list[bytes] = []  # of the server, to people
        self.shown_links: set[str] = set()  # that came into an inbox

    # --- machinery

    def do(self, work: Awaitable[T]) -> T:
        async def run() -> T:
            return await work

        return self.loop.run_until_complete(run())

    def ask(self, key: KeyModel | None, method: str, path: str, body: Any = None) -> httpx2.Response:
        """None is the owner, with the account's first key."""
        api = self.house.api
        if key is not None:
            api = self.clients.setdefault(key.token, self.house.client(key.token))
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        answer = self.do(api.request(method, path, json=body, headers=headers))
        assert answer.status_code < 500, (method, path, answer.text)
        return answer

    def add_key(self, inbox: str | None, *may: str) -> None:
        inbox_id = None if inbox is None else self.inboxes[inbox]
        key_id, token = self.do(self.house.key(inbox_id, *may))
        self.keys.append(KeyModel(key_id, token, inbox, set(may)))

    def select(self, statement: str, **values: str) -> list[Row]:
        def read(tx: Tx) -> list[Row]:
            return tx.all(statement, **values)

        return self.do(self.house.resources.db.read(read))

    def scope(self, pick: int) -> tuple[str, str]:
        """An account or an inbox, and how the query names it."""
        name = [ACCOUNT, *NAMES][pick % (1 + len(NAMES))]
        return name, "" if name == ACCOUNT else f"?inboxId={self.inboxes[name]}"

    @property
    def now(self) -> int:
        return self.house.clock.now()

    @property
    def waiting(self) -> list[MailModel]:
        return [mail for mail in self.mails.values() if not mail.is_ended]

    # --- the judge

    def watch(self, recipient: str, raw: bytes) -> None:
        """Of each mail, at the moment at which it would leave."""
        found = email.message_from_bytes(raw, policy=email.policy.default)
        mail = self.mails.get(str(found["X-Mark"]))
        if mail is None:
            self.faults.append(f"nobody sent this to {recipient}")
            return
        wrong = {
            "to somebody else": recipient not in mail.recipients,
            "after it was ended": mail.is_ended,
            "while paused": self.model.is_paused(mail.inbox),
            "to one who is suppressed": recipient in self.model.suppressed,
            "against a policy": self.model.is_refused(mail.inbox, recipient),
            "without approval": bool(mail.asked) and not mail.is_approved,
            "by a key that may not": mail.key.fault not in ("", mail.excused),
            "too early": self.now < mail.send_at,
            "twice": recipient in mail.left_to,
            "with other words": mail.mark not in str(found.get_body(("plain",))),
            "otherwise than composed": not is_composed(mail, raw),
        }
        self.faults += [f"{mail.mark} left {why}" for why, is_so in wrong.items() if is_so]
        if self.house.sink.mood == "takes" or recipient.endswith(HERE):
            mail.left_to.append(recipient)
            self.note_writer(recipient, found)
        elif self.house.sink.mood == "refuses":
            self.model.stopped.add(recipient)

    def note_writer(self, recipient: str, mail: EmailMessage) -> None:
        """An inbox here writes with its own address, or with that of its mailbox elsewhere."""
        name, _, domain = recipient.partition("@")
        if domain == HERE:
            sender = mail["From"].addresses[0].addr_spec
            self.model.note_arrival(name, sender, is_genuine=not sender.endswith(BANK))

    def watch_outside(self, mail: OutgoingMail) -> None:
        if mail.mail_from == "":
            self.letters.append(mail.raw)
            if mail.recipient not in self.model.people:
                self.faults.append(f"a notice went to {mail.recipient}")
            return
        self.watch(mail.recipient, mail.raw)

    @invariant()
    def nothing_leaves_that_was_not_allowed(self) -> None:
        assert self.faults == []

    @invariant()
    def an_inbox_knows_those_who_wrote_to_it(self) -> None:
        if not self.inboxes:
            return
        rows = self.select("select inbox_id, address from correspondents where is_trusted = 1")
        known = {(row["inbox_id"], row["address"]) for row in rows}
        wrote = {(self.inboxes[name], each) for name, all_ in self.model.wrote.items() for each in all_}
        assert known == wrote, (known - wrote, wrote - known)

    # --- the beginning and the end

    @initialize()
    def open_the_house(self) -> None:
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory(dir=self.folder)))
        opening = stepped(folder, ALLOW_PRIVATE_WEBHOOKS="on")  # mailboxes elsewhere are on the loopback
        self.house: House = self.do(self.stack.enter_async_context(opening))
        self.house.lookup.records = dict(ways_in.records(BANK))
        self.house.sink.watch = self.watch_outside
        self.inboxes = {name: self.do(self.house.inbox(name)) for name in NAMES}
        names = {inbox_id: name for name, inbox_id in self.inboxes.items()}
        self.house.outbound = structs.replace(self.house.outbound, reader=WatchedReader(self.watch, names))
        for name in NAMES:
            self.add_key(name, "read", "draft", "send")
        self.add_key(NAMES[0], "read", "draft")
        self.add_key(None, "read", "draft", "send", "approve", "manage")
        self.add_key(None, "read", "approve")
        self.leave_some_waiting()

    def leave_some_waiting(self) -> None:
        """For another attempt, for their moment, and for a person: what is decided from now on meets them."""
        self.house.sink.mood = "defers"
        for who, when in ((0, 0), (1, 0), (3, 0), (0, 1), (1, 5), (2, 0)):
            self.send(who, [who, who + 1], [2], 0, when)
        self.do(self.house.step())
        self.ask_for_approval(2, {"always"}, REVIEWERS[0])
        for who in (1, 3):
            self.send(who, [who], [], 0, 0)
        self.house.sink.mood = "takes"

    def teardown(self) -> None:
        try:
            if hasattr(self, "house") and not self.faults:
                self.let_all_go()
        finally:
            self.do(self.stack.aclose())
            self.loop.close()

    def let_all_go(self) -> None:
        """The other side of the promise: in the end whatever may leave has left."""
        self.hand_over()
        self.house.sink.mood = "takes"
        for name, query in (self.scope(pick) for pick in range(3)):
            self.ask(None, "DELETE", f"/v1/pause{query}")
            self.model.paused.discard(name)
        for _ in range(3):
            self.do(self.house.step(DAY))
        assert self.faults == []
        for mail in self.waiting:
            if mail.key.fault not in ("", mail.excused) or (mail.asked and not mail.is_approved):
                continue
            owed = mail.recipients - self.model.stopped - set(mail.left_to)
            assert self.now < mail.send_at or not owed, (mail, owed)

    # --- what an agent does

    @rule(who=Pick, to=Picks, copy=Picks, kind=Pick, when=Pick)
    def send(self, who: int, to: list[int], copy: list[int], kind: int, when: int) -> None:
        key = self.keys[who % len(self.keys)]
        inbox = key.inbox or NAMES[who % len(NAMES)]
        body = self.compose(inbox, to, copy, kind, when)
        answer = self.ask(key, "POST", f"/v1/inboxes/{self.inboxes[inbox]}/send", body)
        self.expect(key, inbox, body, answer)

    @rule(who=Pick, to=Picks, copy=Picks, kind=Pick, when=Pick)
    def send_once_more(self, who: int, to: list[int], copy: list[int], kind: int, when: int) -> None:
        """So that a play has more of it than of anything else."""
        self.send(who, to, copy, kind, when)

    @rule(who=Pick, to=Picks, kind=Pick, is_changed=st.booleans())
    def draft_and_send(self, who: int, to: list[int], kind: int, is_changed: bool) -> None:
        """A version that somebody saw leaves, or nothing."""
        key = self.keys[who % len(self.keys)]
        inbox = key.inbox or NAMES[who % len(NAMES)]
        body = self.compose(inbox, to, [], kind, 0)
        made = self.ask(key, "POST", f"/v1/inboxes/{self.inboxes[inbox]}/drafts", body)
        if made.status_code != 201:
            assert key.is_revoked or "draft" not in key.may, made.text
            return
        path, seen = f"/v1/drafts/{made.json()['id']}", made.json()["version"]
        if is_changed:
            change = self.compose(inbox, [*to, *to], [], kind + 1, 0)
            changed = self.ask(key, "PATCH", path, change | {"version": seen})
            assert changed.status_code == 200, changed.text
            stale = self.ask(key, "POST", f"{path}/send", {"version": seen})
            assert (stale.status_code, stale.json()["error"]) == (409, "draft_changed")
            seen, body = changed.json()["version"], body | change
        self.expect(key, inbox, body, self.ask(key, "POST", f"{path}/send", {"version": seen}))

    @rule(
        who=Pick,
        to=Picks,
        copy=st.lists(Pick, max_size=1),
        shape=st.sampled_from(ways_in.SHAPES),
        fields=st.sets(st.sampled_from(ways_in.FOREIGN_FIELDS), max_size=4),
    )
    def submit(
        self, who: int, to: list[int], copy: list[int], shape: ways_in.Shape, fields: set[str]
    ) -> None:
        """By a mail client, with fields and parts that nobody would be shown."""
        key = self.keys[who % len(self.keys)]
        inbox = key.inbox or NAMES[who % len(NAMES)]
        body = self.compose(inbox, to, copy, 2 if copy else 0, 0)
        mark, own = body["headers"]["X-Mark"], f"{inbox}@{HERE}"
        hidden = f"hidden{mark[5:]}word"
        head = [f"From: {own}", f"To: {', '.join(body['to'])}", "Subject: Hello", f"X-Mark: {mark}"]
        head += [f"Message-ID: <{mark}@client.example>", "MIME-Version: 1.0", *sorted(fields)]
        written = "\r\n".join((*head, shape.body)).replace("TEXT", body["body"]).replace("HIDDEN", hidden)
        recipients = tuple(dict.fromkeys([*body["to"], *body.get("bcc", [])]))
        mail = FinishedMail(written.encode(), own, recipients)
        answer = self.do(ways_in.submit(self.house, key.token, own, mail))
        body["body"] += LINK if shape.has_link else ""
        body |= {"attachments": [FILE]} if shape.has_file else {}
        self.expect(key, inbox, body | {"isSigned": shape.is_signed}, answer)
        if answer.status_code == 200 and not shape.is_signed:
            self.look_at_composed(self.mails[mark], answer.json().get("hold"), hidden, body)

    def look_at_composed(
        self, mail: MailModel, hold: dict[str, Any] | None, hidden: str, body: dict[str, Any]
    ) -> None:
        """No field and no part leaves that the content hash does not cover."""
        bcc = [each for each in dict.fromkeys(body.get("bcc", [])) if each not in body["to"]]
        mail.composed = self.ask(None, "GET", f"/v1/messages/{mail.id}/raw").content
        assert ways_in.find_uncovered(mail.composed, bcc, hidden) == []
        assert hold is None or hold["contentHash"] == content_hash(mail.composed, bcc)

    def compose(self, inbox: str, to: list[int], copy: list[int], kind: int, when: int) -> dict[str, Any]:
        everybody = [*PEOPLE, *(f"{name}@{HERE}" for name in NAMES if name != inbox)]
        mark = f"mail-{uuid.uuid4().hex[:12]}"
        body: dict[str, Any] = {
            "to": [everybody[pick % len(everybody)] for pick in to],
            "subject": "Hello",
            "body": f"{mark} {LINK if kind % 3 == 1 else 'hi'}",
            "headers": {"X-Mark": mark},
        }
        if kind % 4 == 2:
            body["bcc"] = [everybody[pick % len(everybody)] for pick in copy]
        if kind % 5 == 3:
            body["attachments"] = [FILE]
        if when % 4 == 1:
            body["sendAt"] = to_iso(self.now + (when % 50 + 1) * HOUR)
        if when % 4 == 2:
            body["undoSeconds"] = 60
        return body

    def expect(self, key: KeyModel, inbox: str, body: dict[str, Any], answer: httpx2.Response) -> None:
        """Whether it was to be accepted, and what it then waits for."""
        recipients = frozenset([*body["to"], *body.get("bcc", [])])
        status, model = answer.status_code, self.model
        if key.is_revoked:
            assert status == 401
        elif not key.may & {"draft", "send"}:
            assert status == 403
        elif any(model.is_refused(inbox, address) for address in recipients):
            assert (status, answer.json()["error"]) == (403, "recipient_not_allowed"), answer.text
        elif recipients & model.suppressed:
            assert (status, answer.json()["error"]) == (422, "recipient_suppressed"), answer.text
        elif status != 429:
            asked, paused = self.find_reasons(key, inbox, body, recipients)
            if body.get("isSigned") and asked | paused:  # nobody could see what it is
                assert (status, answer.json()["error"]) == (403, "forbidden"), answer.text
                return
            assert status == 200, answer.text
            self.accept(key, inbox, body, recipients, answer.json())

    def find_reasons(
        self, key: KeyModel, inbox: str, body: dict[str, Any], recipients: frozenset[str]
    ) -> tuple[set[str], set[str]]:
        """Why a person must see it, and whether it waits for the end of a pause."""
        model = self.model
        words = model.rules.get(ACCOUNT, set()) | model.rules.get(inbox, set()) | key.rules
        holds = {
            "always": True,
            "strangers": not recipients <= model.wrote.get(inbox, set()),
            "links": LINK in body["body"],
            "attachments": "attachments" in body,
        }
        asked = {word for word in words if holds[word]} | ({"key"} if "send" not in key.may else set())
        return asked, {"paused"} if model.is_paused(inbox) else set()

    def accept(
        self,
        key: KeyModel,
        inbox: str,
        body: dict[str, Any],
        recipients: frozenset[str],
        receipt: dict[str, Any],
    ) -> None:
        mark = body["headers"]["X-Mark"]
        asked, paused = self.find_reasons(key, inbox, body, recipients)
        shown = receipt.get("hold", {"reasons": [], "state": ""})
        assert set(shown["reasons"]) == asked | paused, (receipt, asked)
        assert (shown["state"] == "held") == bool(asked | paused)
        later = body.get("undoSeconds", 0) * SECOND
        send_at = self.now + later if "sendAt" not in body else from_iso(body["sendAt"])
        self.mails[mark] = MailModel(receipt["id"], inbox, key, mark, recipients, frozenset(asked), send_at)

    @precondition(lambda self: self.mails)
    @rule(who=Pick, which=Pick, what=st.sampled_from(["retry", "cancel", "reschedule"]))
    def try_again_cancel_or_put_off(self, who: int, which: int, what: str) -> None:
        key, mail = self.keys[who % len(self.keys)], self.pick_mail(which)
        path = f"/v1/messages/{mail.id}"
        if what == "reschedule":
            moment = self.now + (which % 40 + 1) * HOUR
            answer = self.ask(key, "PATCH", path, {"sendAt": to_iso(moment)})
            if answer.status_code == 200:
                mail.send_at = moment
            return
        answer = self.ask(key, "POST", f"{path}/{what}")
        if answer.status_code == 200:
            assert not mail.is_ended
            assert key.may & {"draft", "send"}
            mail.is_ended = mail.is_ended or what == "cancel"

    def pick_mail(self, pick: int) -> MailModel:
        return list(self.mails.values())[pick % len(self.mails)]

    @rule(who=Pick, which=Pick, what=Pick)
    def reach_for_more(self, who: int, which: int, what: int) -> None:
        """What no key of an inbox may do, whatever it has learned."""
        key = self.keys[who % len(self.keys)]
        if key.inbox is None:
            return
        known = self.pick_mail(which).id if self.mails else "msg_" + "0" * 32
        tries: list[tuple[str, str, Any]] = [
            ("POST", f"/v1/messages/{known}/approve", {"contentHash": "0" * 64}),
            ("POST", f"/v1/messages/{known}/reject", {}),
            ("DELETE", f"/v1/messages/{known}", None),
            ("DELETE", "/v1/pause", None),
            ("PUT", "/v1/policy/mode", {"mode": "none", "direction": "outbound"}),
            ("POST", "/v1/policy/rules", {"type": "allow", "value": "one.example", "direction": "outbound"}),
            ("PATCH", "/v1/account", {"approval": None}),
            ("PATCH", f"/v1/inboxes/{self.inboxes[key.inbox]}", {"approval": None}),
            ("PATCH", f"/v1/api-keys/{key.id}", {"approval": None}),
            ("POST", "/v1/api-keys", {"name": "more"}),
            ("DELETE", f"/v1/suppressions/{PEOPLE[what % len(PEOPLE)]}", None),
        ]
        method, path, body = tries[what % len(tries)]
        assert self.ask(key, method, path, body).status_code in (401, 403, 404), path

    # --- what people decide

    @precondition(lambda self: self.mails)
    @rule(who=Pick, which=Pick, is_true=st.sampled_from([True, True, True, False]))
    def approve(self, who: int, which: int, is_true: bool) -> None:
        """Mostly by one who may approve something, and of what waits for it."""
        able = [key for key in self.keys if "approve" in key.may and not key.is_revoked]
        asking = [mail for mail in self.waiting if (mail.asked and not mail.is_approved) or mail.key.fault]
        key = able[who % len(able)] if able and who % 8 else self.keys[who % len(self.keys)]
        mail = asking[which % len(asking)] if asking and which % 8 else self.pick_mail(which)
        seen = self.ask(None, "GET", f"/v1/messages/{mail.id}")
        if seen.status_code != 200 or "hold" not in seen.json():
            return
        hold = seen.json()["hold"]
        said = hold["contentHash"] if is_true else "0" * 64
        answer = self.ask(key, "POST", f"/v1/messages/{mail.id}/approve", {"contentHash": said})
        if answer.status_code == 200:
            assert is_true
            assert hold["state"] == "held"
            assert "approve" in key.may
            assert mail.key.id != key.id
            assert mail.key.id not in key.lineage
            self.note_approval(mail)

    def note_approval(self, mail: MailModel) -> None:
        assert not mail.is_ended
        mail.is_approved, mail.excused = True, mail.key.fault

    @precondition(lambda self: self.mails)
    @rule(which=Pick, reviewer=st.sampled_from(REVIEWERS), word=st.sampled_from(["approve", "reject"]))
    def decide_by_link(self, which: int, reviewer: str, word: str) -> None:
        """As the page does behind the link that a reviewer was sent."""
        mail = self.pick_mail(which)
        token = self.do(self.house.resources.db.read(reviewers.token_of, mail.id, reviewer))
        hold = self.ask(None, "GET", f"/v1/messages/{mail.id}").json().get("hold")
        if hold is None:
            return
        try:
            self.do(
                self.house.resources.db.write(
                    reviewers.decide_by_link,
                    *(token, word, hold["contentHash"], None, "http://x", self.now, "192.0.2.1"),
                )
            )
        except (NotFound, NotHeld):
            return
        assert token not in self.shown_links
        if word == "approve":
            self.note_approval(mail)
        else:
            mail.is_ended = True

    @precondition(lambda self: self.mails)
    @rule(who=Pick, which=Pick, what=st.sampled_from(["reject", "delete"]))
    def reject_or_delete(self, who: int, which: int, what: str) -> None:
        key, mail = self.keys[who % len(self.keys)], self.pick_mail(which)
        if what == "reject":
            answer = self.ask(key, "POST", f"/v1/messages/{mail.id}/reject", {})
        else:
            answer = self.ask(key, "DELETE", f"/v1/messages/{mail.id}")
        if answer.status_code in (200, 204):
            assert key.may & {"approve", "manage"}
            mail.is_ended = True

    # --- what an owner sets

    @rule(
        where=Pick,
        value=st.sampled_from(BLOCKED),
        kind=st.sampled_from(["block", "allow"]),
        direction=Directions,
    )
    def add_rule(self, where: int, value: str, kind: str, direction: str) -> None:
        name, query = self.scope(where)
        body = {"type": kind, "value": value, "direction": direction}
        assert self.ask(None, "POST", f"/v1/policy/rules{query}", body).status_code == 201
        policy = self.model.policy(direction)
        (policy.blocks if kind == "block" else policy.allows).setdefault(name, set()).add(value)
        self.model.note_stopped()

    @rule(where=Pick, direction=Directions)
    def clear_rules(self, where: int, direction: str) -> None:
        name, query = self.scope(where)
        body = {direction: {"mode": "inherit", "rules": []}}
        assert self.ask(None, "PUT", f"/v1/policy{query}", body).status_code == 200
        policy = self.model.policy(direction)
        policy.blocks.pop(name, None)
        policy.allows.pop(name, None)
        policy.lists.discard(name)

    @rule(where=Pick, is_list=st.sampled_from([False, False, True]), direction=Directions)
    def set_mode(self, where: int, is_list: bool, direction: str) -> None:
        name, query = self.scope(where)
        body = {"mode": "allowlist" if is_list else "none", "direction": direction}
        assert self.ask(None, "PUT", f"/v1/policy/mode{query}", body).status_code == 200
        lists = self.model.policy(direction).lists
        (lists.add if is_list else lists.discard)(name)
        self.model.note_stopped()

    @rule(whom=Pick, is_on=st.booleans())
    def suppress(self, whom: int, is_on: bool) -> None:
        address = PEOPLE[whom % len(PEOPLE)]
        if is_on:
            assert self.ask(None, "POST", "/v1/suppressions", {"address": address}).status_code == 201
            self.model.suppressed.add(address)
            self.model.note_stopped()
        else:
            self.ask(None, "DELETE", f"/v1/suppressions/{address}")
            self.model.suppressed.discard(address)

    @rule(where=Pick, is_on=st.booleans())
    def pause(self, where: int, is_on: bool) -> None:
        name, query = self.scope(where)
        assert self.ask(None, "PUT" if is_on else "DELETE", f"/v1/pause{query}").status_code == 200
        (self.model.paused.add if is_on else self.model.paused.discard)(name)

    @rule(
        where=Pick,
        words=st.sets(st.sampled_from(WORDS)),
        reviewer=st.sampled_from([*REVIEWERS, *REVIEWERS, OWN[0]]),
    )
    def ask_for_approval(self, where: int, words: set[str], reviewer: str) -> None:
        name, _ = self.scope(where)
        path = "/v1/account" if name == ACCOUNT else f"/v1/inboxes/{self.inboxes[name]}"
        body = {"approval": {"when": sorted(words), "reviewers": [reviewer]}}
        answer = self.ask(None, "PATCH", path, body)
        if self.model.is_of_inbox(reviewer):
            assert (answer.status_code, answer.json()["error"]) == (409, "address_is_an_inbox"), answer.text
            return
        assert answer.status_code == 200, answer.text
        self.model.rules[name], self.model.reviewers[name] = words, reviewer
        self.model.people.add(reviewer)

    @rule(address=st.sampled_from([*MAILBOXES, *OWN]))
    def invite_or_remove_a_user(self, address: str) -> None:
        model = self.model
        if address in model.users:
            removed = self.ask(None, "DELETE", f"/v1/users/{model.users.pop(address)}")
            assert removed.status_code == 204, removed.text
            return
        made = self.ask(None, "POST", "/v1/users", {"email": address, "role": "approver"})
        if model.is_of_inbox(address):
            assert (made.status_code, made.json()["error"]) == (409, "address_is_an_inbox"), made.text
            return
        assert made.status_code == 201, made.text
        model.users[address] = made.json()["id"]
        model.people.add(address)

    @rule(name=st.sampled_from(NAMES), address=st.sampled_from(MAILBOXES))
    def connect_or_remove_a_mailbox(self, name: str, address: str) -> None:
        """Elsewhere, from which emails are pulled into an inbox."""
        model = self.model
        if name in model.connected:
            path = f"/v1/connections/{model.connected.pop(name).id}"
            assert self.ask(None, "DELETE", path).status_code == 204
            return
        place = {"host": "127.0.0.1", "port": 9}
        body = {"kind": "imap", **place, "username": address, "password": "secret", "smtp": place}
        made = self.ask(None, "POST", "/v1/connections", body | {"inboxId": self.inboxes[name]})
        if model.is_of_person(address):
            assert (made.status_code, made.json()["error"]) == (409, "address_is_an_inbox"), made.text
            return
        assert made.status_code == 201, made.text
        model.connected[name] = Connected(made.json()["id"], address)

    @rule(which=Pick, words=st.sets(st.sampled_from(WORDS)))
    def hold_a_key(self, which: int, words: set[str]) -> None:
        key = self.keys[which % len(self.keys)]
        body = {"approval": {"when": sorted(words)}}
        if self.ask(None, "PATCH", f"/v1/api-keys/{key.id}", body).status_code == 200:
            key.rules = words

    @rule(which=Pick)
    def revoke(self, which: int) -> None:
        key = self.keys[which % len(self.keys)]
        status = self.ask(None, "DELETE", f"/v1/api-keys/{key.id}").status_code
        assert status == (404 if key.is_revoked else 204)
        key.is_revoked = True

    @rule(which=Pick)
    def take_send_away(self, which: int) -> None:
        key = self.keys[which % len(self.keys)]
        left = sorted(key.may - {"send"})
        if self.ask(None, "PATCH", f"/v1/api-keys/{key.id}", {"permissions": left}).status_code == 200:
            key.may.discard("send")

    @rule(which=Pick, name=st.sampled_from(NAMES))
    def make_a_key(self, which: int, name: str) -> None:
        """By another key, or by nobody: a new agent."""
        maker = self.keys[which % len(self.keys)]
        if which % 2:
            self.add_key(name, "read", "draft", "send")
            return
        made = self.ask(maker, "POST", "/v1/api-keys", {"name": "child"})
        if made.status_code == 201:
            body = made.json()
            self.keys.append(
                KeyModel(
                    *(body["id"], body["token"], None, set(body["permissions"])),
                    lineage=maker.lineage | {maker.id},
                    rules=set(maker.rules),
                )
            )

    # --- the world outside, and time

    @rule(mood=st.sampled_from(["takes", "takes", "defers", "refuses"]))
    def change_the_weather(self, mood: Mood) -> None:
        self.house.sink.mood = mood

    def write(self, sender: str, text: str = "Hello", **fields: str) -> tuple[str, bytes]:
        """A Message-ID, and an email with it."""
        message_id = f"<{uuid.uuid4().hex}@outside.example>"
        return message_id, raw_mail(text, **({"from": sender, "message_id": message_id} | fields))

    @rule(who=Pick, name=st.sampled_from(NAMES))
    def write_to_an_inbox(self, who: int, name: str) -> None:
        sender = PEOPLE[who % len(PEOPLE)]
        message_id, raw = self.write(sender)
        self.do(ways_in.receive(self.house, self.inboxes[name], sender, raw))
        if self.model.note_arrival(name, sender, is_genuine=True):
            self.received[name][message_id] = raw

    @rule(
        name=st.sampled_from(NAMES),
        sender=st.sampled_from([*PEOPLE, TELLER, TELLER]),
        is_signed=st.booleans(),
        is_ordered=st.booleans(),
    )
    def pull_from_a_mailbox(self, name: str, sender: str, is_signed: bool, is_ordered: bool) -> None:
        """Anybody may have put it there in any name: a signature alone proves who wrote it.

        From then on the inbox writes with the address of the mailbox, which proves nothing to another one.
        """
        if not self.require_connected(name):
            return
        message_id, raw = self.write(sender)
        if is_signed:
            raw = ways_in.with_signature(raw, BANK, self.now)
        assert self.pull(name, raw)
        is_genuine = is_signed or sender != TELLER
        if self.model.note_arrival(name, sender, is_genuine):
            self.received[name][message_id] = raw
        if is_ordered:
            self.send(NAMES.index(name), [len(PEOPLE)], [], 0, 0)
            self.let_time_pass(0)

    def require_connected(self, name: str) -> bool:
        if name not in self.model.connected:
            self.connect_or_remove_a_mailbox(name, MAILBOXES[3 - NAMES.index(name)])
        return name in self.model.connected

    def pull(self, name: str, raw: bytes) -> bool:
        mailbox = self.model.connected[name]
        mailbox.last_uid += 1
        return self.do(ways_in.pull(self.house, mailbox.id, mailbox.last_uid, raw))

    # --- what mail clients and imports put into an inbox

    @rule(
        who=Pick,
        sender=st.sampled_from([*PEOPLE, TELLER, *OWN]),
        answered=Pick,
        folder=st.sampled_from(["INBOX", "Sent", "Trash", "import"]),
    )
    def file_an_email(self, who: int, sender: str, answered: int, folder: str) -> None:
        """In any name, as an answer to any email: nobody becomes known, and no thread is joined."""
        key = self.keys[who % len(self.keys)]
        name = key.inbox or NAMES[who % len(NAMES)]
        if not self.received[name]:
            self.write_to_an_inbox(answered, name)
        known = list(self.received[name])
        fields = {"in_reply_to": known[answered % len(known)]} if known else {}
        message_id, raw = self.write(sender, **fields)
        if not self.file(key, name, folder, raw):
            return
        (filed,) = self.messages_of(name, message_id)
        assert filed["is_imported"] == 1
        beside = self.select("select is_imported from messages where thread_id = :id", id=filed["thread_id"])
        assert all(row["is_imported"] for row in beside)

    @precondition(lambda self: any(self.received.values()))
    @rule(who=Pick, which=Pick)
    def store_a_received_email_again(self, who: int, which: int) -> None:
        key = self.keys[who % len(self.keys)]
        name = next(each for each in (key.inbox or NAMES[who % len(NAMES)], *NAMES) if self.received[each])
        message_id, raw = list(self.received[name].items())[which % len(self.received[name])]
        before = len(self.messages_of(name, message_id))
        if self.file(key, name, "INBOX", raw):
            found = self.messages_of(name, message_id)
            assert [row["is_imported"] for row in found] == [0] * (before + 1)

    def file(self, key: KeyModel, name: str, folder: str, raw: bytes) -> bool:
        """Whether the key may, and it is there."""
        if folder == "import":
            return self.do(ways_in.import_old(self.house, self.inboxes[name], raw)) == 1
        is_allowed = not key.is_revoked and "read" in key.may and bool(key.may & {"draft", "send"})
        is_allowed = is_allowed and key.inbox in (None, name)
        try:
            self.do(ways_in.append(self.house, key.token, f"{name}@{HERE}", folder, raw))
        except ApiError:
            is_filed = False
        else:
            is_filed = True
        assert is_filed == is_allowed
        return is_filed

    def messages_of(self, name: str, message_id: str) -> list[Row]:
        return self.select(
            "select thread_id, is_imported from messages where inbox_id = :inbox and rfc_message_id = :id",
            inbox=self.inboxes[name],
            id=message_id,
        )

    # --- letters of the server itself

    def find_letter(self, which: int) -> bytes:
        if not self.letters:
            self.let_time_pass(0)
        return self.letters[which % len(self.letters)] if self.letters else b""

    @rule(
        who=Pick,
        which=Pick,
        name=st.sampled_from(NAMES),
        way=st.sampled_from(["forwarded", "pulled", "INBOX", "Drafts", "import"]),
        lost=st.sampled_from([b"", b"X-Postroom-Letter", b"Message-ID"]),
    )
    def bring_a_letter(self, who: int, which: int, name: str, way: str, lost: bytes) -> None:
        """Whole, but for a field that a relay took: it comes into no inbox."""
        raw = self.find_letter(which).replace(lost or b"\0", b"X-Other")
        if not raw or (way == "pulled" and not self.require_connected(name)):
            return
        before = self.count_stored()
        if way == "forwarded":
            self.do(ways_in.receive(self.house, self.inboxes[name], REVIEWERS[0], raw))
        elif way == "pulled":
            assert not self.pull(name, raw)
        else:
            with contextlib.suppress(FolderRefused):
                self.file(self.keys[who % len(self.keys)], name, way, raw)
        assert self.count_stored() == before

    def count_stored(self) -> int:
        (row,) = self.select(
            "select (select count(*) from messages) + (select count(*) from drafts) as stored"
        )
        return int(row["stored"])

    @rule(which=Pick, who=Pick, name=st.sampled_from(NAMES))
    def quote_a_letter(self, which: int, who: int, name: str) -> None:
        """In an email of somebody's own: its links end."""
        found = email.message_from_bytes(self.find_letter(which), policy=email.policy.default)
        body = found.get_body(("plain",))
        if body is None:
            return
        text, sender = str(body.get_content()), PEOPLE[who % len(PEOPLE)]
        _, raw = self.write(sender, text.replace("\n", "\r\n> "))
        self.do(ways_in.receive(self.house, self.inboxes[name], sender, raw))
        self.model.note_arrival(name, sender, is_genuine=True)
        for token in REVIEW_LINK.findall(text):
            self.shown_links.add(token)
            with pytest.raises(NotFound):
                self.do(self.house.resources.db.read(reviewers.find_review, token))

    @rule()
    def claim(self) -> None:
        """A node takes what is due, and is slow."""
        self.in_hand += self.do(self.house.claim(MAIL))

    @rule()
    def hand_over(self) -> None:
        claimed, self.in_hand = self.in_hand, []
        for delivery in claimed:
            self.do(self.house.hand_over(delivery))
        if claimed:
            self.do(self.house.examine())

    @rule(time=st.sampled_from([0, SECOND, 2 * MINUTE, HOUR, 8 * HOUR, 2 * DAY]))
    def let_time_pass(self, time: int) -> None:
        self.hand_over()
        self.do(self.house.step(time))


def test_nothing_leaves_that_policy_or_a_person_did_not_allow(tmp_path: Path) -> None:
    RandomPlay.folder = tmp_path
    run_state_machine_as_test(
        RandomPlay,
        settings=settings(
            max_examples=PLAYS,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
