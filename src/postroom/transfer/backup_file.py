"""A backup: a tar file with a snapshot of the database and every blob it refers to, each with its hash.

Only its owner can read it. Its last member lists the hashes; a file without that is not a complete backup.
"""

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO

from postroom.errors import Unavailable
from postroom.storage.blobs import Blobs, DamagedBlob
from postroom.storage.data_folder import make_folder, sync_folder
from postroom.storage.database import StorageError
from postroom.storage.database_copy import DatabaseCopy
from postroom.storage.segments import NAME_PATTERN

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE, BLOBS, TLS, JOURNAL = "database/", "blobs/", "tls/", "journal/"
TLS_FILES = ("certificate.pem", "key.pem")
CHUNK_BYTES = 1 << 20
_JOURNAL_NAME = re.compile(
    rf"journal/(?:[a-z0-9-]{{1,64}}/{NAME_PATTERN}|damaged/[a-z0-9-]{{1,64}}\.[0-9a-f]{{16}}\.[0-9]{{1,18}})"
)
OnProgress = Callable[[int], None]


@dataclass(slots=True)
class Manifest:
    """`gone` lists blobs of mail deleted while the backup was made: a restore deletes that email, too.

    `damaged` lists blobs whose bytes do not match their hash: the backup has what is left of them.
    """

    engine: str
    schema: int
    created_at: str
    version: str
    format: int = FORMAT
    hashes: dict[str, str] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Source:
    """What a backup is made of. `is_named_now` asks the running server whether a blob is still used."""

    database: DatabaseCopy
    blobs: Blobs
    tls: Path
    is_named_now: Callable[[str], bool]
    journal: Path | None = None


def write(source: Source, path: Path, version: str, created_at: str, report: OnProgress) -> Manifest:
    """Write the journal first, then the database, then its blobs, and rename the file when it is complete.

    Email that leaves the journal meanwhile is in the database, and email in both is before the position
    reached.
    """
    part = path.with_name(f"{path.name}.part")
    with errors_in_one_line(f"The backup {path} cannot be written"), removed_on_failure(part):
        manifest = _write_part(source, part, version, created_at, report)
        verify(part)
        part.rename(path)
        sync_folder(path.parent)
    return manifest


def _write_part(source: Source, part: Path, version: str, created_at: str, report: OnProgress) -> Manifest:
    with private_file(part) as file:
        with tarfile.open(fileobj=file, mode="w") as tar, scratch_folder(part.parent) as scratch:
            segments = _copy_journal(source.journal, scratch) if source.journal else {}
            files = source.database.take(scratch)
            manifest = Manifest(source.database.engine, source.database.schema_version(), created_at, version)
            for each in files:
                _add_file(tar, manifest, DATABASE + each.name, each)
            for name, each in segments.items():
                _add_file(tar, manifest, JOURNAL + name, each)
            for name in TLS_FILES:
                if (source.tls / name).exists():
                    _add_file(tar, manifest, TLS + name, source.tls / name)
            _add_blobs(tar, manifest, source, report)
            _add(tar, MANIFEST, json.dumps(asdict(manifest)).encode())
        file.flush()
        os.fsync(file.fileno())
    return manifest


def _copy_journal(journal: Path, scratch: Path) -> dict[str, Path]:
    """Return the copies by folder and name of segment. One that disappears meanwhile was deposited."""
    copies: dict[str, Path] = {}
    for segment in sorted(journal.glob("*/*")):
        if not _is_known(f"{JOURNAL}{segment.parent.name}/{segment.name}"):
            continue  # a file that is not complete yet
        copy = scratch / f"segment-{len(copies)}"
        with suppress(FileNotFoundError):
            shutil.copyfile(segment, copy)
            copies[f"{segment.parent.name}/{segment.name}"] = copy
    return copies


def _add_blobs(tar: tarfile.TarFile, manifest: Manifest, source: Source, report: OnProgress) -> None:
    for name in source.database.blobs():
        if BLOBS + name in manifest.hashes:
            continue
        try:
            content = _read(source.blobs, manifest, name)
        except FileNotFoundError:
            if source.is_named_now(name):
                raise StorageError(
                    f"The file {name} is missing, but email still refers to it. See: postroom verify"
                ) from None
            manifest.gone.append(name)
            continue
        manifest.hashes[BLOBS + name] = hashlib.sha256(content).hexdigest()
        _add(tar, BLOBS + name, content)
        report(1)


def _read(blobs: Blobs, manifest: Manifest, name: str) -> bytes:
    """Read a blob. One damaged email must not prevent the backup, and must not pass as sound."""
    try:
        return blobs.get(name)
    except DamagedBlob:
        manifest.damaged.append(name)
        return blobs.get_unchecked(name)


def _add_file(tar: tarfile.TarFile, manifest: Manifest, name: str, path: Path) -> None:
    with path.open("rb") as file:
        manifest.hashes[name] = hash_of(file)
        file.seek(0)
        tar.addfile(_entry(name, path.stat().st_size), file)


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    tar.addfile(_entry(name, len(content)), io.BytesIO(content))


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    return entry


