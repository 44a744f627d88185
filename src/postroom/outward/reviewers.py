"""Reviewers: people without an account who decide about one held mail, by mail or by a link."""

import re
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from postroom import limits, log
from postroom.accounts import actors, domains, secret_values, sessions
from postroom.accounts.actors import Actor
from postroom.accounts.dkim_keys import DkimKey
from postroom.accounts.people import own_emails
from postroom.clock import to_iso
from postroom.errors import ApiError, NotFound
from postroom.inward import review_answers
from postroom.inward.addressing import NOBODYS_NAME
from postroom.inward.review_answers import REVIEW, ReviewAnswer
from postroom.inward.sender_checks import check_sender
from postroom.mailbox import documents, holds, inboxes, messages, raw_mails
from postroom.mailbox.documents import Document
from postroom.mailbox.holds import Hold
from postroom.mailbox.messages import Message
from postroom.mailbox.origins import ValueOrigin
from postroom.outward.courier import DeliveryError, OutgoingMail, Receipt, attempt, domain_of
from postroom.outward.deliver_mail import Outbound
from postroom.outward.holding import approvers, decide
from postroom.outward.holding.decide import Decision
from postroom.outward.sign_mail import Unsigned
from postroom.processes import pools
from postroom.processes.analysis import Analysis
from postroom.queue import deliveries, outcomes
from postroom.queue.deliveries import Delivery
from postroom.queue.outcomes import TriedDelivery
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.authentication.lookup import Lookup
from postroom_mail.mime.address import normalize
from postroom_mail.mime.parse import ParsedMail, parse_mail
from postroom_mail.writing import compose, content_view, review_path
from postroom_mail.writing.compose import Draft, DraftAttachment
from postroom_mail.writing.content_view import ContentView, view
from postroom_mail.writing.header_words import CONTROL
from postroom_mail.writing.quote import INVISIBLE
from postroom_mail.writing.review_path import ReviewPath

REVIEW_PATH = "/review/"
CAPTURED_CHARACTERS = 20_000
ANSWER = re.compile(r"(?i)\s*+(approve|reject)\b[\s.!:,-]*+(.*+)")


class Review(Struct, frozen=True):
    """What a reviewer is shown."""

    reviewer: str
    message: Message
    hold: Hold
    document: Document


def find_review(tx: Tx, token: str) -> Review:
    """Find by the token of a link or an address. Raises NotFound if it is unknown or not signed."""
    path = review_path.decode(secret_values.get(tx, REVIEW), token)
    review = None if path is None or own_emails.is_shown(tx, token) else _look_up(tx, path)
    if review is None:
        raise NotFound("There is nothing to decide with this link.")
    return review


def _look_up(tx: Tx, path: ReviewPath) -> Review | None:
    message, hold = messages.find(tx, path.message_id), holds.find(tx, path.message_id)
    reviewer = review_answers.find_reviewer(tx, path)
    if message is None or hold is None or reviewer is None or inboxes.find(tx, message.inbox_id) is None:
        return None
    return Review(
        reviewer=reviewer,
        message=message,
        hold=hold,
        document=documents.decode(message.document),
    )


def decide_by_link(
    tx: Tx,
    token: str,
    word: str,
    content_hash: str,
    note: str | None,
    base_url: str,
    now: int,
    address: str,
) -> None:
    review = find_review(tx, token)
    decision = decision_of(tx, review, note, base_url, now, address)
    tx.ring(*_decide(tx, review, word, content_hash, decision))


def decision_of(tx: Tx, review: Review, note: str | None, base_url: str, now: int, address: str) -> Decision:
    reviewer = review.reviewer
    person = approvers.of_reviewer(tx, review.hold.account_id, reviewer)
    actor = Actor(actors.REVIEWER, reviewer, reviewer)
    return Decision(actor, base_url, now, note=note, address=address, person=person, method=sessions.LINK)


def _decide(tx: Tx, review: Review, word: str, content_hash: str, decision: Decision) -> list[str]:
    message, hold = decide.lock(tx, review.message)
    if word == "approve":
        return decide.approve_as(tx, message, hold, content_hash, decision)
    return decide.reject_as(tx, message, hold, decision)


def read_note(text: str) -> str | None:
    """Return a person's note on the decision, cleaned for storage."""
    return INVISIBLE.sub("", text).strip()[: limits.NOTE_CHARACTERS] or None


# --- notices


