"""A disk that forgets: what is left of a recorded run when the power goes at a given moment.

A file keeps what was written before its last sync; a name is there if its folder was synced since.
"""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HEAD = struct.Struct("=4Q")
CREATED, WRITTEN, CUT, SYNCED, FOLDER_SYNCED = "C", "W", "T", "S", "D"
RENAMED, LINKED, REMOVED, FOLDER_MADE, ANSWERED = "R", "L", "U", "M", "A"
SECTOR_BYTES = 512


@dataclass(frozen=True)
class Change:
    kind: str
    path: str
    offset: int
    data: bytes


def read_log(path: Path) -> Iterator[Change]:
    content = path.read_bytes()
    at = 0
    while at < len(content):
        kind, path_length, length, offset = HEAD.unpack_from(content, at)
        at += HEAD.size
        name = content[at : at + path_length].decode()
        at += path_length
        yield Change(chr(kind), name, offset, content[at : at + length])
        at += length


def record_answer(log: Path, what: str) -> None:
    """By the program itself: from here on this must never be lost."""
    with log.open("ab") as file:
        file.write(HEAD.pack(ord(ANSWERED), len(what.encode()), 0, 0) + what.encode())


@dataclass
class File:
    synced: bytes = b""
    unsynced: list[Change] = field(default_factory=list)

    def sync(self) -> None:
        self.synced, self.unsynced = apply(self.synced, self.unsynced), []

    def left(self, chance: random.Random | None) -> bytes:
        """Without chance nothing that was not synced; with it some of it, in any part."""
        if chance is None or not self.unsynced:
            return self.synced
        return apply(self.synced, [torn(each, chance) for each in self.unsynced if chance.random() < 0.5])


def apply(content: bytes, changes: list[Change]) -> bytes:
    if not changes:
        return content
    changed = bytearray(content)
    for change in changes:
        if change.kind == CUT:
            del changed[change.offset :]
            changed.extend(bytes(change.offset - len(changed)))
        else:
            end = change.offset + len(change.data)
            changed.extend(bytes(max(0, end - len(changed))))
            changed[change.offset : end] = change.data
    return bytes(changed)


def torn(change: Change, chance: random.Random) -> Change:
    """A write that the power ended, at some sector of it."""
    if change.kind == CUT or chance.random() < 0.5:
        return change
    sectors = chance.randint(0, len(change.data) // SECTOR_BYTES)
    return Change(change.kind, change.path, change.offset, change.data[: sectors * SECTOR_BYTES])


@dataclass
class Disk:
    """`names` as programs see them now, `kept` as they would be found after the power is back."""

    names: dict[str, File]
    kept: dict[str, File]
    folders: set[str]
    kept_folders: set[str]
    answers: list[str] = field(default_factory=list)

    @classmethod
    def of_folder(cls, folder: Path) -> "Disk":
        """All that is there has been there for long."""
        names = {str(path): File(path.read_bytes()) for path in folder.rglob("*") if path.is_file()}
        folders = {str(path) for path in [folder, *folder.rglob("*")] if path.is_dir()}
        return cls(dict(names), dict(names), set(folders), set(folders))

    def change(self, change: Change) -> None:
        path, other = change.path, change.data.decode() if change.kind in (RENAMED, LINKED) else ""
        if change.kind == CREATED:
            self.names[path] = File()
        elif change.kind in (WRITTEN, CUT) and path in self.names:
            self.names[path].unsynced.append(change)
        elif change.kind == SYNCED and path in self.names:
            self.names[path].sync()
        elif change.kind == FOLDER_SYNCED:
            self._sync_folder(path)
        elif change.kind == RENAMED:
            self.names[other] = self.names.pop(path)
        elif change.kind == LINKED:
            self.names[other] = self.names[path]
        elif change.kind == REMOVED:
            self.names.pop(path, None)
        elif change.kind == FOLDER_MADE:
            self.folders.add(path)
        elif change.kind == ANSWERED:
            self.answers.append(path)

    def _sync_folder(self, folder: str) -> None:
        for path in [each for each in {*self.names, *self.kept} if str(Path(each).parent) == folder]:
            if path in self.names:
                self.kept[path] = self.names[path]
            else:
                del self.kept[path]
        self.kept_folders |= {each for each in self.folders if str(Path(each).parent) == folder}

    def write_what_is_left(self, here: Path, there: Path, chance: random.Random | None) -> None:
        """Into another folder, as the next start would find it."""
        there.mkdir(parents=True)
        for path, file in self.kept.items():
            place = Path(path)
            if all(str(each) in self.kept_folders for each in place.parents if each.is_relative_to(here)):
                target = there / place.relative_to(here)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.left(chance))