def verify(path: Path) -> Manifest:
    """Read every byte. Raises StorageError."""
    try:
        found = {name: hash_of(file) for name, file in members(path) if name != MANIFEST}
        manifest = read_manifest(path)
    except (tarfile.TarError, EOFError) as error:
        raise StorageError(f"{path} is not a backup, or was cut off: {error}.") from error
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}.") from error
    names = found.keys() | manifest.hashes.keys()
    wrong = sorted(name for name in names if found.get(name) != manifest.hashes.get(name))
    if wrong:
        raise StorageError(f"The backup {path} is damaged: {', '.join(wrong[:5])}.")
    return manifest


def read_manifest(path: Path) -> Manifest:
    written = [file.read() for name, file in members(path) if name == MANIFEST]
    try:
        known = {each.name for each in fields(Manifest)}
        said = {name: value for name, value in json.loads(written[-1]).items() if name in known}
        manifest = Manifest(**said)
    except (IndexError, ValueError, TypeError, AttributeError) as error:
        raise StorageError(f"{path} is not a complete backup.") from error
    if manifest.format > FORMAT:
        raise StorageError(f"The backup {path} was written by a newer Postroom.")
    return manifest


def members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield plain files with the names of a backup, nothing else; each must be read before the next."""
    with tarfile.open(path, "r:") as tar:
        for entry in tar:
            file = tar.extractfile(entry) if entry.isreg() else None
            if file is None or not _is_known(entry.name):
                raise StorageError(
                    f"The backup {path} holds '{entry.name[:100]}', which does not belong there."
                )
            yield entry.name, file


def _is_known(name: str) -> bool:
    folder, slash, rest = name.rpartition("/")
    is_journal = _JOURNAL_NAME.fullmatch(name) is not None
    is_in_folder = folder + slash in (DATABASE, BLOBS, TLS) and rest not in ("", ".", "..")
    return name == MANIFEST or is_in_folder or is_journal


def restore(path: Path, database: DatabaseCopy, blobs: Blobs, tls: Path, report: OnProgress) -> None:
    """Restore blobs first, then the database, which becomes visible only when complete."""
    put: list[str] = []
    with (
        errors_in_one_line("The backup cannot be restored"),
        _taken_back_on_failure(blobs, put),
        scratch_folder(tls.parent) as scratch,
    ):
        files = _unpack(path, scratch, tls)
        for name, file in members(path):
            if name.startswith(BLOBS):
                put.append(name.removeprefix(BLOBS))
                blobs.put_as(put[-1], file.read())
                report(1)
        database.put(files)
        database.finish()


def _unpack(path: Path, scratch: Path, tls: Path) -> list[Path]:
    """Puts the certificate in place. Returns the files of the database, in the scratch folder."""
    files = []
    for name, file in members(path):
        if name.startswith(DATABASE):
            files.append(_put_file(scratch / name.removeprefix(DATABASE), file))
        elif name.startswith(TLS):
            tls.mkdir(mode=0o700, exist_ok=True)
            _put_file(tls / name.removeprefix(TLS), file)
        elif name.startswith(JOURNAL):
            make_folder(tls.parent / JOURNAL)
            make_folder((tls.parent / name).parent)
            _put_file(tls.parent / name, file)
    return files


@contextmanager
def _taken_back_on_failure(blobs: Blobs, names: list[str]) -> Iterator[None]:
    """Remove the blobs after a failure.

    Without the database nothing names them, and a retry needs an empty folder.
    """
    try:
        yield
    except BaseException:
        for name in names:
            with suppress(OSError, Unavailable):
                blobs.remove(name)
        raise


def _put_file(path: Path, file: IO[bytes]) -> Path:
    with private_file(path) as target:
        while chunk := file.read(CHUNK_BYTES):
            target.write(chunk)
        target.flush()
        os.fsync(target.fileno())
    return path


def hash_of(file: IO[bytes]) -> str:
    hashed = hashlib.sha256()
    while chunk := file.read(CHUNK_BYTES):
        hashed.update(chunk)
    return hashed.hexdigest()


@contextmanager
def errors_in_one_line(what: str) -> Iterator[None]:
    """Report an error in one line: a full or unwritable disk is no bug, and needs no traceback."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{what}: {error.strerror or error}. Nothing of it was kept.") from error
    except Unavailable as error:
        raise StorageError(f"{what}: {error.__cause__ or error}. Nothing of it was kept.") from error


@contextmanager
def removed_on_failure(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def private_file(path: Path) -> Iterator[IO[bytes]]:
    """Create a file that only its owner can read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        yield file


@contextmanager
def scratch_folder(beside: Path) -> Iterator[Path]:
    """Create a folder on the same disk, readable by its owner alone, and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix=".postroom-", dir=beside) as folder:
        yield Path(folder)
