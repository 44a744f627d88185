"""The delivery loops: first outcomes left by an earlier run are stored, then due deliveries are claimed."""

from collections.abc import Awaitable, Callable
from functools import partial

from postroom.outward import deliver_mail, deliver_webhook
from postroom.outward.notices import deliver_notice
from postroom.queue import deliveries
from postroom.queue.claims import Claims
from postroom.queue.deliveries import MAIL, NOTICE, WEBHOOK, Delivery
from postroom.queue.queue_loop import Queue, run_queue
from postroom.queue.recording import Recorder
from postroom.resources import Resources

AT_ONCE = {MAIL: 64, WEBHOOK: 100, NOTICE: 8}
# A stop waits so long for work under way: a server that got the final dot may still answer it.
FINISH_SECONDS = 3.0


async def deliver_all(
    resources: Resources, recorder: Recorder, kind: str, deliver: Callable[[Delivery], Awaitable[None]]
) -> None:
    """Runs until cancelled. Stores outcomes of an earlier run first: else those would be delivered again."""
    await recorder.catch_up(
        {
            MAIL: partial(deliver_mail.write_tried, resources),
            WEBHOOK: partial(deliver_webhook.write_tried, resources),
            NOTICE: partial(deliver_notice.write_tried, resources),
        }
    )
    claims = Claims(kind)
    queue = Queue(
        deliveries.BELLS[kind],
        claims.is_any_due,
        claims.claim,
        deliveries.renew,
        AT_ONCE[kind],
        FINISH_SECONDS,
    )
    await run_queue(resources, queue, deliver)
