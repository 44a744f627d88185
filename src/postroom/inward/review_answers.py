"""Mailed answers of reviewers, kept until their author is verified."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from postroom import ids
from postroom.accounts import secret_values
from postroom.mailbox import messages
from postroom.queue import deliveries, leases
from postroom.queue.leases import WorkTable
from postroom.storage.database import Row, Tx, item_from_row
from postroom_mail.writing import review_path
from postroom_mail.writing.review_path import ReviewPath

BELL = "review answers"
ANSWERS = WorkTable("review_answers", key="id")
REVIEW = secret_values.REVIEW


class Reviewed(Struct, frozen=True):
    """The held message that a reviewer was asked about."""

    inbox_id: str
    message_id: str
    reviewer: str


def find_reviewed(tx: Tx, local_part: str) -> Reviewed | None:
    """Return the message that an answer to this address is about, if we signed the address."""
    path = review_path.decode(secret_values.get(tx, REVIEW), local_part[len(review_path.PREFIX) :])
    message = None if path is None else messages.find(tx, path.message_id)
    reviewer = None if path is None else find_reviewer(tx, path)
    if message is None or reviewer is None:
        return None
    return Reviewed(message.inbox_id, message.id, reviewer)


def find_reviewer(tx: Tx, path: ReviewPath) -> str | None:
    """Return the notified reviewer that the path names."""
    notices = deliveries.list_of_message(tx, path.message_id, deliveries.NOTICE)
    return next((delivery.target for delivery in notices if path.is_of(delivery.target)), None)


class ReviewAnswer(Struct, frozen=True):
    id: str
    message_id: str
    reviewer: str
    from_address: str
    first_line: str
    is_automated: bool
    peer_ip: str
    helo: str
    mail_from: str
    content: bytes
    due_at: int

    @classmethod
    def from_row(cls, row: Row) -> "ReviewAnswer":
        return item_from_row(cls, row, is_automated=bool(row["is_automated"]), content=bytes(row["content"]))


def new_id(now: int) -> str:
    return ids.new(ids.REVIEW_ANSWER, now)


def add_all(tx: Tx, new: Iterable[ReviewAnswer]) -> None:
    tx.many(
        "insert into review_answers (id, message_id, reviewer, from_address, first_line, is_automated,"
        " peer_ip, helo, mail_from, content, due_at) values :rows",
        [
            (
                each.id,
                each.message_id,
                each.reviewer,
                each.from_address,
                each.first_line,
                int(each.is_automated),
                each.peer_ip,
                each.helo,
                each.mail_from,
                each.content,
                each.due_at,
            )
            for each in new
        ],
    )


def is_due(tx: Tx, now: int) -> bool:
    return leases.is_due(tx, ANSWERS, now)


def claim_due(tx: Tx, running: Sequence[ReviewAnswer], limit: int, now: int) -> list[ReviewAnswer]:
    return [ReviewAnswer.from_row(row) for row in leases.claim_due(tx, ANSWERS, limit, now)]


def renew(tx: Tx, running: Sequence[ReviewAnswer], now: int) -> None:
    leases.renew(tx, ANSWERS, [answer.id for answer in running], now)


def remove(tx: Tx, answer_id: str) -> bool:
    """Return False if another node removed it first."""
    return leases.remove(tx, ANSWERS, answer_id)
