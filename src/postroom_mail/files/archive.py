"""Documents that are zip files of XML, read as a stream with one budget of unpacked bytes."""

import io
import time
import zipfile
from collections.abc import Iterator
from typing import NamedTuple

from defusedxml.ElementTree import DefusedXMLParser
from msgspec import Struct, field

from postroom_mail.files.outcome import Encrypted

MAX_ENTRIES = 10_000
MAX_UNPACKED_BYTES = 64 * 1024 * 1024
MAX_FILES = 200
# Processor seconds; after that, files inside are only named. The child itself is killed much later.
MAX_SECONDS = 4.0
MAX_TAG_BYTES = 2 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
KNOWN_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
MAGIC = b"PK\x03\x04"
PASSWORD_FLAG = 1


class UnreadableArchive(Exception):
    """Not a zip file that a document program would write."""


class Start(NamedTuple):
    name: str
    attributes: dict[str, str]


class End(NamedTuple):
    name: str


XmlEvent = Start | End | str


class UnpackingBudget(Struct):
    """What a file and all files inside it may cost together."""

    bytes_left: int = MAX_UNPACKED_BYTES
    files_left: int = MAX_FILES
    ends_at: float = field(default_factory=lambda: time.process_time() + MAX_SECONDS)

    def takes_one_more(self) -> bool:
        """Counts one more file inside; returns whether it may be opened."""
        self.files_left -= 1
        return self.files_left >= 0 and time.process_time() < self.ends_at


class Archive(Struct):
    """Members as XML events. When the budget is used up, members just end: what was read so far counts."""

    file: zipfile.ZipFile
    members: dict[str, zipfile.ZipInfo]
    budget: UnpackingBudget

    @classmethod
    def open(cls, content: bytes, budget: UnpackingBudget) -> "Archive":
        file = zipfile.ZipFile(io.BytesIO(content))
        if len(file.filelist) > MAX_ENTRIES:
            raise UnreadableArchive("too many entries")
        return cls(file, {member.filename: member for member in file.filelist}, budget)

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def is_encrypted(self, name: str) -> bool:
        return bool(self.members[name].flag_bits & PASSWORD_FLAG)

    def content(self, name: str, most: int) -> bytes:
        """Return the first bytes of a member; none if there is no such member."""
        content = bytearray()
        for chunk in self.chunks(name):
            content += chunk
            if len(content) >= most:
                break
        return bytes(content[:most])

    def chunks(self, name: str) -> Iterator[bytes]:
        member = self.members.get(name)
        if member is None:
            return
        if self.is_encrypted(name):
            raise Encrypted
        if member.compress_type not in KNOWN_COMPRESSIONS:
            raise UnreadableArchive("unusual compression")
        with self.file.open(member) as stream:
            left = self.budget
            while left.bytes_left > 0 and (chunk := stream.read(min(CHUNK_BYTES, left.bytes_left))):
                left.bytes_left -= len(chunk)
                yield chunk

    def events(self, name: str) -> Iterator[XmlEvent]:
        """Yield the XML of a member, names without namespace. Declarations, hence entities, are refused."""
        target = _Recorder()
        parser = DefusedXMLParser(target=target)
        parser.parser.StartDoctypeDeclHandler = _refuse_declarations
        quiet_bytes = 0
        for chunk in self.chunks(name):
            parser.feed(chunk)
            quiet_bytes = 0 if target.events else quiet_bytes + len(chunk)
            # The parser starts again at the beginning of an unfinished tag with every chunk.
            if quiet_bytes > MAX_TAG_BYTES:
                raise UnreadableArchive("a tag without end")
            yield from target.taken()

    def elements(self, member: str, name: str) -> Iterator[dict[str, str]]:
        """Yield the attributes of each element of this name."""
        for event in self.events(member):
            if isinstance(event, Start) and event.name == name:
                yield event.attributes


class _Recorder(Struct):
    """A parser target that keeps no tree, only the events since the last call."""

    events: list[XmlEvent] = field(default_factory=list)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        local = {_local(name): value for name, value in attributes.items()}
        self.events.append(Start(_local(tag), local))

    def end(self, tag: str) -> None:
        self.events.append(End(_local(tag)))

    def data(self, text: str) -> None:
        self.events.append(text)

    def close(self) -> None:
        self.events.clear()

    def taken(self) -> list[XmlEvent]:
        events, self.events = self.events, []
        return events


def _refuse_declarations(
    name: str, _system_id: str | None, _public_id: str | None, has_declarations: bool
) -> None:
    """Refuse declarations.

    A DOCTYPE alone is harmless, since its target is never read: OpenOffice writes one.
    """
    if has_declarations:
        raise UnreadableArchive(f"declarations of {name[:100]}")


def _local(name: str) -> str:
    return name.rpartition("}")[2]
