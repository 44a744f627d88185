"""The people and domains of an account, which strangers imitate."""

from postroom.storage.database import Tx

MOST = 100  # of each kind: the oldest inboxes


def list_colleagues(tx: Tx, inbox_id: str) -> list[str]:
    """List the account's users and inboxes as `Name <address>`, and its verified domains."""
    of_account = "account_id = (select account_id from inboxes where id = :inbox_id)"
    named = tx.all(
        f"select name, email as address from users where {of_account} and name <> '' limit :most",
        inbox_id=inbox_id,
        most=MOST,
    )
    shown = tx.all(
        f"select display_name as name, address from inboxes where {of_account} and display_name is not null"
        " order by created_at, id limit :most",
        inbox_id=inbox_id,
        most=MOST,
    )
    own = tx.all(
        f"select name from domains where {of_account} and verified_at is not null limit :most",
        inbox_id=inbox_id,
        most=MOST,
    )
    people = (f"{row['name']} <{row['address']}>" for row in (*named, *shown))
    return [*people, *(row["name"] for row in own)]
