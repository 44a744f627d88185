"""Creates the aliases that an export names."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from postroom.accounts.scope import Scope
from postroom.config import Config
from postroom.errors import ApiError, BadRequest
from postroom.mailbox import inboxes
from postroom.operations import addresses, operator
from postroom.operations.addresses import NewAlias
from postroom.storage.database import Tx
from postroom_mail.mime.address import mailbox_of

NAMED = 10


def create_all(tx: Tx, wanted: Mapping[str, Sequence[str]], config: Config, now: int) -> int:
    """Return how many aliases of these inboxes are new. Raise an error with all that are refused, if any is.

    The inboxes exist. An alias that its inbox has already stays.
    """
    count, refused = 0, list[str]()
    for owner, aliases in wanted.items():
        inbox = inboxes.find_by_address(tx, mailbox_of(owner))
        assert inbox is not None
        caller = replace(operator.by_command(tx), account_id=inbox.account_id, scope=Scope(inbox.account_id))
        for alias in aliases:
            if alias in inbox.own_addresses:
                continue
            try:
                addresses.create_alias(tx, caller, inbox.id, NewAlias(alias), config, now)
                count += 1
            except ApiError as error:
                refused.append(f"{alias[:100]} of {owner}: {error}")
    if refused:
        more = [] if len(refused) <= NAMED else [f"And {len(refused) - NAMED} more."]
        raise BadRequest(
            "\n".join(
                (
                    "Nothing was imported, because aliases of the export cannot be created here:",
                    *refused[:NAMED],
                    *more,
                    "Solve this and import again, or import the email alone with --no-aliases.",
                )
            )
        )
    return count
