"""Retries: how long to wait after a failed attempt of mail or webhooks, and when to give up."""

import random

from postroom.clock import HOUR, MINUTE, SECOND
from postroom.queue.deliveries import MAIL, NOTICE, WEBHOOK

# Waits after a failed attempt, as specified; when they are used up the delivery has failed.
MAIL_WAITS = (
    1 * MINUTE,
    5 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    1 * HOUR,
    2 * HOUR,
    4 * HOUR,
    8 * HOUR,
    8 * HOUR,
    8 * HOUR,
    8 * HOUR,
    8 * HOUR,
)
WEBHOOK_WAITS = (
    5 * SECOND,
    30 * SECOND,
    2 * MINUTE,
    10 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    6 * HOUR,
    12 * HOUR,
    24 * HOUR,
)
WAITS = {MAIL: MAIL_WAITS, WEBHOOK: WEBHOOK_WAITS, NOTICE: MAIL_WAITS}
SPREAD = 0.2  # waits vary by this part, so that what failed together is not retried together


def wait_after(kind: str, waits_used: int) -> int | None:
    """Return how long to wait before the next attempt; None if no retry is left."""
    waits = WAITS[kind]
    if waits_used >= len(waits):
        return None
    return int(waits[waits_used] * random.uniform(1 - SPREAD, 1 + SPREAD))  # noqa: S311 (no secret)
