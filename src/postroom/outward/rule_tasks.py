"""Does what rules have queued: forwards, redirects, answers, copies, webhooks, questions to the judge.

A send is that of the key that made the rule: policy, limits and approval apply. The task is its idempotency
key, so that it is sent once, also after a crash.
"""

from collections.abc import Awaitable, Callable, Mapping

import msgspec
from msgspec import UNSET, Struct, structs

from postroom.accounts import keys
from postroom.accounts.keys import Caller
from postroom.clock import HOUR, MINUTE, SECOND
from postroom.errors import (
    ApiError,
    BadRequest,
    ColdOutreachLimit,
    LegalHold,
    NotFound,
    NotRedirectable,
    PayloadTooLarge,
    RateLimitExceeded,
    RecipientNotAllowed,
    RecipientSuppressed,
    Unauthorized,
)
from postroom.events import event_log, webhook_list, webhooks
from postroom.events.kinds import MESSAGE_RECEIVED
from postroom.inward.copy_message import copy_message
from postroom.inward.junk import moves
from postroom.inward.rules import apply, tasks
from postroom.inward.rules.tasks import Task
from postroom.mailbox import documents, inboxes, messages, rules, templates
from postroom.mailbox.documents import Document, RuleStep
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.mailbox.rules import Rule
from postroom.mailbox.templates import TemplateText
from postroom.outward.raw_submission.redirected_mail import redirect_mail
from postroom.outward.send import send_mail
from postroom.outward.send_stages import Order, SendAnswer
from postroom.queue import deliveries, idempotency
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.mime.address import Address, parse_list, validate
from postroom_mail.writing.header_words import DraftError

LIMITED = (RateLimitExceeded, ColdOutreachLimit)  # it may be sent later
MOST_TRIES = 24
NO_FAULT_OF_THE_RULE = (PayloadTooLarge, NotRedirectable, LegalHold)
FIRST_EVENTS = 20

AskJudge = Callable[[str], Awaitable[bool]]


class DueTask(Struct, frozen=True):
    """A task with all that it is about."""

    task: Task
    rule: Rule
    caller: Caller | None
    inbox: Inbox
    message: Message
    document: Document


class _Receipt(Struct, frozen=True):
    id: str


async def do_task(resources: Resources, ask_judge: AskJudge | None, task: Task) -> None:
    work = await resources.db.read(look_up, task, resources.now())
    if work is None:
        await resources.db.write(tasks.remove, task)
        return
    try:
        step = await _do(resources, ask_judge, work)
    except LIMITED as error:
        await _wait(resources, work, error)
        return
    except ApiError as error:
        if error.status >= 500:
            raise
        await _record_error(resources, work, error)
        return
    await resources.db.write(record, work, step)


def look_up(tx: Tx, task: Task, now: int) -> DueTask | None:
    """Return None if the rule, the inbox or the message is gone, or the rule was switched off."""
    rule, message = rules.find(tx, task.rule_id), messages.find(tx, task.message_id)
    inbox = inboxes.find(tx, task.inbox_id)
    if rule is None or not rule.enabled or message is None or inbox is None:
        return None
    caller = keys.find_caller_by_id(tx, rule.key_id, now)
    return DueTask(task, rule, caller, inbox, message, documents.decode(message.document))


async def _do(resources: Resources, ask_judge: AskJudge | None, work: DueTask) -> RuleStep:
    if work.task.action.type == "judge":
        return await _judge(ask_judge, work)
    return await _ACTIONS[work.task.action.type](resources, work)


async def _wait(resources: Resources, work: DueTask, error: ApiError) -> None:
    if work.task.tries >= MOST_TRIES:
        step = RuleStep(work.task.action.type, "skipped", error.message)
        await resources.db.write(record, work, step)
        return
    pause = min(max((error.retry_after or 60) * SECOND, MINUTE), HOUR)
    await resources.db.write(tasks.put_off, work.task, resources.now() + pause)


async def _record_error(resources: Resources, work: DueTask, error: ApiError) -> None:
    """Record an error. One caused by the message leaves the rule on; one that would recur switches it off."""
    kind = work.task.action.type
    is_of_sender = kind == "reply" and isinstance(error, RecipientNotAllowed | RecipientSuppressed)
    if is_of_sender or isinstance(error, NO_FAULT_OF_THE_RULE):
        await resources.db.write(record, work, RuleStep(kind, "skipped", error.message))
        return
    await resources.db.write(record_failure, work, error.message, resources.now())


def record(tx: Tx, work: DueTask, step: RuleStep) -> bool:
    """Writes the outcome into the trail of the message. False if another node did."""
    inboxes.lock(tx, work.inbox.id)
    if not tasks.remove(tx, work.task):
        return False
    message = messages.find(tx, work.message.id)
    document = None if message is None else documents.decode(message.document)
    if document is not None and document.rules is not UNSET:
        traces = [
            structs.replace(trace, actions=_with(trace.actions, work.task.place, step))
            if trace.id == work.rule.id
            else trace
            for trace in document.rules
        ]
        messages.set_document(tx, structs.replace(document, rules=traces))
    return True


def _with(steps: list[RuleStep], place: int, step: RuleStep) -> list[RuleStep]:
    return [step if number == place else each for number, each in enumerate(steps)]


def record_failure(tx: Tx, work: DueTask, reason: str, now: int) -> None:
    if record(tx, work, RuleStep(work.task.action.type, "failed", reason)):
        apply.disable(tx, work.rule, reason, now)


async def _judge(ask_judge: AskJudge | None, work: DueTask) -> RuleStep:
    if ask_judge is None:
        return RuleStep("judge", "skipped", "This server has no judge (POSTROOM_JUDGE_URL).")
    is_asked = await ask_judge(work.message.id)
    return RuleStep("judge", "done") if is_asked else RuleStep("judge", "skipped", "The judge is busy.")


