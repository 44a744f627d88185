"""The models of accounts: what each teacher's examples added to the start. Read again when one changed."""

from collections import OrderedDict

from msgspec import Struct

from postroom import log
from postroom.storage.database import Tx
from postroom_mail.junk import model
from postroom_mail.junk.model import Model, Taught

ACCOUNTS_KEPT = 16
MOST_TEACHERS = 8  # of one account; those who taught last


class _Known(Struct, frozen=True):
    changes: tuple[tuple[str, int], ...]
    model: Model


_kept: OrderedDict[str, _Known] = OrderedDict()


def find_for_inbox(tx: Tx, inbox_id: str) -> Model:
    """Return the model of the account that the inbox belongs to."""
    rows = tx.all(
        "select junk_models.account_id, teacher, changed_at from inboxes join junk_models"
        " on junk_models.account_id = inboxes.account_id where inboxes.id = :id"
        " order by changed_at desc, teacher limit :most",
        id=inbox_id,
        most=MOST_TEACHERS,
    )
    start = model.load_start()
    if not rows:
        return Model(start)
    account_id, changes = rows[0]["account_id"], tuple((row["teacher"], row["changed_at"]) for row in rows)
    known = _kept.get(account_id)
    if known is None or known.changes != changes:
        taught = tuple(read(tx, account_id, teacher).taught for teacher, _ in changes)
        known = _Known(changes, Model(start, taught))
        _kept[account_id] = known
        while len(_kept) > ACCOUNTS_KEPT:
            _kept.popitem(last=False)
    return known.model


class Learned(Struct, frozen=True):
    """What was learned of one teacher, and when it changed; 0 if nothing was."""

    taught: Taught
    changed_at: int = 0


def read(tx: Tx, account_id: str, teacher: str) -> Learned:
    """Read the weights. Missing or damaged ones are zero."""
    row = tx.one(
        "select weights, agreed, contradicted, changed_at from junk_models"
        " where account_id = :account_id and teacher = :teacher",
        account_id=account_id,
        teacher=teacher,
    )
    if row is None:
        return Learned(Taught(model.no_weights()))
    try:
        taught = Taught(model.decode(row["weights"]), row["agreed"], row["contradicted"])
        return Learned(taught, row["changed_at"])
    except ValueError:
        log.get().error(
            "weights of the junk filter cannot be read; they are learned anew", account=account_id
        )
        return Learned(Taught(model.no_weights()), row["changed_at"])


def find_change(tx: Tx, account_id: str, teacher: str) -> int:
    row = tx.one(
        "select changed_at from junk_models where account_id = :account_id and teacher = :teacher",
        account_id=account_id,
        teacher=teacher,
    )
    return 0 if row is None else int(row["changed_at"])


def store(
    tx: Tx, account_id: str, teacher: str, weights: bytes, agreed: int, contradicted: int, now: int
) -> None:
    tx.run(
        "insert into junk_models (account_id, teacher, weights, agreed, contradicted, changed_at)"
        " values (:account_id, :teacher, :weights, :agreed, :contradicted, :now)"
        " on conflict (account_id, teacher) do update set weights = excluded.weights,"
        " agreed = excluded.agreed, contradicted = excluded.contradicted, changed_at ="
        " case when excluded.changed_at > junk_models.changed_at then excluded.changed_at"
        " else junk_models.changed_at + 1 end",
        account_id=account_id,
        teacher=teacher,
        weights=weights,
        agreed=agreed,
        contradicted=contradicted,
        now=now,
    )


def forget(tx: Tx, account_id: str) -> None:
    tx.run("delete from junk_models where account_id = :account_id", account_id=account_id)
