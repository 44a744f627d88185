"""Performs the requests of one client."""

from postroom.accounts.permissions import READING
from postroom.errors import ApiError, Forbidden
from postroom.imap import appending, changing, listing, watching
from postroom.imap.dialogue.effects import Performed
from postroom.imap.dialogue.requests import (
    AppendMail,
    AskStatus,
    CopyMails,
    CreateFolder,
    DeleteFolder,
    EnableExtensions,
    ExpungeMails,
    FetchMails,
    ListFolders,
    LogIn,
    PlainCommand,
    RenameFolder,
    Request,
    SearchMails,
    SelectFolder,
    StoreFlags,
    UnselectFolder,
)
from postroom.imap.reading import fetching, searching
from postroom.imap.state import ImapState
from postroom.operations.folders import names
from postroom.operations.folders.names import FolderRefused
from postroom.resources import Overdue

# Response codes by the status of the error (RFC 5530 section 3; TOOBIG: RFC 4469).
WORDS = {401: "AUTHENTICATIONFAILED", 403: "NOPERM", 404: "NONEXISTENT", 413: "TOOBIG", 503: "UNAVAILABLE"}


class ImapSession:
    """Performs requests, one at a time."""

    def __init__(self, state: ImapState) -> None:
        self.state = state

    async def perform(self, request: Request) -> Performed:
        return Performed(
            await self._reply(request), self.state.inbox is not None, self.state.view is not None
        )

    async def _reply(self, request: Request) -> bytes:
        try:
            return await self._perform(request)
        except FolderRefused as error:
            return _no(error.word, error.message)
        except ApiError as error:
            return _no(WORDS.get(error.status, "CANNOT"), error.message)
        except Overdue:
            return _no("LIMIT", "This takes too long. Ask for less.")

    async def _perform(self, request: Request) -> bytes:
        match request:
            case LogIn():
                return await self._log_in(request)
            case ListFolders():
                return await listing.list_folders(self.state, request)
            case AskStatus():
                return await listing.ask_status(self.state, request)
            case SelectFolder():
                return await listing.select(self.state, request)
            case CreateFolder() | DeleteFolder() | RenameFolder():
                return await changing.change_folders(self.state, request)
            case AppendMail():
                return await appending.append(self.state, request)
            case FetchMails():
                return await fetching.fetch(self.state, request)
            case SearchMails():
                return await searching.search(self.state, request)
            case StoreFlags() | CopyMails() | ExpungeMails() | UnselectFolder():
                return await changing.perform(self.state, request)
            case EnableExtensions():
                return self._enable(request)
            case PlainCommand("IDLE"):
                return await watching.idle(self.state)
        if self.state.view is not None:
            await listing.write_changes(self.state)
        return b"OK Done."

    async def _log_in(self, request: LogIn) -> bytes:
        db, now = self.state.resources.db, self.state.resources.now()
        try:
            caller, inbox = await db.read(names.log_in, request.name, request.password, READING, now)
        except Forbidden as error:
            return _no("AUTHORIZATIONFAILED", error.message)
        await db.write(names.open_folders, caller, inbox.id, now)
        self.state.caller, self.state.inbox = caller, inbox
        return b"OK You are logged in."

    def _enable(self, request: EnableExtensions) -> bytes:
        """Enable CONDSTORE (RFC 7162) and UTF8=ACCEPT (RFC 6855).

        Unknown names are ignored (RFC 5161, 3.1).
        """
        taken = [name for name in request.names if name in ("CONDSTORE", "UTF8=ACCEPT")]
        listing.want_modseq(self.state, "CONDSTORE" in taken)
        self.state.is_utf8 = self.state.is_utf8 or "UTF8=ACCEPT" in taken
        self.state.output.write(" ".join(["* ENABLED", *taken]).encode() + b"\r\n")
        return b"OK Done."


def _no(word: str, message: str) -> bytes:
    return f"NO [{word}] {message}".encode("ascii", "replace").replace(b"\r", b" ").replace(b"\n", b" ")
