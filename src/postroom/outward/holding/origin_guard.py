"""The origin guard: whether a send carries a value that came from somewhere else than the people it goes to.

A value is the inbox's own if it left here before it came in, or if one of the account's people wrote it. Any
other may go to people who wrote it, or who read it in their own thread. A one-time code may go to nobody.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from postroom.accounts import audit
from postroom.accounts.rules import origin_guard
from postroom.accounts.rules.origin_guard import HOLD, OFF, REFUSE
from postroom.holding_errors import OriginNotAllowed
from postroom.inward.genuine import is_genuine
from postroom.mailbox import correspondents, documents, inboxes, messages, origins, thread_participants
from postroom.mailbox.documents import Document
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import OUTBOUND
from postroom.mailbox.origins import HeldValues, ValueOrigin, ValueSource
from postroom.outward.holding.approval_rules import InboxRules
from postroom.outward.holding.origin_people import is_ordinary, people_of, readers_of
from postroom.outward.holding.own_links import emails_behind
from postroom.outward.send_stages import Ready
from postroom.storage.database import Tx
from postroom_mail.mime.address import mailbox_of
from postroom_mail.screening import values
from postroom_mail.screening.known_names import COMMON_HOSTS
from postroom_mail.screening.values import ADDRESS, CODE, FILE, HOST, LINK, PHRASE, Value

MOST_JUDGED = 300  # values that were received: of more than these, a person judges the others
MOST_SHOWN = 10
SENDERS_OF_A_LIST = 3
DOMAINS_OF_A_KNOWN_HOST = 3
EMAIL = "email"  # a whole email that is passed on
MOST_READ = 20  # messages with one value whose writer is looked at closely


class GuardFinding(Struct, frozen=True):
    """What the guard found in one send, and what is to happen."""

    step: str
    origins: tuple[ValueOrigin, ...]

    @property
    def holds(self) -> bool:
        """Return whether a person has to decide.

        A one-time code leaves only after that, whatever the step.
        """
        return self.step == HOLD or any(each.kind == CODE for each in self.origins)


# --- the decision


def find(tx: Tx, new: Sequence[Ready], rules_of: dict[str, InboxRules]) -> dict[str, GuardFinding]:
    """Return what the guard found, by message. Raise OriginNotAllowed if such a send is refused."""
    steps = {each.document.id: step_of(each, rules_of[each.inbox_id]) for each in new}
    asked = [each for each in new if steps[each.document.id] != OFF]
    pairs = {(each.inbox_id, key) for each in asked for key in each.submission.values}
    first = origins.find_first(tx, pairs)
    found = {}
    for each in asked:
        if elsewhere := find_elsewhere(tx, each, first):
            found[each.document.id] = GuardFinding(steps[each.document.id], tuple(elsewhere))
    return found


def step_of(ready: Ready, rules: InboxRules) -> str:
    """A person answers for what a person sends."""
    caller = ready.submission.caller
    return OFF if caller.is_person else origin_guard.in_force(rules.guards, caller.origin_guard)


def find_elsewhere(tx: Tx, ready: Ready, first: dict[tuple[str, str], ValueSource]) -> list[ValueOrigin]:
    """Return the values of a send that came from somewhere else, and an email that it passes on to others."""
    foreign = [
        (value, source)
        for key, value in ready.submission.values.items()
        if (source := first.get((ready.inbox_id, key))) is not None and source.direction != OUTBOUND
    ]
    passed = [*_passed_on(tx, ready), *emails_behind(tx, ready.submission.values.values())]
    if not foreign and not passed:
        return []
    judge = _Judge(tx, ready)
    whole = [_as_origin(each) for each in passed if not judge.is_known(each)]
    found = [(value, source) for value, source in foreign[:MOST_JUDGED] if judge.is_elsewhere(value, source)]
    found += foreign[MOST_JUDGED:]
    links = {value.key.partition(":")[2].partition("/")[0] for value, _ in found if value.kind == LINK}
    whole_of = {(source.message_id, value.kind != PHRASE) for value, source in found if not value.is_piece}
    shown = [
        (value, source)
        for value, source in found
        if not (value.kind == HOST and value.key.partition(":")[2] in links)
        and not (value.is_piece and (source.message_id, True) in whole_of)
    ]
    values_found = (ValueOrigin(value.shown, value.kind, source.message_id) for value, source in shown)
    return [*whole, *values_found][:MOST_SHOWN]


def _passed_on(tx: Tx, ready: Ready) -> list[Document]:
    """Return the email that it forwards or quotes, but for one that all recipients wrote or got."""
    order, around = ready.submission.order, ready.submission.around
    if order.keeps_unread:  # a rule passes it on: who wrote the rule has decided
        return []
    if order.redirect_of is not None:
        message = messages.find(tx, order.redirect_of)
        return [] if message is None else [documents.decode(message.document)]
    passed = around.forwarded or (around.previous if order.include_quote else None)
    if passed is None:
        return []
    if passed.direction == OUTBOUND or around.quotes_imported:
        return [passed]
    return [] if readers_of(passed).issuperset(ready.addresses) else [passed]


def _as_origin(document: Document) -> ValueOrigin:
    return ValueOrigin(document.subject[: values.SHOWN_CHARACTERS], EMAIL, document.id)


class _Judge:
    """What is known of the people of one send, read when it is first needed."""

    def __init__(self, tx: Tx, ready: Ready) -> None:
        self._tx = tx
        self._ready = ready
        self._inbox: Inbox = ready.submission.around.inbox
        self._trusted = origin_guard.list_trusted(tx, self._inbox.id)
        self._thread_id = None if ready.starts_thread else ready.thread.id
        self._recipients = {values.address(each).key: each for each in ready.addresses}
        self._addresses = frozenset(ready.addresses)
        self._lists: dict[str, frozenset[str]] = {}
        self._documents: dict[str, Document | None] = {}

    def is_elsewhere(self, value: Value, source: ValueSource) -> bool:
        if self._is_own(value) or origin_guard.is_trusted(value, self._trusted):
            return False
        sources = origins.list_sources(self._tx, self._inbox.id, value.key, self._thread_id)
        received = [each for each in sources if each.direction != OUTBOUND]
        if self._is_of_own_people(value, received or [source]):
            return False
        if value.kind == CODE:
            return True
        if value.key in self._recipients:
            return not self._may_be_written_to(self._recipients[value.key], sources)
        forwarded = self._ready.submission.order.forward_of
        if value.kind == FILE and forwarded in {each.message_id for each in received}:
            return False
        if value.within and any(self._has_address(each, value.within) for each in received[:MOST_READ]):
            return False
        if value.kind == HOST and self._is_known_host(received):
            return False
        if value.kind == PHRASE and (_is_usual(received) or any(map(self._is_said_to_all, received))):
            return False
        received.sort(key=self._is_remote)  # only the first ones are read
        return not all(self._knows(address, value, received) for address in self._ready.addresses)

    def is_known(self, document: Document) -> bool:
        """Whether it stays in the account, or some recipient got it, is named in it, or was there before."""
        outside = [each for each in self._ready.addresses if not self._is_of_account_itself(each)]
        source = origins.find_source(self._tx, document.id) if outside else None
        if source is None or source.is_stopped:
            return not outside
        readers = readers_of(document)
        before = origins.list_before(self._tx, source.thread_id, source.message_id, MOST_READ)
        readers.update(*map(self._takers_of, before))
        return any(
            each in readers
            or self._has_read(each, source)
            or origins.has_value(self._tx, self._inbox.id, values.address(each).key, document.id)
            for each in outside
        )

    def _is_of_account_itself(self, address: str) -> bool:
        return self._is_user(address) or self._is_own(values.address(address))

    def _is_known_host(self, received: Sequence[ValueSource]) -> bool:
        """Return whether people of several organizations named it; each link to it stays a value."""
        one_each = {_organization_of(each.from_address): each for each in received}
        read = list(one_each.values())[:MOST_READ]
        ordinary = (each for each in read if is_ordinary(self._read(each.message_id)))
        return sum(map(self._is_genuine, ordinary)) >= DOMAINS_OF_A_KNOWN_HOST

    def _is_said_to_all(self, source: ValueSource) -> bool:
        """Whether it answers an email whose author gets the answer, and nobody whom the author left out."""
        people = {*self._people_of(source), source.from_address}
        return (
            source.thread_id == self._thread_id
            and source.from_address in self._addresses
            and self._addresses <= people
            and self._is_genuine(source)
        )

    def _has_address(self, source: ValueSource, address: str) -> bool:
        """Return whether the value came as a part of this address, which is judged as a whole."""
        return self._is_genuine(source) and address in {*self._people_of(source), source.from_address}

    def _is_own(self, value: Value) -> bool:
        """Return whether it is an address of the account."""
        if value.kind != ADDRESS:
            return False
        said = value.key.partition(":")[2]
        other = inboxes.find_by_address(self._tx, said)
        return said in self._inbox.mailboxes or (other is not None and self._is_of_account(other))

    def _is_of_account(self, other: Inbox) -> bool:
        return other.account_id == self._inbox.account_id

    def _is_of_own_people(self, value: Value, received: Sequence[ValueSource]) -> bool:
        """Whether a user of the account wrote it, or an inbox of the account that had it from nobody."""
        for each in received[:MOST_READ]:
            if self._is_user(each.from_address) and self._is_proven(each.message_id):
                return True
            other = inboxes.find_by_address(self._tx, mailbox_of(each.from_address))
            if other is not None and self._is_of_account(other) and self._left(other, each):
                there = origins.find_first(self._tx, [(other.id, value.key)]).get((other.id, value.key))
                return there is not None and there.direction == OUTBOUND
        return False

    def _is_user(self, address: str) -> bool:
        domain = address.rpartition("@")[2]
        listed = {each.lower().removeprefix("@") for each in self._trusted}
        if address in listed or any(origin_guard.is_within(domain, each) for each in listed if "." in each):
            return True
        row = self._tx.one(
            "select 1 as found from users where account_id = :account_id and lower(email) = :address",
            account_id=self._inbox.account_id,
            address=address,
        )
        return row is not None

    def _left(self, other: Inbox, source: ValueSource) -> bool:
        """Return whether the message is one that the other inbox has sent: From alone proves nothing."""
        document = self._read(source.message_id)
        return document is not None and origins.has_sent(self._tx, other.id, document.rfc_message_id)

    def _is_remote(self, source: ValueSource) -> tuple[bool, bool]:
        """Messages of the recipients come first, then those of the answered thread."""
        return source.from_address not in self._addresses, source.thread_id != self._thread_id

    def _may_be_written_to(self, address: str, named: Sequence[ValueSource]) -> bool:
        """Whether it wrote here, is a list, takes part in the answered thread, or another recipient named it.

        Another recipient who wrote here could pass on all of it anyway. A forged email names nobody.
        """
        if self._has_written(address) or self._list_of(address):
            return True
        if self._thread_id is not None and thread_participants.is_one(self._tx, self._thread_id, address):
            there = [each for each in named if each.thread_id == self._thread_id and not each.is_stopped]
            if origins.has_written(self._tx, self._thread_id, address):
                return True
            if any(each.direction == OUTBOUND or self._is_genuine(each) for each in there[:MOST_READ]):
                return True
        others = [each for each in named if each.from_address in self._addresses]
        return any(
            self._has_written(each.from_address)
            and self._is_genuine(each)
            and address in self._people_of(each)
            for each in others[:MOST_READ]
        )

    def _has_written(self, address: str) -> bool:
        """Return whether it wrote here, in an email that did not fail DMARC."""
        return bool(correspondents.find(self._tx, [(self._inbox.id, address)], only_trusted=True))

    def _knows(self, address: str, value: Value, received: Sequence[ValueSource]) -> bool:
        """Return whether a recipient wrote it, owns its domain, or was in the thread when it came."""
        domain = address.rpartition("@")[2]
        of_value = values.domain_in(value)
        if of_value and domain not in COMMON_HOSTS and origin_guard.is_within(of_value, domain):
            return True
        for each in received[:MOST_READ]:
            if each.from_address == address and self._is_genuine(each):
                return True
            if self._has_read(address, each):
                return True
        if len(received) <= MOST_READ:
            return False
        key = values.address(address).key
        named = origins.list_naming(self._tx, self._inbox.id, value.key, key, MOST_READ)
        return any(each.direction != OUTBOUND and self._has_read(address, each) for each in named)

    def _has_read(self, address: str, source: ValueSource) -> bool:
        """Return whether it was addressed, and in the thread before: anybody can write a name into Cc."""
        document = self._read(source.message_id)
        if document is None:
            return False
        people = people_of(document)
        if any(
            address == other or address in self._list_of(other) for other in people if self._list_of(other)
        ):
            return True
        if address not in people:
            return False
        before = origins.list_before(self._tx, source.thread_id, source.message_id, MOST_READ)
        return any(address in self._takers_of(each) for each in before)

    def _takers_of(self, source: ValueSource) -> set[str]:
        """Return who received a message from here, or wrote it."""
        if source.direction == OUTBOUND:
            return set() if source.is_stopped else self._people_of(source)
        return {source.from_address} if self._is_genuine(source) else set()

    def _list_of(self, address: str) -> frozenset[str]:
        """Return who writes to a mailing list: an address that several write to and that never writes."""
        if address not in self._lists:
            key = values.address(address).key
            named = origins.list_sources(self._tx, self._inbox.id, key, self._thread_id)
            one_each = {each.from_address: each for each in named if each.direction != OUTBOUND}
            read = sorted(one_each.values(), key=self._is_remote)[:MOST_READ]
            senders = frozenset(
                each.from_address
                for each in read
                if self._is_genuine(each) and address in self._people_of(each)
            )
            writes = correspondents.find(self._tx, [(self._inbox.id, address)])
            is_list = (
                len(senders) >= SENDERS_OF_A_LIST and not writes and address not in self._inbox.mailboxes
            )
            self._lists[address] = senders if is_list else frozenset()
        return self._lists[address]

    def _is_genuine(self, source: ValueSource) -> bool:
        """Return whether it was received from whom it says: an email that a key imported proves nothing."""
        document = self._read(source.message_id)
        return document is not None and not source.is_imported and is_genuine(document)

    def _people_of(self, source: ValueSource) -> set[str]:
        document = self._read(source.message_id)
        return set() if document is None else people_of(document)

    def _is_proven(self, message_id: str) -> bool:
        document = self._read(message_id)
        return document is not None and document.auth is not None and document.auth.dmarc == "pass"

    def _read(self, message_id: str) -> Document | None:
        if message_id not in self._documents:
            message = messages.find(self._tx, message_id)
            self._documents[message_id] = None if message is None else documents.decode(message.document)
        return self._documents[message_id]


def _organization_of(address: str) -> str:
    """Return the end of its domain. Of two below one suffix of a country that is at most too strict."""
    return ".".join(address.rpartition("@")[2].rsplit(".", 2)[-2:])


def _is_usual(received: Sequence[ValueSource]) -> bool:
    """Return whether two people wrote the same words."""
    return len({each.from_address for each in received}) > 1


# --- what follows


def require_allowed(found: dict[str, GuardFinding]) -> None:
    for each in found.values():
        if each.step == REFUSE:
            said = ", ".join(f"{origin.value} ({origin.kind})" for origin in each.origins)
            raise OriginNotAllowed(
                f"This email carries what came from somebody else than its recipients: {said}."
                " Leave it out, or ask a person to send it.",
                origins=list(each.origins),
            )


def marked(new: Sequence[Ready], found: dict[str, GuardFinding]) -> list[Ready]:
    """Return the sends with what was found in their documents."""
    return [
        replace(each, document=replace(each.document, origins=list(found[each.document.id].origins)))
        if each.document.id in found
        else each
        for each in new
    ]


def record(tx: Tx, new: Sequence[Ready], found: dict[str, GuardFinding]) -> None:
    """Record what was sent as the inbox's own from now on, and what was found in the audit log."""
    origins.add_all(tx, [HeldValues(each.inbox_id, each.document.id, own_values(each)) for each in new])
    for each in new:
        if (guarded := found.get(each.document.id)) is not None:
            said = {"inboxId": each.inbox_id, "recipients": list(each.addresses), "step": guarded.step}
            audit.record_by(
                tx,
                each.submission.decider,
                "origin.found",
                each.document.id,
                each.submission.now,
                within=each.submission.around.inbox.scope,
                after={**said, "origins": list(guarded.origins)},
            )


def own_values(ready: Ready) -> list[str]:
    """Not its phrases, which a reply quotes in full, and no codes: any number could be one."""
    sent = ready.submission.values.values()
    own = [value.key for value in sent if value.kind not in (PHRASE, CODE) and not value.is_piece]
    return own[: values.MOST_VALUES]
