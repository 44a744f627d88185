"""Operations on jobs: how far one is, and the second person who confirms an erasure."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from postroom.accounts import audit
from postroom.accounts.audit_erasure import hashed
from postroom.accounts.keys import Caller
from postroom.errors import Forbidden, NothingToDo
from postroom.fields import Timestamp, iso, show_item
from postroom.mailbox import jobs
from postroom.outward.holding import approvers
from postroom.storage.database import Tx

COUNTS = "What was erased, by kind; `kept` counts what a legal hold keeps."


class Job(Struct, rename="camel", frozen=True):
    """`total` is an estimate until it is done."""

    id: str
    kind: Literal["contact.erase"]
    state: Annotated[
        Literal["waiting", "running", "done", "cancelled"],
        Meta(description="waiting: another person has to confirm it."),
    ]
    done: Annotated[int, Meta(description="Rows looked at.")]
    total: int
    result: Annotated[dict[str, int], Meta(description=COUNTS)]
    created_at: Timestamp
    finished_at: Timestamp | None

    @classmethod
    def of(cls, job: jobs.Job) -> "Job":
        return show_item(cls, job, finished_at=iso(job.finished_at))


def get_job(tx: Tx, caller: Caller, job_id: str) -> Job:
    """Get a job: how far it is, and at the end what it did"""
    return Job.of(jobs.get(tx, caller.scope, job_id))


def confirm_job(tx: Tx, caller: Caller, job_id: str, now: int) -> Job:
    """Confirm an erasure that another person asked for"""
    job = _get_waiting(tx, caller, job_id)
    if approvers.of_caller(caller) == job.person:
        raise Forbidden("You asked for this erasure yourself: another person has to confirm it.")
    jobs.start(tx, job)
    audit.record_by(tx, caller, "job.confirmed", job.id, now, within=job.scope)
    return Job.of(jobs.get(tx, caller.scope, job_id))


def cancel_job(tx: Tx, caller: Caller, job_id: str, now: int) -> Job:
    """Cancel an erasure that waits for a second person"""
    job = _get_waiting(tx, caller, job_id)
    jobs.cancel(tx, job, hashed(job.subject), now)
    audit.record_by(tx, caller, "job.cancelled", job.id, now, within=job.scope)
    return Job.of(jobs.get(tx, caller.scope, job_id))


def _get_waiting(tx: Tx, caller: Caller, job_id: str) -> jobs.Job:
    jobs.get(tx, caller.scope, job_id)
    job = jobs.lock(tx, job_id)
    if job is None or job.state != jobs.WAITING:
        raise NothingToDo("This job does not wait for anybody.")
    return job
