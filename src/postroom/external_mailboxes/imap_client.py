"""A small IMAP client (RFC 3501, IDLE, MOVE, UIDPLUS, SPECIAL-USE) for following one folder."""

import asyncio
import base64
import re
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime

from msgspec import Struct

from postroom.external_mailboxes.imap_wire import LINE_BYTES, LITERAL_BYTES, ImapError, ImapResponse, ImapWire
from postroom.net.certificate import trusted_authorities
from postroom.processes import pools
from postroom_mail.mime import headers
from postroom_mail.mime.parse import message_id_of

TLS_PORT = 993
CONNECT_SECONDS = 20.0
COMMAND_SECONDS = 60.0
FETCH_SECONDS = 300.0
RESPONSES = 200_000  # to one command
LISTED_AT_ONCE = 2_000
MOST_LISTS = 500  # of one folder, however sparse its UIDs are
ID_BYTES = 4 * 1024 * 1024  # for the Message-IDs of one list
_CODE = re.compile(rb"\[(UIDVALIDITY|UIDNEXT) (\d{1,10})\]", re.I)
_FOLDER_SIZE = re.compile(rb"(\d{1,10}) (EXISTS|EXPUNGE)", re.I)
_UID = re.compile(rb"\bUID (\d{1,10})\b", re.I)
_SIZE = re.compile(rb"RFC822\.SIZE (\d{1,12})\b", re.I)
_DATE = re.compile(rb'INTERNALDATE "([^"]{1,40})"', re.I)
_LIST = re.compile(rb'LIST \(([^)]*)\) (?:"[^"]{0,4}"|NIL) (?:"((?:[^"\\]|\\.)*)"|(\S+))', re.I)
SENT_NAMES = ("Sent", "Sent Items", "Sent Messages", "INBOX.Sent", "[Gmail]/Sent Mail")


class MailServerAddress(Struct, frozen=True):
    """The server of a mailbox: its host, and the only addresses that may be connected to."""

    host: str
    ips: tuple[str, ...]
    port: int
    is_loopback: bool


class OpenFolder(Struct, frozen=True):
    uid_validity: int
    uid_next: int | None


class ListedMail(Struct, frozen=True):
    """An email of the folder, before it is fetched."""

    uid: int
    size_bytes: int
    arrived_at: int  # milliseconds; 0 if the server does not say
    message_id: str = ""  # if it was asked for