class NoticeJob(Struct, frozen=True):
    review: Review
    token: str
    mark: str
    is_local: bool
    keys: tuple[DkimKey, ...]


Keep = Callable[[Tx, str, str, str, str, int], None]  # account, recipient, subject, text, time


class CapturedNotice(Struct, frozen=True):
    """What is kept of a notice where the server sends nothing."""

    subject: str
    text: str


async def deliver_notice(resources: Resources, outbound: Outbound, delivery: Delivery, keep: Keep) -> None:
    """Ignores limits, policy and pause: it is the server's own mail. `keep` stores one that is captured."""
    job = await resources.db.read(look_up_notice, delivery, resources.config.domain)
    if job is None or job.review.hold.state != holds.HELD:
        await resources.db.write(_give_up, delivery, resources.now())
        return
    handing_over = write_and_hand_over(resources, outbound, job, resources.now())
    message_id = job.review.message.id
    outcome = await attempt(resources, handing_over, "a reviewer could not be notified", message=message_id)
    tried = TriedDelivery(delivery, outcome)
    kept = None if outcome.captured is None else await to_captured(resources, job)
    await outbound.recorder.record(
        tried, lambda: write_tried(resources, tried, kept, keep), has_left=not job.is_local
    )


async def write_tried(
    resources: Resources,
    tried: TriedDelivery,
    kept: CapturedNotice | None = None,
    keep: Keep | None = None,
) -> list[str]:
    await resources.db.write(record_tried, tried, kept, keep)
    return []


def record_tried(tx: Tx, tried: TriedDelivery, kept: CapturedNotice | None, keep: Keep | None) -> None:
    state, delivery = outcomes.record(tx, tried), tried.delivery
    if state == deliveries.CAPTURED and kept is not None and keep is not None:
        keep(tx, delivery.account_id, delivery.target, kept.subject, kept.text, tried.outcome.ended_at)


async def to_captured(resources: Resources, job: NoticeJob) -> CapturedNotice:
    review, base_url = job.review, resources.config.base_url
    raw = await raw_mails.read(resources, review.message.id, with_trace=False)
    shown = await pools.READING.run(view, raw, review.hold.bcc)
    text = notice_text(review, shown, link_to(job, base_url), CAPTURED_CHARACTERS)
    cut = f"{text[:CAPTURED_CHARACTERS]}\n[…]\n\n{link_to(job, base_url)}\n"
    return CapturedNotice(subject_of(review), cut if len(text) > len(cut) else text)


async def write_and_hand_over(resources: Resources, outbound: Outbound, job: NoticeJob, now: int) -> Receipt:
    config = resources.config
    raw = await raw_mails.read(resources, job.review.message.id, with_trace=False)
    notice = await pools.READING.run(write_notice, job, raw, config.domain, config.base_url, now)
    return await hand_over(resources, outbound, job, notice)


def look_up_notice(tx: Tx, delivery: Delivery, service_domain: str) -> NoticeJob | None:
    token = token_of(tx, delivery.message_id, delivery.target)
    path = review_path.decode(secret_values.get(tx, REVIEW), token)
    review = None if path is None else _look_up(tx, path)
    if review is None:
        return None
    is_local = domains.is_served(tx, domain_of(delivery.target), service_domain)
    keys = () if is_local else domains.signing_keys(tx, service_domain, service_domain)
    return NoticeJob(review, token, own_emails.new_mark(tx), is_local, keys)


def write_notice(job: NoticeJob, raw: bytes, domain: str, base_url: str, now: int) -> bytes:
    review = job.review
    return compose.compose(
        Draft(
            from_name="Postroom",
            from_address=f"{NOBODYS_NAME}@{domain}",
            to=(review.reviewer,),
            reply_to=f"{review_path.PREFIX}{job.token}@{domain}",
            subject=subject_of(review),
            text=notice_text(review, view(raw, review.hold.bcc), link_to(job, base_url)),
            attachments=(DraftAttachment("mail.eml", "application/octet-stream", raw),),
            message_id=own_emails.message_id(job.mark, domain),
            date_at=now,
            automated=True,
            headers={own_emails.FIELD: job.mark},
        )
    )


def subject_of(review: Review) -> str:
    subject = " ".join(CONTROL.sub(" ", review.document.subject).split())
    return f"To approve: {subject}"[:200]


def link_to(job: NoticeJob, base_url: str) -> str:
    return f"{base_url}{REVIEW_PATH}{job.token}"


