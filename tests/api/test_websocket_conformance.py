"""The server's side of RFC 6455 on bare sockets, after the groups of cases that test suites for it use."""

import asyncio
import struct
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
import pytest_asyncio

from postroom.assembly import Postroom, serving
from tests.api.raw_websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PATIENCE_SECONDS,
    PING,
    PONG,
    TEXT,
    Frame,
    RawWebSocket,
    encode,
    open_raw,
)
from tests.conftest import settings
from tests.mail.keys import signing_key

LONGEST_MESSAGE_BYTES = 65536
ASK, ANSWER = b'{"type":"ping"}', b'{"type":"pong"}'
NORMAL, PROTOCOL_ERROR, NOT_UTF8, TOO_BIG, TOO_MANY_MESSAGES = 1000, 1002, 1007, 1009, 4029
VALID_CODES = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999]
INVALID_CODES = [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65535]
EURO = "\u20ac".encode()
NOT_TEXTS = [
    b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",  # a surrogate
    b"\xf4\x90\x80\x80",  # beyond the last code point
    b"\xc0\xaf",  # an overlong slash
    b"\xe2\x82",  # cut off in the middle of a character
    b"\x80",  # a continuation byte alone
    b"\xff",
]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def postroom(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Postroom]:
    async with serving(settings(tmp_path_factory.mktemp("data")), make_key=signing_key) as running:
        yield running


@pytest_asyncio.fixture(params=["whole", "byte by byte"], loop_scope="module")
async def socket(request: pytest.FixtureRequest, postroom: Postroom) -> AsyncIterator[RawWebSocket]:
    assert postroom.first_token is not None
    opened = await open_raw(postroom.resources.config.base_url, postroom.first_token)
    opened.is_chopped = request.param != "whole"
    yield opened
    opened.writer.close()


async def is_answered(socket: RawWebSocket) -> bool:
    return await socket.receive() == Frame(TEXT, ANSWER)


async def is_failed(socket: RawWebSocket, code: int) -> bool:
    """Closed with this code, and the connection is at its end."""
    frame = await socket.close_frame()
    return frame is not None and frame.close_code == code and await socket.is_ended()


def padded(size: int) -> bytes:
    return ASK[:-1] + b" " * (size - len(ASK)) + b"}"


def in_pieces(opcode: int, payload: bytes, *cuts: int) -> Sequence[bytes]:
    bounds = [0, *cuts, len(payload)]
    pieces = [payload[start:end] for start, end in pairwise(bounds)]
    last = len(pieces) - 1
    return [
        encode(opcode if number == 0 else CONTINUATION, piece, is_final=number == last)
        for number, piece in enumerate(pieces)
    ]


@pytest.mark.parametrize("size", [125, 126, 127, 128, 65535, LONGEST_MESSAGE_BYTES])
async def test_a_text_of_any_length_up_to_the_limit_is_heard(socket: RawWebSocket, size: int) -> None:
    await socket.send(encode(TEXT, padded(size)))
    assert await is_answered(socket)


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
async def test_an_empty_message_gets_an_error_frame(socket: RawWebSocket, opcode: int) -> None:
    await socket.send(encode(opcode))
    assert (await socket.hear())["type"] == "error"


@pytest.mark.parametrize("size", [1, 125, 126, 65535, LONGEST_MESSAGE_BYTES])
async def test_a_binary_message_gets_an_error_frame(socket: RawWebSocket, size: int) -> None:
    await socket.send(encode(BINARY, b"\xfe" * size))
    assert (await socket.hear())["type"] == "error"


async def test_a_longer_message_is_closed_with_1009_whole_or_in_fragments(socket: RawWebSocket) -> None:
    half = LONGEST_MESSAGE_BYTES // 2
    await socket.send(*in_pieces(TEXT, b"x" * (LONGEST_MESSAGE_BYTES + 1), half))
    assert await is_failed(socket, TOO_BIG)


async def test_a_frame_that_says_it_is_huge_is_refused_by_its_head(socket: RawWebSocket) -> None:
    await socket.send(struct.pack("!BBQ", 0x80 | TEXT, 0x80 | 127, 100 * 1024 * 1024) + b"mask")
    assert await is_failed(socket, TOO_BIG)


async def test_a_length_with_its_highest_bit_set_is_refused(socket: RawWebSocket) -> None:
    await socket.send(struct.pack("!BBQ", 0x80 | TEXT, 0x80 | 127, 1 << 63) + b"mask")
    frame = await socket.close_frame()
    assert frame is not None
    assert frame.close_code in (PROTOCOL_ERROR, TOO_BIG)


