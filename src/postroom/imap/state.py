"""The state of one client: its login, its selected folder, and its capabilities."""

import asyncio

from msgspec import Struct, field

from postroom.accounts.keys import Caller
from postroom.imap.output import ImapOutput
from postroom.imap.view import FolderView
from postroom.inward.examine import Extractor
from postroom.mailbox.inboxes import Inbox
from postroom.net.spool import SpooledContent
from postroom.resources import Resources
from postroom_mail.mime.imap_sections import StructureCache


class ImapState(Struct, eq=False):
    """`idle_ended` ends an IDLE; `wake` is set when the inbox has changed."""

    resources: Resources
    extractor: Extractor
    output: ImapOutput
    caller: Caller | None = None
    inbox: Inbox | None = None
    view: FolderView | None = None
    mail: SpooledContent | None = None  # the email of APPEND
    is_utf8: bool = False
    wants_modseq: bool = False
    idle_ended: asyncio.Event = field(default_factory=asyncio.Event)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    structures: StructureCache = field(default_factory=StructureCache)

    @property
    def who(self) -> tuple[Caller, str]:
        """The logged-in caller and the inbox."""
        assert self.caller is not None, "the dialogue asks only after a login"
        assert self.inbox is not None
        return self.caller, self.inbox.id

    @property
    def selected(self) -> FolderView:
        assert self.view is not None, "the dialogue asks only after SELECT"
        return self.view
