"""Files that run when somebody opens them, by name and by content, also inside archives.

Reads a bounded part of each file, unpacks nothing, and trusts no length that a file states.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from typing import Protocol

MAX_FILES = 20
MAX_NAMES = 1_000  # inside an archive
MAX_MARKUP_BYTES = 256 * 1024
MAX_OLE_BYTES = 4 * 1024 * 1024

# What Windows, macOS or a Linux desktop runs on a double click.
_PROGRAMS = frozenset(
    "ade adp app apk appimage application appref-ms appx appxbundle bat chm cmd com command cpl deb dll"
    " exe gadget hta ins inf jar jnlp js jse library-ms lnk mde msc msi msix msixbundle msp mst pif pkg ps1"
    " ps1xml psc1 reg rpm scf scr sct search-ms settingcontent-ms shb sys theme url vb vbe vbs vxd workflow"
    " ws wsc wsf wsh xll".split()
)
_DISK_IMAGES = frozenset(("dmg", "img", "iso", "udf", "vhd", "vhdx", "wim"))
_DOCUMENTS = frozenset(
    "avi bmp csv doc docx eml gif htm html jpeg jpg mov mp3 mp4 odp ods odt pdf png ppt pptx rtf svg tif"
    " tiff txt wav webp xls xlsx xml zip".split()
)
_MACRO_DOCUMENTS = frozenset(("docm", "dotm", "potm", "ppam", "ppsm", "pptm", "sldm", "xlam", "xlsm", "xltm"))
_MARKUP = frozenset(("htm", "html", "mht", "mhtml", "shtml", "svg", "svgz", "xht", "xhtml", "xsl", "xslt"))
_MARKUP_TYPES = ("text/html", "image/svg+xml", "application/xhtml+xml")
_MACHINE_CODE = (b"MZ", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
_SHORTCUT = b"L\x00\x00\x00\x01\x14\x02\x00\x00\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00F"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_VBA_PROJECT = "_VBA_PROJECT".encode("utf-16-le")
_ISO = slice(0x8001, 0x8006)
_MACRO_PARTS = ("vbaproject.bin", "xl/macrosheets/")
_SCRIPT = re.compile(
    rb"<\s{0,8}(?:[a-z]{1,10}:)?script|\bon(?:load|error|click|begin|mouseover)\s{0,8}=|javascript:", re.I
)
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
_GAP = re.compile(r"\s{5}\.")  # of five or more: each search of a longer run would begin again at every space
_CENTRAL, _LOCAL, _END = b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"
_MAX_COMMENT = 66_000
PASSWORD_WORDS = (
    "password", "passwort", "kennwort", "passcode", "contrasena", "mot de passe", "senha", "palavra-passe",
    "parola", "wachtwoord", "haslo", "hasło", "пароль", "sifre", "şifre", "密码", "密碼", "パスワード",
    "비밀번호", "암호", "كلمة السر", "كلمة المرور", "losenord", "adgangskode", "salasana", "heslo", "jelszo",
    "lozinka",
)  # fmt: skip


class File(Protocol):
    @property
    def filename(self) -> str: ...
    @property
    def content_type(self) -> str: ...
    @property
    def content(self) -> bytes: ...


def findings(files: Sequence[File]) -> Iterator[tuple[str, str]]:
    """Names of rules, each with the name of the file that fulfils it."""
    for file in files[:MAX_FILES]:
        yield from ((rule, file.filename) for rule in _of_file(file))


def _of_file(file: File) -> Iterator[str]:
    ending, is_program = ending_of(file.filename), _is_machine_code(file.content)
    if ending in _PROGRAMS or is_program:
        yield "runs_when_opened"
    if _is_disguised(file.filename) or (is_program and ending in _DOCUMENTS):
        yield "disguised_file"
    if ending in _DISK_IMAGES or file.content[_ISO] == b"CD001":
        yield "archived_program"
    names, is_locked = zip_names(file.content) if file.content.startswith(b"PK") else ([], False)
    is_java = ending == "jar"
    if not is_java and any(ending_of(name) in _PROGRAMS | _DISK_IMAGES for name in names):
        yield "archived_program"
    if any(_is_disguised(name) for name in names):
        yield "disguised_file"
    if is_locked:
        yield "locked_archive"
    if ending in _MACRO_DOCUMENTS or _has_macros(file.content, names):
        yield "office_macros"
    if (
        ending in _MARKUP or file.content_type in ("text/html", "image/svg+xml", "application/xhtml+xml")
    ) and (_SCRIPT.search(file.content[:MAX_MARKUP_BYTES])):
        yield "active_content"


def ending_of(name: str) -> str:
    """The ending that decides what opens a file: Windows ignores dots and spaces behind it."""
    return name.rstrip(". \t\u00a0").rpartition(".")[2].casefold()


def _is_machine_code(content: bytes) -> bool:
    if content.startswith(b"MZ"):
        return _has_portable_header(content)
    return content.startswith((*_MACHINE_CODE[1:], _SHORTCUT))


def _has_portable_header(content: bytes) -> bool:
    """A text may begin with MZ too: a program names where its header is."""
    if len(content) < 0x40:
        return False
    (place,) = struct.unpack_from("<I", content, 0x3C)
    return content[place : place + 4] == b"PE\0\0"


def _is_disguised(name: str) -> bool:
    """A name that ends as a program and reads as a document: `invoice.pdf.exe`, or turned around."""
    if ending_of(name) not in _PROGRAMS | _DISK_IMAGES:
        return bool(_TURNING.search(name))
    before = name.rstrip(". \t\u00a0").rpartition(".")[0]
    return ending_of(before) in _DOCUMENTS or bool(_TURNING.search(name) or _GAP.search(name))


def _has_macros(content: bytes, names: Sequence[str]) -> bool:
    if any(part in name.casefold() for name in names for part in _MACRO_PARTS):
        return True
    return content.startswith(_OLE) and _VBA_PROJECT in content[:MAX_OLE_BYTES]


def zip_names(content: bytes) -> tuple[list[str], bool]:
    """The names of a zip file's members, and True if one is encrypted.

    Reads both lists that a zip has: programs differ in which one they believe (APPNOTE 4.3.7 and 4.3.12).
    """
    found: dict[str, bool] = {}
    end = content.rfind(_END, max(0, len(content) - _MAX_COMMENT))
    if end >= 0 and end + 20 <= len(content):
        (size,) = struct.unpack_from("<I", content, end + 12)
        _walk(content, max(0, end - size), _CENTRAL, (8, 28, 46), found)
    _walk(content, 0, _LOCAL, (6, 26, 30), found)
    return list(found), any(found.values())


def _walk(
    content: bytes, place: int, mark: bytes, offsets: tuple[int, int, int], found: dict[str, bool]
) -> None:
    flags_at, length_at, name_at = offsets
    for _ in range(MAX_NAMES):
        place = content.find(mark, place)
        if place < 0 or place + name_at > len(content):
            return
        (flags,) = struct.unpack_from("<H", content, place + flags_at)
        (length,) = struct.unpack_from("<H", content, place + length_at)
        name = content[place + name_at : place + name_at + length].decode("utf-8", "replace")
        found[name] = found.get(name, False) or bool(flags & 1)
        place += name_at


def tells_password(folded: str) -> bool:
    """Returns True if a text, folded for comparison, speaks of a password."""
    return any(word in folded for word in PASSWORD_WORDS)
