"""Stops an email that was on its way: by a pause, a revoked key, a block or a suppression since."""

from msgspec import Struct
from msgspec.structs import replace

from postroom.accounts.actors import THE_SERVER
from postroom.accounts.keys import Key
from postroom.accounts.rules import pauses
from postroom.accounts.scope import Scope
from postroom.events import kinds
from postroom.mailbox import holds, messages
from postroom.mailbox.holds import Hold
from postroom.mailbox.messages import Message
from postroom.outward import states
from postroom.outward.holding import checks, decide
from postroom.outward.holding.checks import SendCheck
from postroom.outward.holding.decide import Decision
from postroom.outward.states import Move
from postroom.queue import deliveries
from postroom.queue.deliveries import Delivery
from postroom.storage.database import Tx
from postroom_mail.mime import headers
from postroom_mail.mime.address import normalize, parse_list
from postroom_mail.writing import sealed
from postroom_mail.writing.content_hash import content_hash, read_content

PAUSED_AT_ONCE = 1000


class SeenContent(Struct, frozen=True):
    """What a person is asked to approve: its hash, and the recipients not named in the mail."""

    content_hash: str
    bcc: tuple[str, ...]
    seal: str = ""  # signed or encrypted: no person can be asked


def see_content(raw: bytes, recipients: list[str]) -> SeenContent:
    written = read_content(raw, ())
    named = {normalize(found.address) for field in (*written.to, *written.cc) for found in parse_list(field)}
    bcc = tuple(address for address in recipients if address not in named)
    return SeenContent(content_hash(raw, bcc), bcc, sealed.kind_of(headers.split(raw, 0).headers))


def stop_attempt(tx: Tx, delivery: Delivery, seen: SeenContent | None, base_url: str, now: int) -> list[str]:
    """Replaces an attempt at a claimed delivery, after judging it again under a lock.

    `seen` is given if a person must decide about an email that has no hash yet.
    """
    found = messages.find(tx, delivery.message_id)
    if found is None:
        return []
    message, hold = decide.lock(tx, found)
    decision = Decision(THE_SERVER, base_url, now)
    known = hold or decide.never_held(tx, message, now)
    if not states.may(Move.DELIVER, states.state_of(message.status, hold)):
        deliveries.record_answer(tx, delivery, None, "", 0)  # it was decided meanwhile
        return []
    if seen is not None and not known.content_hash:
        known = replace(known, content_hash=seen.content_hash, bcc=seen.bcc)
    send_check = checks.judge(tx, message.id, [delivery.target], known.excused)
    if seen is not None and seen.seal and send_check.needs_a_person:
        refusal = checks.cannot_be_shown(delivery.target, message.inbox_id, seen.seal)
        send_check = SendCheck(refusals=(*send_check.refusals, refusal), waits=())
    if reasons := decide.reasons_to_hold(known, send_check):
        deliveries.record_answer(tx, delivery, None, f"Held: {', '.join(reasons)}.", 0)
        return hold_again(tx, message, known, reasons, decision)
    if not send_check.refusals:
        deliveries.record_answer(tx, delivery, None, "", 0)
        deliveries.put_back(tx, delivery, now)
        return [deliveries.BELL]
    deliveries.record_answer(tx, delivery, None, send_check.refusals[0].reason, 0)
    bells = decide.refuse(tx, message, decide.scope_of(known), hold, delivery, send_check, decision)
    deliveries.settle(tx, message.id)
    return bells


def hold_again(
    tx: Tx, message: Message, known: Hold, reasons: tuple[str, ...], decision: Decision
) -> list[str]:
    deliveries.hold_back(tx, message.id)
    waiting = known if known.state == holds.HELD else replace(known, reasons=(), approvals=())
    held = decide.put_on_hold(tx, waiting, reasons, decision.now)
    return decide.emit(tx, kinds.MESSAGE_HELD, message, held, decision)


def pause_message(tx: Tx, message_id: str, base_url: str, now: int) -> list[str]:
    """Holds a waiting email until its pause ends; not if that has ended, since nothing would wake it."""
    message = messages.find(tx, message_id)
    if message is None:
        return []
    message, hold = decide.lock(tx, message)
    if not states.may(Move.PAUSE, states.state_of(message.status, hold)):
        return []
    if (hold is not None and hold.is_paused) or not pauses.is_inbox_paused(tx, message.inbox_id):
        return []
    known = hold or decide.never_held(tx, message, now)
    return hold_again(tx, message, known, (holds.PAUSED,), Decision(THE_SERVER, base_url, now))


def begin_pause(tx: Tx, scope: Scope, decision: Decision, reason: str | None = None) -> list[str]:
    """Nothing leaves from now on. Waiting mail is held at once; beyond a limit, when it comes due."""
    pauses.add(tx, scope.account_id, pauses.scope_of(scope), decision.actor, decision.now, reason)
    waiting = deliveries.list_waiting(tx, scope, PAUSED_AT_ONCE)
    return [
        bell
        for message_id in [*waiting, *holds.list_scheduled(tx, scope, PAUSED_AT_ONCE)]
        for bell in pause_message(tx, message_id, decision.base_url, decision.now)
    ]


def end_pause(tx: Tx, scope: Scope, now: int) -> None:
    """The loop then releases what nothing else holds."""
    if pauses.remove(tx, pauses.scope_of(scope)):
        holds.wake_paused(tx, scope, now)
        tx.ring(deliveries.HOLDS_BELL)


def look_at_what_waits(tx: Tx, key: Key, now: int) -> None:
    """After a key was revoked or lost its permission: the loops judge its waiting mail at once."""
    if deliveries.hasten(tx, key.scope, key.id, now):
        tx.ring(deliveries.BELL)
    if holds.wake_scheduled(tx, key.account_id, key.id, now):
        tx.ring(deliveries.HOLDS_BELL)
