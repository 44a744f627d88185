"""Compound files written by hand: a tree of folders and streams, as doc, ppt, xls and msg are made of."""

import struct
from dataclasses import dataclass, field

Tree = dict[str, "bytes | Tree"]

END, FREE, TABLE, EXTENSION = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD, 0xFFFFFFFC
SECTOR, SMALL_SECTOR, SMALL_LIMIT = 512, 64, 4096


@dataclass(slots=True)
class _Writer:
    entries: list[list[object]] = field(default_factory=list)
    sectors: list[bytes] = field(default_factory=list)
    chain: list[int] = field(default_factory=list)
    small: bytearray = field(default_factory=bytearray)
    small_chain: list[int] = field(default_factory=list)

    def folder(self, name: str, kind: int, tree: Tree) -> int:
        place = len(self.entries)
        self.entries.append([name, kind, FREE, FREE, END, 0])
        last = FREE
        for inner, content in tree.items():
            number = (
                self.folder(inner, 1, content) if isinstance(content, dict) else self.stream(inner, content)
            )
            self.entries[number][2] = last
            last = number
        self.entries[place][3] = last
        return place

    def stream(self, name: str, content: bytes) -> int:
        put = self.put if len(content) >= SMALL_LIMIT else self.put_small
        self.entries.append([name, 2, FREE, FREE, put(content), len(content)])
        return len(self.entries) - 1

    def put(self, content: bytes) -> int:
        return _linked(self.sectors, self.chain, content, SECTOR)

    def put_small(self, content: bytes) -> int:
        blocks: list[bytes] = []
        start = len(self.small_chain)
        found = _linked(blocks, self.small_chain, content, SMALL_SECTOR, start)
        self.small += b"".join(blocks)
        return found


def _linked(
    blocks: list[bytes], chain: list[int], content: bytes, size: int, start: int | None = None
) -> int:
    first = len(blocks) if start is None else start
    count = -(-len(content) // size)
    for number in range(count):
        blocks.append(content[number * size : (number + 1) * size].ljust(size, b"\0"))
        chain.append(first + number + 1 if number + 1 < count else END)
    return first if count else END


def compound_file(tree: Tree) -> bytes:
    writer = _Writer()
    writer.folder("Root Entry", 5, tree)
    writer.entries[0][4:] = [writer.put(bytes(writer.small)), len(writer.small)]
    small_table = writer.put(struct.pack(f"<{len(writer.small_chain)}I", *writer.small_chain))
    folder = writer.put(b"".join(_entry(*entry) for entry in writer.entries))  # type: ignore[arg-type]
    count = len(writer.sectors) // 126 + 1
    start = len(writer.sectors)
    extension = [*range(start + 109, start + count)]
    chain = writer.chain + [TABLE] * count + ([EXTENSION] if extension else [])
    chain += [FREE] * (count * 128 - len(chain))
    table = struct.pack(f"<{len(chain)}I", *chain)
    if extension:
        table += struct.pack("<128I", *extension, *[FREE] * (127 - len(extension)), END)
    header = _header(count, start, folder, small_table, start + count if extension else END)
    return header + b"".join(writer.sectors) + table


def _header(count: int, start: int, folder: int, small_table: int, extension: int) -> bytes:
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
    counts = (0, count, folder, 0, SMALL_LIMIT, small_table, 1, extension, int(extension != END))
    places = [*range(start, start + count)][:109]
    return (
        header
        + bytes(6)
        + struct.pack("<9I", *counts)
        + struct.pack("<109I", *places, *[FREE] * (109 - len(places)))
    )


def _entry(name: str, kind: int, left: int, child: int, start: int, size: int) -> bytes:
    letters = (name + "\0").encode("utf-16-le")
    links = struct.pack("<HBBIII", len(letters), kind, 1, left, FREE, child)
    return letters.ljust(64, b"\0") + links + bytes(36) + struct.pack("<IQ", start, size)


def message(
    texts: dict[str, str],
    binaries: dict[str, bytes],
    numbers: dict[int, int],
    inner: Tree,
    head_bytes: int = 32,
) -> Tree:
    """A mail as Outlook saves it. Properties are named by their numbers."""
    tree: Tree = {f"__substg1.0_{number}001F": text.encode("utf-16-le") for number, text in texts.items()}
    tree |= {f"__substg1.0_{number}0102": content for number, content in binaries.items()}
    fixed = b"".join(struct.pack("<HHIQ", 3, number, 6, value) for number, value in numbers.items())
    fixed += b"".join(_listed(name, content) for name, content in tree.items() if isinstance(content, bytes))
    return tree | {"__properties_version1.0": bytes(head_bytes) + fixed} | inner


def _listed(name: str, content: bytes) -> bytes:
    """The entry of a property that has a stream of its own."""
    number, kind = int(name[12:16], 16), int(name[16:20], 16)
    return struct.pack("<HHIII", kind, number, 6, len(content) + 2 * (kind == 0x1F), 0)


def attachment(name: str, content: "bytes | Tree") -> Tree:
    if isinstance(content, bytes):
        return message({"3707": name}, {"3701": content}, {}, {}, head_bytes=8)
    return message({"3707": name}, {}, {}, {"__substg1.0_3701000D": content}, head_bytes=8)


def recipient(name: str, address: str, kind: int) -> Tree:
    return message({"3001": name, "39FE": address}, {}, {0x0C15: kind}, {}, head_bytes=8)
