"""The loop that carries out jobs: one node of several, in short transactions, on from where one died."""

from contextlib import closing

from postroom import log
from postroom.clock import SECOND
from postroom.mailbox import jobs
from postroom.queue import leader_leases
from postroom.queue.queue_loop import IDLE_SECONDS
from postroom.resources import Resources
from postroom.upkeep import orphans
from postroom.upkeep.erasure import erase_contact

LEASE = "jobs"
LEASE_HELD = 20 * SECOND


async def run_jobs(resources: Resources) -> None:
    """Runs until cancelled."""
    with closing(resources.db.listen(jobs.BELL)) as subscription:
        while True:
            for job_id in await resources.db.read(jobs.list_running):
                await carry_out(resources, job_id)
            resources.loops.works("jobs")
            await subscription.wait(IDLE_SECONDS)


async def carry_out(resources: Resources, job_id: str) -> None:
    """Go on with a job until it is over, while this node has the lease. One that fails is tried again."""
    is_over = False
    while not is_over and await leader_leases.hold(resources, LEASE, LEASE_HELD):
        until = resources.now() + LEASE_HELD // 2
        while not is_over and resources.now() < until:
            try:
                step = await resources.db.write(erase_contact.take_step, job_id, resources.now())
            except Exception:
                log.get().exception("a job failed; it is tried again", job=job_id)
                return
            await orphans.remove_blobs(resources, step.blobs)
            is_over = step.is_over
