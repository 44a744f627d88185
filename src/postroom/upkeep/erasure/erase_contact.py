"""The steps that erase a contact: its email, then events, then the audit log's content, then its own row."""

from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postroom.accounts import audit, audit_erasure
from postroom.accounts.audit_erasure import AuditErasure, hashed
from postroom.accounts.rules import policy
from postroom.accounts.scope import Scope, default_pod
from postroom.events import event_erasure
from postroom.events.announce import announce_notice
from postroom.events.kinds import CONTACT_ERASED
from postroom.events.payload import SystemNotice
from postroom.mailbox import contact_mail, inboxes, jobs, legal_holds
from postroom.mailbox.contact_mail import MailCursor
from postroom.mailbox.jobs import Job
from postroom.mailbox.messages import Message
from postroom.queue import suppressions
from postroom.storage.database import Tx, count, one_of
from postroom.upkeep import deletion
from postroom.upkeep.erasure import inbox_traces

MAIL, EVENTS, AUDIT, POLICY, END = range(5)  # the stages, in this order
ROWS = 100  # looked at in a step
PLACES = 200  # parts of inboxes gone through in a step


class ErasurePosition(Struct, frozen=True, omit_defaults=True):
    """Where the work goes on: the stage, and in it a place in the mail, or behind a row.

    `until` is when the first step was taken: what came later is not erased.
    """

    stage: int = MAIL
    place: MailCursor = MailCursor()
    at: int = -1
    id: str = ""
    until: int = 0

    def after(self, stage: int) -> "ErasurePosition":
        return ErasurePosition(stage, until=self.until)


class ErasureStep(Struct, frozen=True):
    """What a step leaves to do: blobs that nothing uses any more, and whether the job is over."""

    blobs: Sequence[str] = ()
    is_over: bool = False


class Gone(Struct, frozen=True):
    """What a part of a step did."""

    position: ErasurePosition
    examined: int
    counts: Counter[str]
    blobs: Sequence[str] = ()


def count_all(tx: Tx, job_scope: Scope) -> int:
    """Count about how many rows a job reads."""
    owner, owner_id = job_scope.owner_of_inboxes
    mail = count(
        tx,
        "select coalesce(sum(inbound_count + outbound_count + blocked_count + junk_count), 0) as number"
        f" from inboxes where {owner} = :owner_id",
        owner_id=owner_id,
    )
    events = count(
        tx,
        "select coalesce(max(position) - min(position) + 1, 0) as number from events where account_id = :id",
        id=job_scope.account_id,
    )
    logged = count(tx, "select audit_count as number from accounts where id = :id", id=job_scope.account_id)
    return mail + events + logged


def take_step(tx: Tx, job_id: str, now: int) -> ErasureStep:
    """Erase a part, and note where to go on, in one transaction."""
    job = jobs.lock(tx, job_id)
    if job is None or job.state != jobs.RUNNING:
        return ErasureStep(is_over=True)
    position = msgspec.json.decode(job.position, type=ErasurePosition)
    position = replace(position, until=position.until or now)
    if position.stage == END:
        _finish(tx, job, now)
        return ErasureStep(is_over=True)
    gone = STAGES[position.stage](tx, job, position, now)
    encoded = msgspec.json.encode(gone.position).decode()
    jobs.advance(tx, job, encoded, gone.examined, gone.counts)
    return ErasureStep(gone.blobs)


def _erase_mail(tx: Tx, job: Job, position: ErasurePosition, now: int) -> Gone:
    """Goes through inboxes until enough rows were looked at, or one inbox has changed and is locked."""
    place: MailCursor | None = position.place
    examined, counts = 0, Counter[str]()
    for _ in range(PLACES):
        if place is None or not place.inbox_id:
            place = contact_mail.next_place(tx, job.scope, place or MailCursor())
        if place is None:
            return Gone(position.after(EVENTS), examined, counts)
        looked_at, blobs, place = _erase_in(tx, job, place, position.until, counts, now)
        examined += looked_at
        if place is None:
            return Gone(position.after(EVENTS), examined, counts, blobs)
        if counts or blobs or examined >= ROWS:
            return Gone(replace(position, place=place), examined, counts, blobs)
    return Gone(replace(position, place=place or MailCursor()), examined, counts)


