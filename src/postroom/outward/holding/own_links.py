"""Links of this server in a send: whoever has one gets a file, or a whole email, without a key."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from postroom.mailbox import documents, file_links, messages
from postroom.mailbox.documents import Document
from postroom.storage.database import Tx
from postroom_mail.screening.values import LINK, Value

MOST_LINKS = 20
_OF_A_MESSAGE = re.compile(r"/v1/(?:attachments|messages)/(msg_[0-9a-z]{1,64})(?:/|\Z)")
_OF_A_DOWNLOAD = re.compile(r"/downloads/([\w-]{20,100})\Z")
_ENDS = ("", "_", "__", "-")  # of a token, which a reader of texts takes for punctuation


def emails_behind(tx: Tx, values: Iterable[Value]) -> Iterator[Document]:
    """Yield the messages whose contents the links among these values give."""
    found = dict.fromkeys(each for value in values if value.kind == LINK for each in _ids_in(tx, value.key))
    for message_id in islice(found, MOST_LINKS):
        if (message := messages.find(tx, message_id)) is not None:
            yield documents.decode(message.document)


def _ids_in(tx: Tx, link: str) -> Iterator[str]:
    if named := _OF_A_MESSAGE.search(link):
        yield named[1]
    elif download := _OF_A_DOWNLOAD.search(link):
        yield from filter(None, (file_links.find_message_id(tx, f"{download[1]}{end}") for end in _ENDS))
