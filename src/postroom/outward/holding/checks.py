"""Whether an email may leave now: checked when it is accepted, and again before every attempt."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, structs

from postroom import ids
from postroom.accounts import permissions
from postroom.accounts.rules import approval, pauses, policy
from postroom.accounts.rules.pauses import IS_PAUSED
from postroom.accounts.rules.policy import HAS_POLICY, PolicyRefusal
from postroom.accounts.scope import Scope
from postroom.errors import RecipientNotAllowed, RecipientSuppressed
from postroom.mailbox.holds import KEY_REVOKED, PAUSED, Hold
from postroom.queue import suppressions
from postroom.storage.database import Row, Tx

# Columns of `messages` joined with its inbox: all checks except suppressions.
INPUT_COLUMNS = (
    "inboxes.account_id, inboxes.pod_id, messages.inbox_id, messages.key_id,"
    f" {HAS_POLICY} as has_policy, {IS_PAUSED} as is_paused,"
    " (select keys.permissions from keys where keys.id = messages.key_id) as key_permissions,"
    " exists (select 1 from follow_ups where follow_ups.sent_id = messages.id"
    " and follow_ups.state = 'cancelled') as is_needless"
)
# Whether one address, `:target`, is suppressed.
SUPPRESSED_AS = (
    "(select suppressions.type from suppressions where suppressions.account_id = inboxes.account_id"
    " and suppressions.address in (:target, :hashed_target)) as suppressed_as"
)


class SendCheckInput(Struct, frozen=True, kw_only=True):
    """An email that would leave, and the rules that apply now. No defaults, so that none is forgotten."""

    within: Scope
    addresses: Sequence[str]
    has_policy: bool
    suppressed: Mapping[str, str]  # why, by address
    key: str | None  # the reason against the sending key, if any
    is_paused: bool
    is_needless: bool  # a nudge that waited, and whose answer has come


class RecipientRefusal(Struct, frozen=True):
    """An address that an email may not go to, and the error for a caller who asks now."""

    address: str
    error: RecipientNotAllowed | RecipientSuppressed
    by_policy: PolicyRefusal | None = None

    @property
    def reason(self) -> str:
        """The error text for the failed recipient."""
        return f"5.7.1 {self.error.code}: {self.error.message}"


class SendCheck(Struct, frozen=True):
    """Recipients that are refused, and reasons to wait; without either the email may leave."""

    refusals: tuple[RecipientRefusal, ...]
    waits: tuple[str, ...]

    @property
    def is_free(self) -> bool:
        return not self.refusals and not self.waits

    @property
    def needs_a_person(self) -> bool:
        return any(reason != PAUSED for reason in self.waits)


def judge_all(tx: Tx, asked: Sequence[SendCheckInput]) -> list[SendCheck]:
    """The only place that orders the checks: policy, suppression, key, pause."""
    by_policy = _find_policy_refusals(tx, asked)
    return [
        SendCheck(
            refusals=(
                *_refused_by_policy(each, by_policy),
                *_refused_as_suppressed(each),
                *_refused_as_needless(each),
            ),
            waits=(*((each.key,) if each.key else ()), *((PAUSED,) if each.is_paused else ())),
        )
        for each in asked
    ]


def require_allowed(clearances: Iterable[SendCheck]) -> None:
    """Raises the first refusal."""
    for send_check in clearances:
        if send_check.refusals:
            raise send_check.refusals[0].error


def _find_policy_refusals(tx: Tx, asked: Sequence[SendCheckInput]) -> dict[tuple[Scope, str], PolicyRefusal]:
    restricted = [(each.within, each.addresses) for each in asked if each.has_policy]
    found = policy.find_refusals(tx, policy.OUTBOUND, restricted) if restricted else []
    return {(refusal.within, refusal.address): refusal for refusal in found}


def _refused_by_policy(
    check_input: SendCheckInput, found: Mapping[tuple[Scope, str], PolicyRefusal]
) -> Iterable[RecipientRefusal]:
    for address in check_input.addresses:
        if (refusal := found.get((check_input.within, address))) is not None:
            yield RecipientRefusal(
                address,
                RecipientNotAllowed(
                    f"The policy does not let this inbox write to {address}.",
                    recipient=address,
                    inboxId=check_input.within.inbox_id,
                ),
                refusal,
            )


def _refused_as_suppressed(check_input: SendCheckInput) -> Iterable[RecipientRefusal]:
    for address in check_input.addresses:
        if (kind := check_input.suppressed.get(address)) is not None:
            yield RecipientRefusal(
                address,
                RecipientSuppressed(
                    f"{address} is on the suppression list ({kind})."
                    " DELETE /v1/suppressions/{address} removes it.",
                    type=kind,
                    recipient=address,
                ),
            )


def _refused_as_needless(check_input: SendCheckInput) -> Iterable[RecipientRefusal]:
    if check_input.is_needless:
        error = "The thread needs this follow-up no more: it was answered or ended before this left."
        for address in check_input.addresses:
            yield RecipientRefusal(address, RecipientNotAllowed(error, recipient=address))


def cannot_be_shown(address: str, inbox_id: str, seal: str) -> RecipientRefusal:
    """For a signed or encrypted email that a person would have to approve: its bytes are not all shown."""
    error = RecipientNotAllowed(
        f"This email is {seal} and now needs approval. Only an email that is readable here can be approved.",
        recipient=address,
        inboxId=inbox_id,
    )
    return RecipientRefusal(address, error)


def judge(tx: Tx, message_id: str, addresses: Sequence[str], excused: str) -> SendCheck:
    """Checks an email that was accepted before.

    A pause found here cannot end before the transaction does: its end wakes what it held.
    """
    row = tx.one(
        f"select {INPUT_COLUMNS} from messages join inboxes on inboxes.id = messages.inbox_id"
        " where messages.id = :id",
        id=message_id,
    )
    if row is None:
        return SendCheck(refusals=(), waits=())
    pairs = [(row["account_id"], address) for address in addresses]
    suppressed = {address: kind for (_, address), kind in suppressions.find_all(tx, pairs).items()}
    check_input = to_check_input(row, addresses, suppressed, excused)
    if check_input.is_paused and not pauses.is_inbox_paused(tx, row["inbox_id"]):
        check_input = structs.replace(check_input, is_paused=False)
    return judge_all(tx, [check_input])[0]


def to_check_input(
    row: Row, addresses: Sequence[str], suppressed: Mapping[str, str], excused: str
) -> SendCheckInput:
    """From a row with the columns of `INPUT_COLUMNS`."""
    return SendCheckInput(
        within=Scope(row["account_id"], row["pod_id"], row["inbox_id"]),
        addresses=addresses,
        has_policy=bool(row["has_policy"]),
        suppressed=suppressed,
        key=against_key(row["key_id"], row["key_permissions"], excused),
        is_paused=bool(row["is_paused"]),
        is_needless=bool(row["is_needless"]),
    )


def against_key(key_id: str | None, allowed: str | None, excused: str) -> str | None:
    """`excused` is the reason that the approver already accepted. A key that merely expired is no reason."""
    if key_id is None or not ids.is_id(ids.KEY, key_id):
        return None
    if allowed is None:
        reason = KEY_REVOKED
    elif permissions.SEND not in allowed.split():
        reason = approval.KEY
    else:
        return None
    return None if reason == excused else reason


def find_excuse(tx: Tx, hold: Hold) -> str:
    """Return what an approval now excuses: that the key was revoked, or may no longer send."""
    row = tx.one("select permissions from keys where id = :id", id=hold.key_id)
    return against_key(hold.key_id, None if row is None else row["permissions"], "") or ""
