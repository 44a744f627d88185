"""Random play: agent, reviewer, owner and world outside do whatever the interface lets them, in any order.

The judge is the sink: it sees each mail at the moment at which it would leave, and compares with a model of
its own what policy and people allow at that moment. In the end, whatever may leave has left.
POSTROOM_TEST_PLAYS=5000 POSTROOM_TEST_PLAY_STEPS=100 plays as long as you like.
"""

import asyncio
import contextlib
import email
import email.policy
import os
import tempfile
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx2
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
from postroom.errors import NotFound, NotHeld
from postroom.inward.mails import Arrival, Destination, Origin, ReadMail
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader, receive_mail
from postroom.outward import reviewers
from postroom.outward.courier import OutgoingMail
from postroom.queue.deliveries import MAIL, Delivery
from tests.letters import letter
from tests.stepped import House, Mood, stepped

PLAYS = int(os.environ.get("POSTROOM_TEST_PLAYS", "3"))
STEPS = int(os.environ.get("POSTROOM_TEST_PLAY_STEPS", "30"))

T = TypeVar("T")
PEOPLE = ["ann@one.example", "ben@one.example", "cat@two.example", "dan@three.example"]
REVIEWER = "boss@office.example"
BLOCKED = ["one.example", "two.example", "*.example", "ben@one.example"]
NAMES = ["amy", "bob"]
HERE = "postroom.localhost"
WORDS = ["always", "strangers", "links", "attachments"]
FILE = {"filename": "a.txt", "contentType": "text/plain", "data": "YQ=="}
LINK = "see https://shop.example/x"
ACCOUNT = ""


Pick = st.integers(0, 2**12)
Picks = st.lists(Pick, min_size=1, max_size=3)


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
    left_to: list[str] = field(default_factory=list)


@dataclass
class World:
    """What is allowed now, in the words of the documentation."""

    blocks: dict[str, set[str]] = field(default_factory=dict)  # values, by account or inbox
    lists: set[str] = field(default_factory=set)  # where only the allowed may be written to
    allows: dict[str, set[str]] = field(default_factory=dict)
    suppressed: set[str] = field(default_factory=set)
    paused: set[str] = field(default_factory=set)
    rules: dict[str, set[str]] = field(default_factory=dict)
    wrote: dict[str, set[str]] = field(default_factory=dict)  # by inbox
    stopped: set[str] = field(default_factory=set)  # addresses that were ever refused, by us or by themselves

    def is_refused(self, inbox: str, address: str) -> bool:
        levels = (ACCOUNT, inbox)
        if any(meets(value, address) for level in levels for value in self.blocks.get(level, ())):
            return True
        return any(
            not any(meets(value, address) for value in self.allows.get(level, ()))
            for level in levels
            if level in self.lists
        )

    def is_paused(self, inbox: str) -> bool:
        return ACCOUNT in self.paused or inbox in self.paused

    def note_stopped(self) -> None:
        everybody = [*PEOPLE, *(f"{name}@{HERE}" for name in NAMES)]
        self.stopped |= self.suppressed
        self.stopped |= {each for each in everybody for inbox in NAMES if self.is_refused(inbox, each)}


