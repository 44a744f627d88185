"""Links to one file: which emails the tokens in a text give."""

from postroom.mailbox import file_links
from postroom.mailbox.file_links import DOWNLOAD, PATHS, TOKEN_CHARACTERS, NamedFile
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.operations.callers import make_caller
from tests.stored import make_inbox


async def test_a_token_is_found_among_more_than_a_statement_takes(db: Database) -> None:
    """PostgreSQL takes 65,535 values in a statement; SQLite searches each named one among all others."""

    def run(tx: Tx) -> None:
        inbox = make_inbox(tx)
        caller = make_caller(tx, inbox.scope)
        file = NamedFile("a.txt", "text/plain", 3, "msg_1")
        _, path = file_links.add(tx, caller, DOWNLOAD, inbox.id, file, START)
        token = path.removeprefix(PATHS[DOWNLOAD])
        others = [f"{number:0>{TOKEN_CHARACTERS}}" for number in range(70_000)]
        assert file_links.list_message_ids(tx, [*others, token, token[:-1], "x" * 50_000]) == ["msg_1"]
        assert file_links.list_message_ids(tx, others) == []
        assert file_links.list_message_ids(tx, []) == []

    await db.write(run)
