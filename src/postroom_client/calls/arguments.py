"""Writes arguments into a request: leaves out what is not given, and converts times and files."""

import base64
import json
import mimetypes
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from msgspec import UNSET, UnsetType

from postroom_client.errors import PayloadTooLarge
from postroom_client.limits import ATTACHMENTS_BYTES, ATTACHMENTS_TOGETHER
from postroom_client.transport.exchange import DEFAULT_TIMEOUT_SECONDS, OutgoingFile

UPLOAD_TIMEOUT_SECONDS = 120.0
ANSWER_MARGIN_SECONDS = 15

Addresses = str | Sequence[str]
NamedFile = Mapping[str, Any]  # `{"uploadId": …}`, `{"attachmentOf": …}` or `{"filename": …, "text": …}`
File = OutgoingFile | Path | str | NamedFile
T = TypeVar("T")


def given(**fields: Any) -> dict[str, Any]:
    """Return the values that are not None or UNSET."""
    return {name: value for name, value in fields.items() if value is not None and value is not UNSET}


def changes(**fields: Any) -> dict[str, Any]:
    """Return the values that are not UNSET; None clears."""
    return {name: value for name, value in fields.items() if value is not UNSET}


def unless(value: T, default: T) -> T | None:
    """None for the default value, which need not be sent."""
    return None if value == default else value


def listed(addresses: Addresses | UnsetType | None) -> list[str] | UnsetType | None:
    return [addresses] if isinstance(addresses, str) else repeated(addresses)


def repeated(values: Sequence[Any] | UnsetType | None) -> list[Any] | UnsetType | None:
    return values if values is None or isinstance(values, UnsetType) else list(values)


def commas(values: Sequence[str]) -> str | None:
    return ",".join(values) or None


def day(value: date | str | None) -> str | None:
    return value.isoformat() if isinstance(value, date) else value


def moment(value: datetime | str | UnsetType | None) -> str | UnsetType | None:
    """Refuses a time without a zone: which one is meant would be a guess."""
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ValueError("a time needs a time zone: datetime.now(UTC) + …")
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def idempotency(key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": key or str(uuid4())}


def if_match(version: int | None) -> dict[str, str]:
    """Return the header with which the server does nothing if it has another version by now."""
    return {} if version is None else {"If-Match": f'"{version}"'}


def read_file(source: OutgoingFile | Path | str) -> OutgoingFile:
    if isinstance(source, OutgoingFile):
        return source
    place = Path(source)
    kind = mimetypes.guess_type(place.name)[0] or "application/octet-stream"
    return OutgoingFile(place.name, place.read_bytes(), kind)


def read_files(sources: Sequence[File]) -> tuple[OutgoingFile | NamedFile, ...]:
    files = tuple(source if isinstance(source, Mapping) else read_file(source) for source in sources)
    if sum(len(file.content) for file in files if isinstance(file, OutgoingFile)) > ATTACHMENTS_BYTES:
        raise PayloadTooLarge(f"The attachments are over {ATTACHMENTS_TOGETHER}.")
    return files


def as_json(sources: Sequence[File] | UnsetType | None) -> list[NamedFile] | UnsetType | None:
    """Return the files as base64 in JSON."""
    if sources is None or isinstance(sources, UnsetType):
        return sources
    return [_in_json(file) for file in read_files(sources)]


def _in_json(file: OutgoingFile | NamedFile) -> NamedFile:
    if isinstance(file, Mapping):
        return file
    data = base64.b64encode(file.content).decode()
    return {"filename": file.filename, "contentType": file.content_type, "data": data}


def with_files(fields: Mapping[str, Any], files: tuple[OutgoingFile | NamedFile, ...]) -> dict[str, Any]:
    """Return JSON, or a form if there are files: a list is a repeated part, and an object a part with JSON.

    A form has no place for files that are only named.
    """
    if not files:
        return {"json": fields}
    if any(isinstance(file, Mapping) for file in files):
        return {"json": {**fields, "attachments": [_in_json(file) for file in files]}}
    form = {
        name: [str(item) for item in value] if isinstance(value, list) else [_spell(value)]
        for name, value in fields.items()
    }
    return {"form": form, "files": files}


def _spell(value: object) -> str:
    if isinstance(value, Mapping):
        return json.dumps(dict(value), ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)


def upload_seconds(files: Sequence[object]) -> float:
    return UPLOAD_TIMEOUT_SECONDS if files else DEFAULT_TIMEOUT_SECONDS
