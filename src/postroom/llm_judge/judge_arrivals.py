"""Asks the operator's judge about mail after its event, and records objections.

Nothing waits for it: without an answer in time the verdict of the rules stays.
"""

import asyncio
from collections import deque
from collections.abc import Sequence

from msgspec import Struct, field

from postroom import log
from postroom.clock import SECOND
from postroom.events import announce, event_log, kinds
from postroom.events.payload import NewEvent
from postroom.external_mailboxes.fetching import Fetcher, FetchError
from postroom.inward import screening
from postroom.llm_judge.question import ANSWER_BYTES, Opinion, read_opinion, to_question
from postroom.mailbox import attachments, documents, holds, inboxes, messages, threads
from postroom.queue import leader_leases
from postroom.resources import Resources
from postroom.storage.database import Tx

PAUSE_SECONDS = 1.0
LOOK_BACK = 10 * SECOND  # an event may become visible after a later one
AT_ONCE = 4
BATCH = 100
REMEMBERED = 10_000
MINUTE_SECONDS = 60.0
FAILURES_IN_A_ROW = 5
REST_SECONDS = 60.0
LEASE = "judge"
LEASE_HELD = 30 * SECOND


class Judge(Struct):
    """Only one node asks, at most so often a minute; after some failures in a row it pauses."""

    resources: Resources
    fetcher: Fetcher
    asked: "deque[float]" = field(default_factory=deque)
    seen: dict[str, None] = field(default_factory=dict)
    failures: int = 0
    rests_until: float = 0.0

    async def run(self) -> None:
        since = self.resources.now()
        while True:
            if await leader_leases.hold(self.resources, LEASE, LEASE_HELD):
                since = await self.look(since)
            await asyncio.sleep(PAUSE_SECONDS)

    async def look(self, since: int) -> int:
        """Asks about mail whose event came since a moment. Returns the time of the newest event."""
        told = await self.resources.db.read(
            event_log.list_messages_of_events, kinds.MESSAGE_RECEIVED, since - LOOK_BACK, BATCH
        )
        new = [each for each in told if each.message_id not in self.seen]
        for each in new:
            self._remember(each.message_id)
        wanted = [each.message_id for each in new if self._may_ask()]
        await self._judge_all(wanted)
        return max([since, *(each.created_at for each in told)])

    async def ask_about(self, message_id: str) -> bool:
        """Asks because a rule wants it. False if it may not be asked now."""
        if message_id in self.seen:
            return True
        if not self._may_ask():
            return False
        self._remember(message_id)
        await self._judge(message_id)
        return True

    def _remember(self, message_id: str) -> None:
        self.seen[message_id] = None
        if len(self.seen) > REMEMBERED:
            del self.seen[next(iter(self.seen))]

    def _may_ask(self) -> bool:
        """Return whether to ask: not beyond the limit per minute, and not for a while after failures."""
        now = asyncio.get_running_loop().time()
        while self.asked and self.asked[0] <= now - MINUTE_SECONDS:
            self.asked.popleft()
        is_free = now >= self.rests_until and len(self.asked) < self.resources.config.judge_per_minute
        if is_free:
            self.asked.append(now)
        return is_free

    async def _judge_all(self, message_ids: Sequence[str]) -> None:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(message_id: str) -> None:
            async with room:
                await self._judge(message_id)

        await asyncio.gather(*map(one, message_ids))

    async def _judge(self, message_id: str) -> None:
        message = await self.resources.db.read(messages.find, message_id)
        if message is None:
            return
        opinion = await self._ask(documents.decode(message.document))
        if opinion is not None:
            base_url, now = self.resources.config.base_url, self.resources.now()
            bells = await self.resources.db.write(record_opinion, message_id, opinion, base_url, now)
            self.resources.db.ring(*bells)

    async def _ask(self, document: documents.Document) -> Opinion | None:
        config = self.resources.config
        headers = {"Content-Type": "application/json"}
        if config.judge_key:
            headers["Authorization"] = f"Bearer {config.judge_key}"
        question = to_question(document, config.judge_url, config.judge_model)
        try:
            answer = await self.fetcher.fetch("POST", config.judge_url, headers, question, ANSWER_BYTES)
        except FetchError as error:
            self._record_failure(str(error))
            return None
        if answer.status != 200:
            self._record_failure(f"It answered {answer.status}.")
            return None
        self.failures = 0
        return read_opinion(answer.body, config.judge_url)

    def _record_failure(self, reason: str) -> None:
        self.failures += 1
        log.get().error("the judge gave no answer", reason=reason, failures=self.failures)
        if self.failures >= FAILURES_IN_A_ROW:
            self.failures = 0
            self.rests_until = asyncio.get_running_loop().time() + REST_SECONDS


def record_opinion(tx: Tx, message_id: str, opinion: Opinion, base_url: str, now: int) -> list[str]:
    """Record the model's opinion once per email. The verdict gets worse or stays; no finding is removed."""
    message = messages.find(tx, message_id)
    inbox = None if message is None else inboxes.find(tx, message.inbox_id)
    if message is None or inbox is None:
        return []
    document = screening.with_opinion(documents.decode(message.document), opinion.verdict, opinion.reason)
    if document is None:
        return []
    messages.set_document(tx, document)
    threads.record_verdict(tx, message.thread_id, document.verdict)
    holds.raise_risk(tx, message.thread_id, document.verdict)
    files = attachments.list_of_messages(tx, [message.id]).get(message.id, [])
    news = NewEvent(inbox.account_id, inbox.pod_id, kinds.MESSAGE_JUDGED, document, files, now)
    return announce.announce(tx, news, base_url)