async def _copy(resources: Resources, work: DueTask) -> RuleStep:
    target_id = work.task.action.inbox_id or ""
    target = await resources.db.read(inboxes.find, target_id)
    if target is None or target.account_id != work.rule.account_id:
        raise NotFound("The inbox that it copies to is gone.")
    if await copy_message(resources, work.message, target_id):
        return RuleStep("copyTo", "done")
    return RuleStep("copyTo", "skipped", "The inbox has this email.")


async def _junk(resources: Resources, work: DueTask) -> RuleStep:
    bells = await resources.db.write(_move_to_junk, work, resources.config.base_url, resources.now())
    resources.db.ring(*bells)
    return RuleStep("junk", "done")


def _move_to_junk(tx: Tx, work: DueTask, base_url: str, now: int) -> list[str]:
    """Move to Junk once: an earlier try, or a person, may have moved it. It teaches the filter nothing."""
    inboxes.lock(tx, work.inbox.id)
    message = messages.find(tx, work.message.id)
    if message is None or message.is_junk or message.is_blocked or not message.thread_id:
        return []
    return moves.put_into_junk(tx, work.inbox, message, base_url, now)


async def _post(resources: Resources, work: DueTask) -> RuleStep:
    reason = await resources.db.write(_enqueue_webhook, work, resources.now())
    return RuleStep("webhook", "skipped" if reason else "done", reason or UNSET)


def _enqueue_webhook(tx: Tx, work: DueTask, now: int) -> str | None:
    """Enqueue the webhook once, unless it gets the event anyway, or got it in an earlier try."""
    webhook = webhook_list.get(tx, work.rule.account_id, work.task.action.webhook_id or "")
    events = event_log.list_of_message(tx, work.message.id, FIRST_EVENTS)
    event = next((each for each in events if each.kind == MESSAGE_RECEIVED), None)
    if event is None:
        return "This message has no event."
    if not webhook.enabled:
        return "The webhook is disabled."
    if webhooks.is_posted(tx, event, webhook.owner):
        return "The webhook gets the event anyway."
    webhooks.replay(tx, event, webhook, now)
    tx.ring(deliveries.WEBHOOK_BELL)
    return None


def _caller_of(work: DueTask) -> Caller:
    if work.caller is None or not work.caller.scope.covers(
        work.inbox.account_id, work.inbox.pod_id, work.inbox.id
    ):
        raise Unauthorized("The key that made the rule was revoked or no longer reaches the inbox.")
    return work.caller


async def _forward(resources: Resources, work: DueTask) -> RuleStep:
    order = Order(
        inbox_id=work.inbox.id,
        idempotency_key=_key(work),
        request_hash=_hash(work),
        to=(_to(work),),
        subject="",
        body="",
        include_quote=True,
        is_automated=True,
        forward_of=work.message.id,
        headers={"X-Loop": work.inbox.address},
    )
    return _sent("forward", await _send(resources, work, order))


async def _redirect(resources: Resources, work: DueTask) -> RuleStep:
    caller, to = _caller_of(work), (_to(work),)
    answer = await redirect_mail(resources, caller, work.message.id, to, _key(work), has_loop_mark=True)
    return _sent("redirect", answer)


async def _reply(resources: Resources, work: DueTask) -> RuleStep:
    sender = next(iter(parse_list(work.document.from_addr)), None)
    if sender is None:
        return RuleStep("reply", "skipped", "It has no sender.")
    try:
        to = Address(sender.name, validate(sender.address))
    except ValueError:
        return RuleStep("reply", "skipped", "Its sender cannot be written to.")
    content = await resources.db.read(_read_answer, work, to)
    order = Order(
        inbox_id=work.inbox.id,
        idempotency_key=_key(work),
        request_hash=_hash(work),
        to=(to,),
        subject="",
        body=content.body,
        body_html=content.body_html,
        thread_id=work.message.thread_id,
        reply_to_message_id=work.message.id,
        is_automated=True,
        copies_sender=False,
        keeps_unread=True,
    )
    return _sent("reply", await _send(resources, work, order))


def _read_answer(tx: Tx, work: DueTask, to: Address) -> TemplateText:
    """Return the text of the rule, or of its template filled with what is known of the sender."""
    action = work.task.action
    if action.template_id is None:
        return TemplateText(action.body or "")
    template = templates.get_of_inbox(tx, work.inbox, action.template_id)
    known = {"name": to.name or to.address, "address": to.address, "subject": work.document.subject}
    return templates.fill(template, {name: known[name] for name in template.fields if name in known})


async def _send(resources: Resources, work: DueTask, order: Order) -> SendAnswer:
    try:
        return await send_mail(resources, _caller_of(work), order)
    except DraftError as error:
        raise BadRequest(f"This cannot be written into an email: {error}") from None


def _sent(kind: str, answer: SendAnswer) -> RuleStep:
    return RuleStep(kind, "done", message_id=msgspec.json.decode(answer.content, type=_Receipt).id)


def _to(work: DueTask) -> Address:
    try:
        return Address("", validate(work.task.action.to or ""))
    except ValueError:
        raise BadRequest("The address that it sends to is not valid.") from None


def _key(work: DueTask) -> str:
    return f"rule-{work.task.id}"


def _hash(work: DueTask) -> str:
    return idempotency.hash_request(b"rule", work.task.id.encode())


_ACTIONS: Mapping[str, Callable[[Resources, DueTask], Awaitable[RuleStep]]] = {
    "junk": _junk,
    "copyTo": _copy,
    "webhook": _post,
    "forward": _forward,
    "redirect": _redirect,
    "reply": _reply,
}
