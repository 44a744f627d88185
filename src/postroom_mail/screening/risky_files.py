"""Files that run when somebody opens them, by name and by content, also inside archives.

Reads a bounded part of each file and of what is inside it.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from typing import Protocol

from postroom_mail.mime.parse import parse_mail
from postroom_mail.screening.inside_files import NOTHING, ArchiveContent, MemberBudget, read_inside

MAX_FILES = 20
MAX_DEPTH = 3  # an archive in an archive in an archive
MAX_MAIL_BYTES = 4 * 1024 * 1024
FEW_MEMBERS = 8  # a whole site in an archive has scripts
MAX_MARKUP_BYTES = 256 * 1024
MAX_OLE_BYTES = 4 * 1024 * 1024

# What Windows, macOS or a Linux desktop runs on a double click.
_PROGRAMS = frozenset(
    "ade adp app apk appimage application appref-ms appx appxbundle bat chm cmd com command cpl deb dll"
    " exe gadget hta ins inf jar jnlp js jse library-ms lnk mde msc msi msix msixbundle msp mst pif pkg ps1"
    " ps1xml psc1 reg rpm scf scr sct search-ms settingcontent-ms shb sys theme url vb vbe vbs vxd workflow"
    " ws wsc wsf wsh xll".split()
)
_DISK_IMAGES = frozenset(("ace", "arj", "cab", "daa", "dmg", "img", "iso", "udf", "vhd", "vhdx", "wim"))
_DOCUMENTS = frozenset(
    "avi bmp csv doc docx eml gif htm html jpeg jpg mov mp3 mp4 odp ods odt pdf png ppt pptx rtf svg tif"
    " tiff txt wav webp xls xlsx xml zip".split()
)
_MACRO_DOCUMENTS = frozenset(("docm", "dotm", "potm", "ppam", "ppsm", "pptm", "sldm", "xlam", "xlsm", "xltm"))
_MARKUP = frozenset(("htm", "html", "mht", "mhtml", "shtml", "svg", "svgz", "xht", "xhtml", "xsl", "xslt"))
_MAILS = frozenset(("message/rfc822", "message/global"))
_MARKUP_TYPES = ("text/html", "image/svg+xml", "application/xhtml+xml")
_MACHINE_CODE = (b"MZ", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
_SHORTCUT = b"L\x00\x00\x00\x01\x14\x02\x00\x00\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00F"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_VBA_PROJECT = "_VBA_PROJECT".encode("utf-16-le")
_ISO = slice(0x8001, 0x8006)
_ISO_MARKS = (b"CD001", b"BEA01", b"NSR02", b"NSR03")
_DISK_STARTS = (b"vhdxfile", b"conectix", b"MSCF", b"MSWIM\0\0\0")
_MACRO_PARTS = ("vbaproject.bin", "xl/macrosheets/", "basic/script-lc.xml", "scripts/python/")
# A sheet of Excel 4 macros: the record that names it, in the stream of an old workbook.
_WORKBOOK = "Workbook".encode("utf-16-le")
_MACRO_SHEET = re.compile(rb"\x85\0[\x07-\x60]\0.{4}[\0-\x02]\x01", re.DOTALL)
# A template or an object from elsewhere, which Word loads when the document is opened.
_RELATION = re.compile(rb"<Relationship\b([^>]{0,2000})")
_LOADED = (b"attachedTemplate", b"oleObject", b"/frame")
_ELSEWHERE = re.compile(rb"(?:https?|mhtml|ftp|ms-msdt):", re.IGNORECASE)
_OBJECTS = (b"5061636b616765", b"4571756174696f6e")  # Package and Equation, in the digits of RTF
_LAUNCH = re.compile(rb"/S\s{0,8}/Launch\b")
_SCRIPT = re.compile(
    rb"<\s{0,8}(?:[a-z]{1,10}:)?script|\bon(?:load|error|click|begin|mouseover)\s{0,8}=|javascript:"
    rb"|http-equiv\s{0,8}=\s{0,8}[\"']?refresh",
    re.I,
)
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
_GAP = re.compile(r"\s{5}\.")  # of five or more: each search of a longer run would begin again at every space
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
    budget = MemberBudget()
    for file in files[:MAX_FILES]:
        yield from ((rule, file.filename) for rule in _of_file(file, budget, 1))


def _of_file(file: File, budget: MemberBudget, depth: int) -> Iterator[str]:
    ending, is_program = ending_of(file.filename), _is_machine_code(file.content)
    if ending in _PROGRAMS or is_program:
        yield "runs_when_opened"
    if _is_disguised(file.filename) or (is_program and ending in _DOCUMENTS):
        yield "disguised_file"
    if ending in _DISK_IMAGES or _is_disk_image(file.content):
        yield "archived_program"
    inside = read_inside(file.content, budget)
    if ending != "jar":
        yield from _of_members(inside, budget, depth)
    if inside.is_locked:
        yield "locked_archive"
    if ending in _MACRO_DOCUMENTS or _has_macros(file.content, inside):
        yield "office_macros"
    is_markup = ending in _MARKUP or file.content_type in _MARKUP_TYPES
    if _is_active(file.content, is_markup):
        yield "active_content"
    if file.content_type in _MAILS or ending == "eml":
        yield from _of_mail(file.content, budget, depth)


def _of_members(inside: ArchiveContent, budget: MemberBudget, depth: int) -> Iterator[str]:
    if any(ending_of(name) in _PROGRAMS | _DISK_IMAGES for name in inside.names):
        yield "archived_program"
    if any(_is_disguised(name) for name in inside.names):
        yield "disguised_file"
    for name, content in inside.files:
        ending = ending_of(name)
        if _is_machine_code(content) or _is_disk_image(content):
            yield "archived_program"
            if ending in _DOCUMENTS:
                yield "disguised_file"
        if len(inside.files) <= FEW_MEMBERS and _is_active(content, ending in _MARKUP):
            yield "active_content"
        within = read_inside(content, budget) if depth < MAX_DEPTH else NOTHING
        if ending in _MACRO_DOCUMENTS or _has_macros(content, within):
            yield "office_macros"
        if within.is_locked:
            yield "locked_archive"
        yield from _of_members(within, budget, depth + 1)


def _of_mail(raw: bytes, budget: MemberBudget, depth: int) -> Iterator[str]:
    """Rules that the files of an attached email fulfil."""
    if depth >= MAX_DEPTH or len(raw) > MAX_MAIL_BYTES:
        return
    for file in parse_mail(raw).attachments[:MAX_FILES]:
        yield from _of_file(file, budget, depth + 1)


def _is_disk_image(content: bytes) -> bool:
    return content[_ISO] in _ISO_MARKS or content.startswith(_DISK_STARTS) or content[-512:-508] == b"koly"


def _is_active(content: bytes, is_markup: bool) -> bool:
    if content.startswith(b"%PDF"):
        return _LAUNCH.search(content[:MAX_OLE_BYTES]) is not None
    return is_markup and _SCRIPT.search(content[:MAX_MARKUP_BYTES]) is not None


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


def _has_macros(content: bytes, inside: ArchiveContent) -> bool:
    """Macros, an object that runs, or a template that is loaded from elsewhere."""
    if any(part in name.casefold() for name in inside.names for part in _MACRO_PARTS):
        return True
    if any(name.endswith(".rels") and _loads_more(text) for name, text in inside.files):
        return True
    if content.startswith(b"{\\rt"):
        return _has_object(content[:MAX_OLE_BYTES])
    if not content.startswith(_OLE):
        return False
    read = content[:MAX_OLE_BYTES]
    return _VBA_PROJECT in read or (_WORKBOOK in read and _MACRO_SHEET.search(read) is not None)


def _loads_more(relations: bytes) -> bool:
    elements = (found[1] for found in _RELATION.finditer(relations[:MAX_MARKUP_BYTES]))
    return any(
        b"External" in each
        and any(kind in each for kind in _LOADED)
        and _ELSEWHERE.search(each.partition(b"Target=")[2])
        for each in elements
    )


def _has_object(rtf: bytes) -> bool:
    written = rtf.translate(None, b" \t\r\n").lower()
    return b"\\objupdate" in written or (
        b"\\objdata" in written and any(each in written for each in _OBJECTS)
    )


def gives_password(folded: str) -> bool:
    """Returns True if a text, folded for comparison, speaks of a password."""
    return any(word in folded for word in PASSWORD_WORDS)