def notice_text(
    review: Review, shown: ContentView, link: str, most_characters: int = limits.BODY_CHARACTERS
) -> str:
    """Has everything that the linked page shows; parts that are too long are in the attached mail."""
    hold = review.hold
    until = "" if hold.expires_at is None else f"\nIt expires at {to_iso(hold.expires_at)}.\n"
    carried = "".join(f"It carries from somebody else: {shown_value(each)}\n" for each in hold.origins)
    return (
        f"An email is waiting for your decision. Reasons: {', '.join(hold.reasons)}.\n{carried}{until}\n"
        f"{content_view.to_text(shown, most_characters)}\n\n"
        "The whole email is attached. To decide, reply to this email with one word in its first line,\n"
        "approve or reject (optionally followed by a reason), or open this page, which only shows\n"
        f"the email until you press a button:\n\n{link}\n"
    )


def shown_value(origin: ValueOrigin) -> str:
    """Return the value on one line, without anything that could act on a terminal: a stranger wrote it."""
    return f"{' '.join(INVISIBLE.sub('', CONTROL.sub(' ', origin.value)).split())} ({origin.kind})"


async def hand_over(resources: Resources, outbound: Outbound, job: NoticeJob, notice: bytes) -> Receipt:
    if job.is_local:
        reason = "5.7.1 Reviewers cannot have an address of this server, where agents read."
        raise DeliveryError(reason, permanent=True, code=550)
    if job.keys:
        domain, now = resources.config.domain, resources.now()
        unsigned = Unsigned(f"notice {job.token}", notice, domain, job.keys, now)
        notice = await outbound.signers.sign(unsigned) + notice
    reviewer = job.review.reviewer
    return await outbound.courier.deliver(OutgoingMail("", reviewer, notice, domain_of(reviewer)))


def _give_up(tx: Tx, delivery: Delivery, now: int) -> None:
    deliveries.record_answer(tx, delivery, None, "", 0)
    deliveries.finish(tx, delivery, deliveries.CANCELLED, None, "", now)


# --- answers


async def weigh_answer(resources: Resources, lookup: Lookup, answer: ReviewAnswer) -> None:
    """Counts if its first new line is a decision and it is proven to come from that reviewer."""
    is_his = await is_from_reviewer(resources, lookup, answer)
    bells = await resources.db.write(apply_answer, answer, is_his, resources.config.base_url, resources.now())
    resources.db.ring(*bells)


async def is_from_reviewer(resources: Resources, lookup: Lookup, answer: ReviewAnswer) -> bool:
    if answer.is_automated or normalize(answer.from_address) != answer.reviewer:
        return False
    if answer.peer_ip == "":  # it never left this server, and no inbox here is a reviewer
        return False
    mail = await pools.READING.run(parse_mail, answer.content)
    if not is_addressed_to(mail, await resources.db.read(token_of, answer.message_id, answer.reviewer)):
        return False
    check = partial(check_sender, answer.content, mail, answer, lookup, covered=("to",))
    verdicts = await Analysis().wait_for("authentication", None, check)
    return verdicts is not None and verdicts.dmarc == "pass"


def token_of(tx: Tx, message_id: str, reviewer: str) -> str:
    return review_path.encode(secret_values.get(tx, REVIEW), message_id, reviewer)


def is_addressed_to(mail: ParsedMail, token: str) -> bool:
    """Return whether To names this address: a resent answer about another email still names the other."""
    wanted = review_path.PREFIX + token
    return any(address.address.rpartition("@")[0].lower() == wanted for address in mail.to)


def apply_answer(tx: Tx, answer: ReviewAnswer, is_his: bool, base_url: str, now: int) -> list[str]:
    """Apply the answer and remove it with the decision, so that it counts once."""
    said = ANSWER.fullmatch(answer.first_line)
    if not review_answers.remove(tx, answer.id):
        return []
    if not is_his or said is None or (said[1].lower() == "approve" and said[2].strip()):
        log.get().info("an answer of a reviewer does not count", message=answer.message_id)
        return []
    path = ReviewPath(answer.message_id, review_path.hash_of(answer.reviewer))
    review = _look_up(tx, path)
    if review is None:
        return []
    decision = decision_of(tx, review, read_note(said[2]), base_url, now, answer.peer_ip)
    try:
        return _decide(tx, review, said[1].lower(), review.hold.content_hash, decision)
    except ApiError as error:
        log.get().info("a reviewer decided too late", message=answer.message_id, reason=error.message)
        return []