def _erase_in(
    tx: Tx, job: Job, place: MailCursor, until: int, counts: Counter[str], now: int
) -> tuple[int, list[str], MailCursor | None]:
    """Return how many rows it looked at, blobs to remove, and where to go on; None at the end."""
    before = counts["kept"]
    if place.part >= len(contact_mail.MAIL):
        looked_at, blobs, following = inbox_traces.erase(tx, job, place, until, counts)
    else:
        found, following = contact_mail.list_page(tx, place, until, ROWS)
        own = contact_mail.of_address(tx, found, job.subject)
        looked_at, blobs = len(found), _erase_messages(tx, job, own, counts, now)
    has_kept = place.has_kept or counts["kept"] > before
    if following is None:
        following = contact_mail.next_place(tx, job.scope, replace(place, has_kept=has_kept))
    else:
        following = replace(following, has_kept=has_kept)
    return looked_at, blobs, following


def _erase_messages(tx: Tx, job: Job, found: Sequence[Message], counts: Counter[str], now: int) -> list[str]:
    """Erase messages. Those with a legal hold stay, and are counted."""
    if not found:
        return []
    inbox = inboxes.lock(tx, found[0].inbox_id)
    held = legal_holds.find_held(tx, {each.thread_id for each in found if each.thread_id})
    free = [each for each in found if not inbox.legal_hold and each.thread_id not in held]
    counts.update(kept=len(found) - len(free))
    if not free:
        return []
    message_ids = [each.id for each in free]
    is_wanted, wanted = one_of("message_id", message_ids)
    files = count(tx, f"select count(*) as number from attachments where {is_wanted}", **wanted)
    by_thread: dict[str, list[str]] = {}
    for each in free:
        by_thread.setdefault(each.thread_id, []).append(each.id)
    blobs = deletion.remove_some(tx, inbox.id, dict(sorted(by_thread.items())), now)
    emptied = audit_erasure.erase_of_targets(tx, _of_audit(job, now), message_ids)
    counts.update(messages=len(free), files=files, auditEntries=emptied)
    return blobs


def _erase_events(tx: Tx, job: Job, position: ErasurePosition, now: int) -> Gone:
    page = event_erasure.erase_some(tx, job.scope, job.subject, position.at, position.until, ROWS)
    counts = Counter(events=page.erased)
    if page.last is None:
        return Gone(position.after(AUDIT), page.examined, counts)
    return Gone(replace(position, at=page.last), page.examined, counts)


def _erase_audit(tx: Tx, job: Job, position: ErasurePosition, now: int) -> Gone:
    page = audit_erasure.erase_some(tx, _of_audit(job, now), (position.at, position.id), ROWS)
    counts = Counter(auditEntries=page.erased)
    if page.last is None:
        return Gone(position.after(POLICY), page.examined, counts)
    at, last_id = page.last
    return Gone(replace(position, at=at, id=last_id), page.examined, counts)


def _erase_policy_log(tx: Tx, job: Job, position: ErasurePosition, now: int) -> Gone:
    changed = policy.forget_address(tx, job.scope, job.subject, hashed(job.subject), ROWS)
    return Gone(position if changed else position.after(END), changed, Counter(auditEntries=changed))


def _of_audit(job: Job, now: int) -> AuditErasure:
    return AuditErasure(job.scope, job.id, job.actor, job.subject, now)


def _finish(tx: Tx, job: Job, now: int) -> None:
    """Mark the job as done. From here on only a suppression's hash has the address."""
    kept = hashed(job.subject)
    suppressed = suppressions.keep_hash_alone(tx, job.account_id, job.subject) if job.pod_id is None else 0
    counts = jobs.advance(tx, job, job.position, 0, {**NOTHING, "suppressions": suppressed})
    jobs.finish(tx, job, kept, now)
    audit.record(tx, job.actor, CONTACT_ERASED, job.id, job.scope, now, after={"address": kept, **counts})
    announce_notice(
        tx,
        SystemNotice(
            job.account_id,
            job.pod_id or default_pod(job.account_id),
            CONTACT_ERASED,
            now,
            reason=job.id,
            actor=job.actor,
        ),
    )


NOTHING = dict.fromkeys(
    ("messages", "files", "drafts", "calendarEvents", "events", "contacts", "auditEntries", "suppressions"), 0
) | {"kept": 0}
STAGES = {MAIL: _erase_mail, EVENTS: _erase_events, AUDIT: _erase_audit, POLICY: _erase_policy_log}
