"""Text in pictures, read by the tesseract program if installed."""

import os
import shutil
import struct
import subprocess

from postroom_mail.files.child_limits import die_with_parent

MAX_PIXELS = 40_000_000
# Smaller pictures are rules, icons and tracking pixels.
MIN_SIDE = 16


class UnreadablePicture(Exception):
    """Tesseract is missing, gave up, or would need too long for the size of the picture."""


def is_installed() -> bool:
    return shutil.which("tesseract") is not None


def read_picture(content: bytes) -> str:
    size = _size(content)
    if size is not None and min(size) < MIN_SIDE:
        return ""
    if size is not None and size[0] * size[1] > MAX_PIXELS:
        raise UnreadablePicture("too many pixels")
    # One thread: the processor limit counts all of them together.
    environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    done = subprocess.run(
        ["tesseract", "stdin", "stdout"],  # noqa: S607 (found on PATH on purpose)
        input=content,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        preexec_fn=die_with_parent,
        check=False,
    )
    if done.returncode != 0:
        raise UnreadablePicture("tesseract gave up")
    return done.stdout.decode("utf-8", "replace")


def _size(content: bytes) -> tuple[int, int] | None:
    """Return width and height, if the header gives them directly."""
    try:
        if content.startswith(b"\x89PNG"):
            return struct.unpack_from(">II", content, 16)
        if content.startswith(b"GIF8"):
            return struct.unpack_from("<HH", content, 6)
        if content.startswith(b"BM"):
            width, height = struct.unpack_from("<ii", content, 18)
            return abs(width), abs(height)
        return _jpeg_size(content) if content.startswith(b"\xff\xd8") else None
    except struct.error:
        return None


def _jpeg_size(content: bytes) -> tuple[int, int] | None:
    """Return the size from the first frame header (ITU T.81, B.2.2), skipping the segments before it."""
    place = 2
    while True:
        marker, length = struct.unpack_from(">HH", content, place)
        if 0xFFC0 <= marker <= 0xFFCF and marker not in (0xFFC4, 0xFFC8, 0xFFCC):
            height, width = struct.unpack_from(">HH", content, place + 5)
            return width, height
        if marker < 0xFFC0 or length < 2:
            return None
        place += 2 + length
