"""Fetches the email of an inbox from a service with the /v0 interface: one file for each email."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import httpx2
import msgspec
from msgspec import Struct

from postroom import limits
from postroom.clock import from_iso
from postroom.errors import Unavailable
from postroom.transfer.mbox import EARLIEST, FiledMail

SECONDS = 60.0
PAGE = 100
PAGE_BYTES = 16 * 1024 * 1024
# Everything, also what lists leave out.
ALL = {"ascending": "true", "include_spam": "true", "include_blocked": "true", "include_trash": "true"}


class FetchedMessage(Struct, frozen=True):
    message_id: str
    timestamp: str

    def at(self, now: int) -> int:
        """Return when it came there; an impossible time becomes now."""
        try:
            at = from_iso(self.timestamp)
        except (ValueError, OverflowError):
            return now
        return at if EARLIEST <= at <= now else now


class FetchedPage(Struct, frozen=True):
    messages: list[FetchedMessage]
    next_page_token: str | None = None


class RawLink(Struct, frozen=True):
    download_url: str


def fetch_mails(
    base_url: str, key: str, address: str, folder: Path, now: int, report: Callable[[int], None]
) -> list[FiledMail]:
    """Saves them to a folder as they are, oldest first."""
    folder.mkdir(mode=0o700, parents=True)
    inbox = f"{base_url.rstrip('/')}/v0/inboxes/{quote(address, safe='')}/messages"
    headers = {"Authorization": f"Bearer {key}"}
    fetched: list[FiledMail] = []
    trusted = httpx2.create_ssl_context()
    try:
        with (
            httpx2.Client(timeout=SECONDS, headers=headers, verify=trusted) as api,
            httpx2.Client(timeout=SECONDS, verify=trusted) as links,
        ):
            for message in list_messages(api, inbox):
                answer = get(api, f"{inbox}/{quote(message.message_id, safe='')}/raw", PAGE_BYTES)
                link = msgspec.json.decode(answer, type=RawLink).download_url
                raw = get(links, link, limits.EMAIL_BYTES)  # wherever it leads, the key is not sent
                path = folder / f"{len(fetched):08}"
                path.write_bytes(raw)
                fetched.append(FiledMail(path, 0, len(raw), message.at(now), ""))
                report(1)
    except (httpx2.HTTPError, httpx2.InvalidURL, msgspec.DecodeError) as error:
        raise Unavailable(f"The mail of {address} could not be fetched: {error}") from None
    return sorted(fetched, key=lambda mail: mail.at)


def list_messages(api: httpx2.Client, inbox: str) -> Iterator[FetchedMessage]:
    """Yield the messages, oldest first, page by page."""
    token, seen = "", set[str]()
    while token not in seen:
        seen.add(token)
        asked = ALL | {"limit": str(PAGE)} | ({"page_token": token} if token else {})
        page = msgspec.json.decode(get(api, inbox, PAGE_BYTES, asked), type=FetchedPage)
        yield from page.messages
        if not page.next_page_token:
            return
        token = page.next_page_token


def get(client: httpx2.Client, url: str, limit: int, asked: dict[str, str] | None = None) -> bytes:
    """Reads no more than the limit, whatever the other side says."""
    with client.stream("GET", url, params=asked) as answer:
        if answer.status_code != 200:
            raise Unavailable(f"{answer.url.host} answered {answer.status_code} to {answer.url.path[:200]}.")
        content = bytearray()
        for piece in answer.iter_bytes():
            content += piece
            if len(content) > limit:
                raise Unavailable(f"{answer.url.host} sent more than {limit} bytes.")
        return bytes(content)