@pytest.mark.parametrize("payload", [b"", b"hello", b"\x00\xff\xfe\xfd", b"\xfe" * 125])
async def test_a_ping_is_answered_with_its_payload(socket: RawWebSocket, payload: bytes) -> None:
    await socket.send(encode(PING, payload))
    assert await socket.receive() == Frame(PONG, payload)


async def test_many_pings_are_answered_in_order(socket: RawWebSocket) -> None:
    await socket.send(*(encode(PING, str(number).encode()) for number in range(20)))
    assert [await socket.receive() for _ in range(20)] == [
        Frame(PONG, str(number).encode()) for number in range(20)
    ]


@pytest.mark.parametrize("payload", [b"", b"unasked"])
async def test_a_pong_that_nobody_asked_for_is_ignored(socket: RawWebSocket, payload: bytes) -> None:
    await socket.send(encode(PONG, payload), encode(TEXT, ASK))
    assert await is_answered(socket)


@pytest.mark.parametrize("opcode", [PING, PONG, CLOSE])
async def test_a_control_frame_over_125_bytes_is_a_protocol_error(socket: RawWebSocket, opcode: int) -> None:
    await socket.send(encode(opcode, b"\xfe" * 126))
    assert await is_failed(socket, PROTOCOL_ERROR)


@pytest.mark.parametrize("opcode", [PING, PONG, CLOSE])
async def test_a_control_frame_in_fragments_is_a_protocol_error(socket: RawWebSocket, opcode: int) -> None:
    await socket.send(encode(opcode, b"", is_final=False), encode(CONTINUATION, b""))
    assert await is_failed(socket, PROTOCOL_ERROR)


@pytest.mark.parametrize("reserved", range(1, 8))
@pytest.mark.parametrize("opcode", [TEXT, PING])
async def test_a_reserved_bit_is_a_protocol_error(socket: RawWebSocket, opcode: int, reserved: int) -> None:
    await socket.send(encode(opcode, b"hello", reserved=reserved))
    assert await is_failed(socket, PROTOCOL_ERROR)


@pytest.mark.parametrize("opcode", [3, 4, 5, 6, 7, 11, 12, 13, 14, 15])
async def test_a_reserved_opcode_is_a_protocol_error(socket: RawWebSocket, opcode: int) -> None:
    await socket.send(encode(opcode, b"hello"))
    assert await is_failed(socket, PROTOCOL_ERROR)


async def test_an_unmasked_frame_is_a_protocol_error(socket: RawWebSocket) -> None:
    await socket.send(encode(TEXT, ASK, is_masked=False))
    assert await is_failed(socket, PROTOCOL_ERROR)


@pytest.mark.parametrize("cuts", [(5,), (0, 3, 3), (1, 2, 4, 8), tuple(range(1, len(ASK)))])
async def test_a_text_in_fragments_is_put_together(socket: RawWebSocket, cuts: tuple[int, ...]) -> None:
    await socket.send(*in_pieces(TEXT, ASK, *cuts))
    assert await is_answered(socket)


async def test_control_frames_between_fragments_are_answered_at_once(socket: RawWebSocket) -> None:
    first, second, third = in_pieces(TEXT, ASK, 4, 9)
    await socket.send(first, encode(PING, b"one"), second, encode(PONG, b"unasked"))
    assert await socket.receive() == Frame(PONG, b"one")
    await socket.send(encode(PING, b"two"), third)
    assert await socket.receive() == Frame(PONG, b"two")
    assert await is_answered(socket)


@pytest.mark.parametrize("is_final", [True, False])
async def test_a_continuation_of_nothing_is_a_protocol_error(socket: RawWebSocket, is_final: bool) -> None:
    await socket.send(encode(CONTINUATION, b"hello", is_final=is_final))
    assert await is_failed(socket, PROTOCOL_ERROR)


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
async def test_a_new_message_amid_fragments_is_a_protocol_error(socket: RawWebSocket, opcode: int) -> None:
    await socket.send(encode(TEXT, b"hello", is_final=False), encode(opcode, b"again"))
    assert await is_failed(socket, PROTOCOL_ERROR)


async def test_endless_fragments_are_closed_with_1009(socket: RawWebSocket) -> None:
    await socket.send(encode(TEXT, b"", is_final=False), *[encode(CONTINUATION, b"x", is_final=False)] * 1001)
    frame = await socket.close_frame()
    assert frame is not None
    assert frame.close_code == TOO_BIG


EMPTY_PART = encode(CONTINUATION, b"", is_final=False)


