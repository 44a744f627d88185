"""Links of this server in a send: whoever has one gets a file, or a whole email, without a key.

Also without a host, and of a link to download a file its token alone.
"""

import re
import string
from collections.abc import Iterable, Iterator
from itertools import islice

from postroom.mailbox import documents, file_links, messages
from postroom.mailbox.documents import Document
from postroom.storage.database import Tx
from postroom_mail.screening import values as mail_values
from postroom_mail.screening.values import LINK, TOKEN, Value

MOST_LINKS = 20
TOKEN_CHARACTERS = 43  # of 32 bytes, as `file_links` makes them
_TOKEN = re.compile(r"(?<![\w-])[\w-]{43,60}(?![\w-])")
_LETTERS = (string.ascii_letters + string.digits + "_-").encode()
_RUNS = bytes(97 if each in _LETTERS else 32 for each in range(256))
_LONG_RUN = b"a" * TOKEN_CHARACTERS
_SIGNED = re.compile(r"/v1/(?:attachments|messages)/msg_[0-9a-z]{1,64}/[^\s\"'<>]*+")
_OF_A_MESSAGE = re.compile(r"/v1/(?:attachments|messages)/(msg_[0-9a-z]{1,64})(?:/|\Z)")
_OF_A_DOWNLOAD = re.compile(r"/downloads/([\w-]{20,100})\Z")
_ENDS = ("", "_", "__", "-")  # of a token, which a reader of texts takes for punctuation


def links_in(texts: Iterable[str]) -> Iterator[Value]:
    """Yield links in these texts that stand there without a host, and what may be the token of one."""
    for text in texts:
        for found in _TOKEN.finditer(text) if _may_have_token(text) else ():
            for token in {found[0][:TOKEN_CHARACTERS], found[0][-TOKEN_CHARACTERS:]}:
                yield Value(TOKEN, f"{TOKEN}:{token}", token)
        for found in _SIGNED.finditer(text):
            path, _, query = found[0].partition("?")
            if "signature=" in query:
                yield Value(LINK, f"{LINK}:{path}", path[: mail_values.SHOWN_CHARACTERS])


def _may_have_token(text: str) -> bool:
    """Return whether there are so many letters of a token in a row: many times as fast as the pattern."""
    return _LONG_RUN in text.encode("ascii", "replace").translate(_RUNS)


def _whole(written: str) -> Iterator[str]:
    """Yield what a token may be of which the end was taken for punctuation."""
    return (f"{written}{end}" for end in _ENDS if len(written) + len(end) == TOKEN_CHARACTERS)


def emails_behind(tx: Tx, values: Iterable[Value]) -> Iterator[Document]:
    """Yield the messages whose contents the links among these values give."""
    named: dict[str, None] = {}
    tokens: dict[str, None] = {}
    for value in values:
        if value.kind == LINK and (found := _OF_A_MESSAGE.search(value.key)):
            named[found[1]] = None
        elif value.kind == LINK and (found := _OF_A_DOWNLOAD.search(value.key)):
            tokens |= dict.fromkeys(_whole(found[1]))
        elif value.kind == TOKEN:
            tokens |= dict.fromkeys(_whole(value.shown))
    found_ids = (*named, *file_links.list_message_ids(tx, list(tokens)))
    for message_id in islice(dict.fromkeys(found_ids), MOST_LINKS):
        if (message := messages.find(tx, message_id)) is not None:
            yield documents.decode(message.document)