class ImapClient:
    def __init__(self, wire: ImapWire) -> None:
        self._wire = wire
        self._number = 0
        self._heard = 0  # responses to the last command
        self._size = 0  # of the folder, in emails
        self._has_grown = False  # since the last complete listing: any answer may report it
        self._features: frozenset[str] = frozenset()
        self._uid_next = 0  # of the open folder, when it was opened; 0 if the server does not say

    def offers(self, feature: str) -> bool:
        return feature in self._features

    async def greet(self, address: MailServerAddress, trusted: Callable[[], ssl.SSLContext]) -> None:
        """Start TLS unless the connection has it already; in the clear only on this machine."""
        greeting = await self._wire.read(CONNECT_SECONDS)
        if greeting.tag != b"*" or greeting.status != "OK":
            raise ImapError("The server did not greet like an IMAP server.")
        await self._ask_features()
        if address.port == TLS_PORT or (address.is_loopback and not self.offers("STARTTLS")):
            return
        if not self.offers("STARTTLS"):
            raise ImapError(f"{address.host} offers no STARTTLS, so the password was not sent. Use port 993.")
        if not address.is_loopback:
            await self.run("STARTTLS")
            await self._wire.start_tls(await pools.ONCE.run(trusted), address.host)
            await self._ask_features()  # what was said before TLS no longer counts

    async def _ask_features(self) -> None:
        found = await self.run("CAPABILITY")
        words = [each.text.decode("ascii", "replace").upper().split() for each in found]
        self._features = frozenset(word for line in words if line[:1] == ["CAPABILITY"] for word in line[1:])

    async def log_in(self, username: str, password: str) -> None:
        secret = base64.b64encode(f"\0{username}\0{password}".encode())
        if self.offers("AUTH=PLAIN") and self.offers("SASL-IR"):
            await self._sign_in(b"AUTHENTICATE PLAIN " + secret)
        else:
            await self._sign_in(b"LOGIN " + quoted(username) + b" " + quoted(password))

    async def log_in_with_token(self, username: str, token: str) -> None:
        secret = base64.b64encode(f"user={username}\1auth=Bearer {token}\1\1".encode())
        await self._sign_in(b"AUTHENTICATE XOAUTH2 " + secret)

    async def _sign_in(self, command: bytes) -> None:
        try:
            await self.run(command)
        except ImapError as error:
            if error.is_refused:
                raise ImapError(
                    f"The server refused the sign-in: {error} Many services want an app password.",
                    is_refused=True,
                ) from None
            raise
        await self._ask_features()

    async def select(self, folder: str, is_changed: bool) -> OpenFolder:
        """Select a folder, read-only unless `is_changed`."""
        found = await self.run((b"SELECT " if is_changed else b"EXAMINE ") + quoted(folder))
        codes: dict[bytes, bytes] = {
            match[1].upper(): match[2] for each in found if (match := _CODE.search(each.text))
        }
        if b"UIDVALIDITY" not in codes:
            raise ImapError(f"The folder {folder} has no UIDVALIDITY.")
        uid_next = codes.get(b"UIDNEXT")
        self._uid_next = int(uid_next or 0)
        return OpenFolder(int(codes[b"UIDVALIDITY"]), None if uid_next is None else int(uid_next))

    async def list_behind(self, last_uid: int, with_ids: bool = False) -> AsyncIterator[list[ListedMail]]:
        """Yield all emails after a UID, in parts: a large folder does not fit into one answer."""
        start, step = last_uid + 1, max(LISTED_AT_ONCE, self._uid_next // MOST_LISTS)
        while start + step < self._uid_next:
            yield await self._describe(start, start + step - 1, with_ids)
            start += step
        self._has_grown = False
        yield await self._describe(start, None, with_ids)

    async def find_newest(self) -> ListedMail | None:
        """Return None if the folder is empty."""
        found = await self.run("UID FETCH * (UID INTERNALDATE)") if self._size else []
        listed = [each for each in map(_listed, found) if each is not None]
        return max(listed, key=lambda each: each.uid, default=None)

    async def _describe(self, first: int, last: int | None, with_ids: bool) -> list[ListedMail]:
        """Return the emails asked for, ordered by UID, whatever else the server sends."""
        wanted = "UID INTERNALDATE RFC822.SIZE"
        if with_ids:
            wanted += " BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)]"
        asked = f"{first}:{'*' if last is None else last}"
        found = await self.run(f"UID FETCH {asked} ({wanted})", FETCH_SECONDS, ID_BYTES if with_ids else 0)
        listed = [each for each in map(_listed, found) if each is not None]
        inside = [each for each in listed if first <= each.uid and (last is None or each.uid <= last)]
        return sorted(inside, key=lambda each: each.uid)

    async def fetch_all(self, uids: Sequence[int], most_bytes: int) -> dict[int, bytes]:
        """Fetch whole emails by one command; deleted ones are left out."""
        wanted = set(uids)
        found: dict[int, bytes] = {}
        for each in await self.run(f"UID FETCH {_set_of(uids)} (UID BODY.PEEK[])", FETCH_SECONDS, most_bytes):
            match = _UID.search(each.text)
            if match is not None and int(match[1]) in wanted and each.literals:
                found[int(match[1])] = each.literals[0]
        return found

    async def mark_seen(self, uids: Sequence[int]) -> None:
        await self.run(f"UID STORE {_set_of(uids)} +FLAGS.SILENT (\\Seen)")

    async def move(self, uids: Sequence[int], folder: str) -> None:
        moved = _set_of(uids)
        if self.offers("MOVE"):
            await self.run(f"UID MOVE {moved} ".encode() + quoted(folder))
            return
        if not self.offers("UIDPLUS"):
            raise ImapError("The server cannot move mail. Choose after: seen, or leave.", is_refused=True)
        await self.run(f"UID COPY {moved} ".encode() + quoted(folder))
        await self.run(f"UID STORE {moved} +FLAGS.SILENT (\\Deleted)")
        await self.run(f"UID EXPUNGE {moved}")

    async def find_sent_folder(self) -> str | None:
        """Find by its special use (RFC 6154), else by a common name."""
        folders: dict[str, bytes] = {}
        for each in await self.run('LIST "" "*"'):
            if (match := _LIST.match(each.text)) is not None:
                name = (match[2] or match[3] or b"").replace(b'\\"', b'"').replace(b"\\\\", b"\\")
                folders[name.decode("utf-8", "replace")] = match[1].lower()
        by_use = next((name for name, flags in folders.items() if b"\\sent" in flags.split()), None)
        return by_use or next((name for name in SENT_NAMES if name in folders), None)

    async def append(self, folder: str, raw: bytes) -> None:
        tag = await self._send(b"APPEND " + quoted(folder) + b" (\\Seen) {%d}" % len(raw))
        while (found := await self._receive(COMMAND_SECONDS)).tag != b"+":
            _require_ok(found, tag)
        await self._wire.send(raw + b"\r\n", FETCH_SECONDS)
        while (found := await self._receive(FETCH_SECONDS)).tag != tag:
            pass
        _require_ok(found, tag)

    async def wait_for_mail(self, seconds: float) -> None:
        """Wait until the folder has grown since it was listed, or the time is over (RFC 2177)."""
        if self._has_grown:
            return
        tag = await self._send(b"IDLE")
        while (found := await self._receive(COMMAND_SECONDS)).tag != b"+":
            _require_ok(found, tag)
        ends_at = asyncio.get_running_loop().time() + seconds
        while not self._has_grown and (left := ends_at - asyncio.get_running_loop().time()) > 0:
            try:
                async with asyncio.timeout(left):
                    found = await self._receive(seconds + COMMAND_SECONDS, 0)
            except TimeoutError:
                break
            _require_ok(found, tag)
        await self._wire.send(b"DONE\r\n", COMMAND_SECONDS)
        while (found := await self._receive(COMMAND_SECONDS, 0)).tag != tag:
            _require_ok(found, tag)

    async def run(
        self, command: str | bytes, seconds: float = COMMAND_SECONDS, literal_bytes: int = LINE_BYTES
    ) -> list[ImapResponse]:
        """Return the untagged responses to a command; raises ImapError unless it ends with OK."""
        tag = await self._send(command.encode() if isinstance(command, str) else command)
        found: list[ImapResponse] = []
        left = literal_bytes
        while (each := await self._receive(seconds, left)).tag != tag:
            _require_ok(each, tag)
            if each.tag == b"+":
                await self._wire.send(
                    b"\r\n", COMMAND_SECONDS
                )  # a refusal of XOAUTH2 comes after an empty answer
                continue
            left -= sum(map(len, each.literals))
            found.append(each)
        _require_ok(each, tag)
        return [*found, each]

    async def _send(self, command: bytes) -> bytes:
        self._number += 1
        self._heard = 0
        tag = b"a%d" % self._number
        await self._wire.send(tag + b" " + command + b"\r\n", COMMAND_SECONDS)
        return tag

    async def _receive(self, seconds: float, literal_bytes: int = LITERAL_BYTES) -> ImapResponse:
        self._heard += 1
        if self._heard > RESPONSES:
            raise ImapError("The server's answer does not end.")
        found = await self._wire.read(seconds, literal_bytes)
        self._record_size(found.text)
        return found

    def _record_size(self, text: bytes) -> None:
        """Record a change of the size, which some servers repeat needlessly."""
        if (match := _FOLDER_SIZE.fullmatch(text)) is None:
            return
        if match[2].upper() == b"EXPUNGE":
            self._size -= 1
        elif int(match[1]) != self._size:
            self._size = int(match[1])
            self._has_grown = True

    async def log_out(self) -> None:
        try:
            await self._send(b"LOGOUT")
        except ImapError:
            pass
        finally:
            self._wire.close()

    def close(self) -> None:
        self._wire.close()


def _require_ok(found: ImapResponse, tag: bytes) -> None:
    words = found.text.decode("utf-8", "replace")[:300]
    if found.tag == b"*" and found.status == "BYE":
        raise ImapError(f"The server ended the connection: {words}.")
    if found.tag == tag and found.status != "OK":
        raise ImapError(words, is_refused=True)
    if found.tag not in (b"*", b"+", tag):
        raise ImapError("The server does not speak IMAP.")


def _listed(found: ImapResponse) -> ListedMail | None:
    uid, size, date = _UID.search(found.text), _SIZE.search(found.text), _DATE.search(found.text)
    if uid is None or b"FETCH" not in found.text.upper():
        return None
    return ListedMail(
        int(uid[1]),
        0 if size is None else int(size[1]),
        0 if date is None else _moment(date[1]),
        message_id_of(headers.split(found.literals[0], 0).headers) if found.literals else "",
    )


def _moment(written: bytes) -> int:
    try:
        found = datetime.strptime(written.decode("ascii").strip(), "%d-%b-%Y %H:%M:%S %z")
    except (ValueError, OverflowError):
        return 0
    return max(0, int(found.timestamp() * 1000))


def quoted(text: str) -> bytes:
    if any(character in text for character in "\r\n\0"):
        raise ImapError("A name or a password must not contain a line break.", is_refused=True)
    return b'"' + text.replace("\\", "\\\\").replace('"', '\\"').encode() + b'"'


async def open_client(
    address: MailServerAddress, trusted: Callable[[], ssl.SSLContext] = trusted_authorities
) -> ImapClient:
    """Return a client, connected and encrypted, to the first address that answers."""
    context = await pools.ONCE.run(trusted) if address.port == TLS_PORT else None
    failure = "it has no address"
    for ip in address.ips:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    ip,
                    address.port,
                    ssl=context,
                    server_hostname=address.host if context else None,
                    limit=LINE_BYTES,
                )
        except (OSError, UnicodeError) as error:  # ssl.SSLError and TimeoutError are OSErrors
            failure = str(error) or type(error).__name__
            continue
        client = ImapClient(ImapWire(reader, writer))
        try:
            await client.greet(address, trusted)
        except BaseException:
            client.close()
            raise
        return client
    raise ImapError(f"No connection to {address.host}:{address.port}: {failure}.")


def _set_of(uids: Sequence[int]) -> str:
    return ",".join(map(str, uids))
