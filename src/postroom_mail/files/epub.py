"""Text of books: the pages that the package names, in reading order."""

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

from postroom_mail.files.archive import Archive
from postroom_mail.html.text import html_to_text
from postroom_mail.mime.charset import decode

MAX_PAGE_BYTES = 2_000_000
CONTAINER = "META-INF/container.xml"


def is_book(archive: Archive) -> bool:
    return CONTAINER in archive and b"epub" in archive.content("mimetype", 100)


def book_text(archive: Archive) -> Iterator[str]:
    for package in archive.elements(CONTAINER, "rootfile"):
        for page in _pages(archive, package.get("full-path", "")):
            yield html_to_text(decode(archive.content(page, MAX_PAGE_BYTES), "utf-8")) + "\n\n"


def _pages(archive: Archive, package: str) -> Iterator[str]:
    folder = posixpath.dirname(package)
    items = {item.get("id", ""): item.get("href", "") for item in archive.elements(package, "item")}
    read: set[str] = set()
    for reference in list(archive.elements(package, "itemref")):
        href = items.get(reference.get("idref", ""), "")
        if href and href not in read and reference.get("linear") != "no":
            read.add(href)
            yield posixpath.normpath(posixpath.join(folder, unquote(href)))