@pytest.mark.parametrize(
    "frame", [encode(PING, b""), encode(PONG, b"unasked"), EMPTY_PART, encode(TEXT, b"{}")]
)
async def test_frames_of_every_kind_count_toward_the_limit_of_messages(
    socket: RawWebSocket, frame: bytes
) -> None:
    begin = [encode(TEXT, b"", is_final=False)] if frame == EMPTY_PART else []
    await socket.send(*begin, *[frame] * 5000)
    closed = await socket.close_frame()
    assert closed is not None
    assert closed.close_code == TOO_MANY_MESSAGES


async def test_a_clients_fault_leaves_no_traceback_in_the_log(
    socket: RawWebSocket, postroom: Postroom, capsys: pytest.CaptureFixture[str]
) -> None:
    await socket.send(encode(TEXT, b"\xff\xfe"))
    assert await is_failed(socket, NOT_UTF8)
    port = postroom.resources.config.http.port
    for path in (b"/v1/ws\xc3\xa9", b"/v1/ws?token=\xff", b"/%ff%fe", b"/v1/ws%00"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        answer = await asyncio.wait_for(reader.readexactly(12), PATIENCE_SECONDS)
        assert answer[9:10] == b"4", (path, answer)
        writer.close()
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("payload", NOT_TEXTS)
async def test_a_text_that_is_not_utf8_is_closed_with_1007(socket: RawWebSocket, payload: bytes) -> None:
    await socket.send(encode(TEXT, payload))
    assert await is_failed(socket, NOT_UTF8)


@pytest.mark.parametrize("payload", NOT_TEXTS)
async def test_a_text_in_fragments_that_is_not_utf8_is_closed_with_1007(
    socket: RawWebSocket, payload: bytes
) -> None:
    await socket.send(*in_pieces(TEXT, b"hello" + payload, 5, 5 + len(payload) // 2))
    assert await is_failed(socket, NOT_UTF8)


async def test_a_character_may_be_cut_by_fragments(socket: RawWebSocket) -> None:
    text = b'{"type":"ping","note":"' + EURO + b'"}'
    middle = text.index(EURO) + 1
    await socket.send(*in_pieces(TEXT, text, middle, middle + 1))
    assert await is_answered(socket)


@pytest.mark.parametrize("code", VALID_CODES)
async def test_a_close_is_answered_with_its_code_and_ends_the_connection(
    socket: RawWebSocket, code: int
) -> None:
    await socket.send(encode(CLOSE, struct.pack("!H", code) + b"bye"))
    assert await is_failed(socket, code)


async def test_a_close_without_a_code_is_answered_without_one(socket: RawWebSocket) -> None:
    await socket.send(encode(CLOSE))
    assert await socket.close_frame() == Frame(CLOSE, b"")
    assert await socket.is_ended()


@pytest.mark.parametrize("code", INVALID_CODES)
async def test_a_close_with_a_code_that_means_nothing_is_a_protocol_error(
    socket: RawWebSocket, code: int
) -> None:
    await socket.send(encode(CLOSE, struct.pack("!H", code)))
    assert await is_failed(socket, PROTOCOL_ERROR)


async def test_a_close_with_half_a_code_is_a_protocol_error(socket: RawWebSocket) -> None:
    await socket.send(encode(CLOSE, b"\x03"))
    assert await is_failed(socket, PROTOCOL_ERROR)


async def test_a_close_reason_has_up_to_123_bytes_of_utf8(socket: RawWebSocket) -> None:
    await socket.send(encode(CLOSE, struct.pack("!H", NORMAL) + b"x" * 123))
    assert await is_failed(socket, NORMAL)


async def test_a_close_reason_that_is_not_utf8_is_closed_with_1007(socket: RawWebSocket) -> None:
    await socket.send(encode(CLOSE, struct.pack("!H", NORMAL) + b"\xce\xba\xff"))
    assert await is_failed(socket, NOT_UTF8)


async def test_nothing_after_a_close_is_heard(socket: RawWebSocket) -> None:
    await socket.send(encode(CLOSE, struct.pack("!H", NORMAL)), encode(TEXT, ASK), encode(PING, b"late"))
    assert await socket.receive() == Frame(CLOSE, struct.pack("!H", NORMAL))
    assert await socket.is_ended()


async def test_what_came_before_a_close_is_answered_first(socket: RawWebSocket) -> None:
    await socket.send(encode(PING, b"one"), encode(CLOSE, struct.pack("!H", NORMAL)))
    assert await socket.receive() == Frame(PONG, b"one")
    assert await is_failed(socket, NORMAL)