def meets(value: str, address: str) -> bool:
    domain = address.rpartition("@")[2]
    if value.startswith("*."):
        return domain.endswith(value[1:])
    return value in (address, domain)


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
        }
        self.faults += [f"{mail.mark} left {why}" for why, is_so in wrong.items() if is_so]
        if self.house.sink.mood == "takes" or recipient.endswith(HERE):
            mail.left_to.append(recipient)
            self.note_writer(recipient, mail)
        elif self.house.sink.mood == "refuses":
            self.model.stopped.add(recipient)

    def note_writer(self, recipient: str, mail: MailModel) -> None:
        """Who has written to an inbox here is no stranger to it."""
        name, _, domain = recipient.partition("@")
        if domain == HERE:
            self.model.wrote.setdefault(name, set()).add(f"{mail.inbox}@{HERE}")

    def watch_outside(self, mail: OutgoingMail) -> None:
        if mail.mail_from == "":
            if mail.recipient != REVIEWER:
                self.faults.append(f"a notice went to {mail.recipient}")
            return
        self.watch(mail.recipient, mail.raw)

    @invariant()
    def nothing_leaves_that_was_not_allowed(self) -> None:
        assert self.faults == []

    # --- the beginning and the end

    @initialize()
    def open_the_house(self) -> None:
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory(dir=self.folder)))
        self.house: House = self.do(self.stack.enter_async_context(stepped(folder)))
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
        self.ask_for_approval(2, {"always"})
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
            assert status == 200, answer.text
            self.accept(key, inbox, body, recipients, answer.json())

    def accept(
        self,
        key: KeyModel,
        inbox: str,
        body: dict[str, Any],
        recipients: frozenset[str],
        receipt: dict[str, Any],
    ) -> None:
        model, mark = self.model, body["headers"]["X-Mark"]
        words = model.rules.get(ACCOUNT, set()) | model.rules.get(inbox, set()) | key.rules
        holds = {
            "always": True,
            "strangers": not recipients <= model.wrote.get(inbox, set()),
            "links": LINK in body["body"],
            "attachments": "attachments" in body,
        }
        asked = {word for word in words if holds[word]} | ({"key"} if "send" not in key.may else set())
        paused = {"paused"} if model.is_paused(inbox) else set()
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
    @rule(which=Pick, word=st.sampled_from(["approve", "reject"]))
    def decide_by_link(self, which: int, word: str) -> None:
        """As the page does behind the link that a reviewer was sent."""
        mail = self.pick_mail(which)
        token = self.do(self.house.resources.db.read(reviewers.token_of, mail.id, REVIEWER))
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

    @rule(where=Pick, value=st.sampled_from(BLOCKED), kind=st.sampled_from(["block", "allow"]))
    def add_rule(self, where: int, value: str, kind: str) -> None:
        name, query = self.scope(where)
        body = {"type": kind, "value": value, "direction": "outbound"}
        assert self.ask(None, "POST", f"/v1/policy/rules{query}", body).status_code == 201
        of_kind = self.model.blocks if kind == "block" else self.model.allows
        of_kind.setdefault(name, set()).add(value)
        self.model.note_stopped()

    @rule(where=Pick)
    def clear_rules(self, where: int) -> None:
        name, query = self.scope(where)
        body = {"outbound": {"mode": "inherit", "rules": []}}
        assert self.ask(None, "PUT", f"/v1/policy{query}", body).status_code == 200
        self.model.blocks.pop(name, None)
        self.model.allows.pop(name, None)
        self.model.lists.discard(name)

    @rule(where=Pick, is_list=st.sampled_from([False, False, True]))
    def set_mode(self, where: int, is_list: bool) -> None:
        name, query = self.scope(where)
        body = {"mode": "allowlist" if is_list else "none", "direction": "outbound"}
        assert self.ask(None, "PUT", f"/v1/policy/mode{query}", body).status_code == 200
        (self.model.lists.add if is_list else self.model.lists.discard)(name)
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

    @rule(where=Pick, words=st.sets(st.sampled_from(WORDS)))
    def ask_for_approval(self, where: int, words: set[str]) -> None:
        name, _ = self.scope(where)
        path = "/v1/account" if name == ACCOUNT else f"/v1/inboxes/{self.inboxes[name]}"
        body = {"approval": {"when": sorted(words), "reviewers": [REVIEWER]}}
        assert self.ask(None, "PATCH", path, body).status_code == 200
        self.model.rules[name] = words

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

    @rule(who=Pick, name=st.sampled_from(NAMES))
    def write_to_an_inbox(self, who: int, name: str) -> None:
        sender = PEOPLE[who % len(PEOPLE)]
        arrival = Arrival(
            origin=Origin(
                destinations=(Destination(self.inboxes[name]),),
                trace=b"",
                peer_ip="",
                helo="",
                mail_from=sender,
            ),
            raw=letter("Hello", **{"from": sender}),
        )
        self.do(receive_mail(self.house.resources, OwnReader(AT_ONCE_BYTES), arrival))
        self.model.wrote.setdefault(name, set()).add(sender)

    @rule()
    def claim(self) -> None:
        """A node takes what is due, and is slow."""
        self.in_hand += self.do(self.house.claim(MAIL))

    @rule()
    def hand_over(self) -> None:
        claimed, self.in_hand = self.in_hand, []
        for delivery in claimed:
            self.do(self.house.hand_over(delivery))

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
