"""Jobs: long work that a request began, done in steps by one node. The row says how far it is."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from postroom import ids
from postroom.accounts import actors
from postroom.accounts.actors import Actor
from postroom.accounts.scope import Scope
from postroom.errors import no_such
from postroom.storage.database import LOCK_ROWS, Row, Tx, insert, item_from_row, update

ERASE_CONTACT = "contact.erase"
WAITING, RUNNING, DONE, CANCELLED = "waiting", "running", "done", "cancelled"
BELL = "jobs"
RUNNING_AT_ONCE = 100


class Job(Struct, frozen=True):
    id: str
    account_id: str
    pod_id: str | None  # set: it works on this pod alone
    kind: str
    subject: str  # the address, or its hash once that is erased
    actor: Actor
    person: str  # who asked: another one has to confirm, if the account wants that
    state: str
    position: str  # JSON: where the work goes on
    done: int
    total: int
    result: dict[str, int]
    created_at: int
    finished_at: int | None = None

    @property
    def scope(self) -> Scope:
        return Scope(self.account_id, self.pod_id)

    @classmethod
    def from_row(cls, row: Row) -> "Job":
        actor = actors.decode(row["actor"])
        assert actor is not None
        return item_from_row(
            cls, row, actor=actor, result=msgspec.json.decode(row["result"], type=dict[str, int])
        )


def add(
    tx: Tx,
    scope: Scope,
    kind: str,
    subject: str,
    actor: Actor,
    person: str,
    total: int,
    now: int,
    *,
    is_waiting: bool,
) -> Job:
    job = Job(
        id=ids.new(ids.JOB, now),
        account_id=scope.account_id,
        pod_id=scope.pod_id,
        kind=kind,
        subject=subject,
        actor=actor,
        person=person,
        state=WAITING if is_waiting else RUNNING,
        position="{}",
        done=0,
        total=total,
        result={},
        created_at=now,
    )
    names = [name for name in Job.__struct_fields__ if name not in ("actor", "result")]
    columns = {name: getattr(job, name) for name in names}
    insert(tx, "jobs", actor=actors.encode(actor), result="{}", **columns)
    tx.ring(BELL)
    return job


def get(tx: Tx, scope: Scope, job_id: str) -> Job:
    row = tx.one("select * from jobs where id = :id", id=job_id) if ids.is_id(ids.JOB, job_id) else None
    job = None if row is None else Job.from_row(row)
    if job is None or not scope.includes(job.scope):
        raise no_such("job")
    return job


def find_unfinished(tx: Tx, scope: Scope, kind: str, subject: str) -> Job | None:
    rows = tx.all(
        "select * from jobs where account_id = :account_id and subject = :subject and finished_at is null"
        " order by created_at, id",
        account_id=scope.account_id,
        subject=subject,
    )
    found = [job for row in rows if (job := Job.from_row(row)).kind == kind and job.pod_id == scope.pod_id]
    return found[0] if found else None


def list_running(tx: Tx) -> list[str]:
    rows = tx.all(
        "select id from jobs where state = :state order by created_at, id limit :limit",
        state=RUNNING,
        limit=RUNNING_AT_ONCE,
    )
    return [row["id"] for row in rows]


def lock(tx: Tx, job_id: str) -> Job | None:
    """Lock a job.

    Until the transaction ends, no other node continues it and nobody confirms or cancels it.
    """
    row = tx.one(f"select * from jobs where id = :id {LOCK_ROWS}", id=job_id)
    return None if row is None else Job.from_row(row)


def start(tx: Tx, job: Job) -> None:
    update(tx, "jobs", job.id, state=RUNNING)
    tx.ring(BELL)


def cancel(tx: Tx, job: Job, subject: str, now: int) -> None:
    update(tx, "jobs", job.id, state=CANCELLED, subject=subject, finished_at=now)


def advance(tx: Tx, job: Job, position: str, done: int, counts: Mapping[str, int]) -> dict[str, int]:
    """Record how far the job has come. Return all counts so far."""
    result = {name: job.result.get(name, 0) + counts.get(name, 0) for name in {**job.result, **counts}}
    done += job.done
    update(
        tx,
        "jobs",
        job.id,
        position=position,
        done=done,
        total=max(job.total, done),
        result=msgspec.json.encode(result, order="sorted").decode(),
    )
    return result


def finish(tx: Tx, job: Job, subject: str, now: int) -> None:
    update(tx, "jobs", job.id, state=DONE, subject=subject, finished_at=now)
    tx.run("update jobs set total = done where id = :id", id=job.id)
