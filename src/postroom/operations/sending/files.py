"""The files of a send: with their content, or named by an upload or a message."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from postroom import limits

OCTETS = "application/octet-stream"
PLAIN_TEXT = "text/plain; charset=utf-8"
ID_CHARACTERS = 100


class AttachmentOf(Struct, rename="camel", frozen=True):
    """An attachment of a message that the API key can read."""

    message_id: Annotated[str, Meta(max_length=ID_CHARACTERS)]
    filename: Annotated[str, Meta(max_length=limits.FILENAME_CHARACTERS)]


class SentFile(Struct, rename="camel", frozen=True):
    """A file with its content in `data` or `text`, or one named by `uploadId` or `attachmentOf`."""

    filename: Annotated[
        str,
        Meta(
            max_length=limits.FILENAME_CHARACTERS,
            description="Its name, as recipients see it; with data or text.",
        ),
    ] = ""
    data: Annotated[bytes, Meta(description="The content in base64.")] | UnsetType = UNSET
    content_type: Annotated[
        str,
        Meta(
            max_length=limits.CONTENT_TYPE_CHARACTERS,
            description="Its media type; else application/octet-stream, or text/plain for text.",
        ),
    ] = ""
    text: Annotated[str, Meta(description="The content as text.")] | UnsetType = UNSET
    upload_id: (
        Annotated[
            str,
            Meta(max_length=ID_CHARACTERS, description="An upload of this inbox whose file has arrived."),
        ]
        | UnsetType
    ) = UNSET
    attachment_of: (
        Annotated[AttachmentOf, Meta(description="A file of a message, attached again.")] | UnsetType
    ) = UNSET

    def __post_init__(self) -> None:
        forms = (self.data, self.text, self.upload_id, self.attachment_of)
        if sum(form is not UNSET for form in forms) != 1:
            raise ValueError("each file needs one of data, text, uploadId and attachmentOf")
        if self.is_named and (self.filename or self.content_type):
            raise ValueError("a file named by uploadId or attachmentOf keeps its filename and contentType")

    @property
    def is_named(self) -> bool:
        return self.upload_id is not UNSET or self.attachment_of is not UNSET

    @property
    def content(self) -> bytes:
        if isinstance(self.text, str):
            return self.text.encode()
        return self.data if isinstance(self.data, bytes) else b""

    @property
    def media_type(self) -> str:
        return self.content_type or (PLAIN_TEXT if isinstance(self.text, str) else OCTETS)


class FetchedFile(SentFile, rename="camel", frozen=True):
    """A file that was named, with its content."""

    of_message: str | None = None


SentFiles = Annotated[list[SentFile], Meta(max_length=limits.ATTACHMENTS)]
