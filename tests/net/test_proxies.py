"""The client that a proxy names: read strictly, within bounds, and only from trusted proxies."""

import struct
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.net.proxies import MAX_HOPS, Proxies
from postroom.net.proxy_protocol import (
    V1_LONGEST_BYTES,
    V2_LONGEST_BYTES,
    V2_START,
    NoProxyHeader,
    ProxyHeader,
    parse_header,
)
from tests.samples import samples

HTTP = b"GET / HTTP/1.1\r\n"
PROXIES = Proxies(map(ip_network, ("10.0.0.0/8", "2001:db8:1::/48")))


def v2(command: int, family: int, inside: bytes) -> bytes:
    return V2_START + struct.pack("!BBH", command, family, len(inside)) + inside


TCP4 = bytes((192, 0, 2, 7, 10, 0, 0, 1)) + struct.pack("!HH", 40000, 25)
TCP6 = bytes.fromhex("20010db8000000000000000000000007" * 2) + struct.pack("!HH", 40000, 25)
MAPPED = bytes.fromhex("00000000000000000000ffffc0000207" * 2) + struct.pack("!HH", 40000, 25)


@samples(
    ("header", "address"),
    [
        (b"PROXY TCP4 192.0.2.7 10.0.0.1 40000 25\r\n", "192.0.2.7"),
        (b"PROXY TCP6 2001:db8::7 2001:db8::1 40000 25\r\n", "2001:db8::7"),
        (b"PROXY UNKNOWN\r\n", None),
        (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", None),
        (v2(0x21, 0x11, TCP4), "192.0.2.7"),
        (v2(0x21, 0x11, TCP4 + b"\x04\x00\x01\x00"), "192.0.2.7"),
        (v2(0x21, 0x21, TCP6), "2001:db8::7"),
        (v2(0x21, 0x21, MAPPED), "192.0.2.7"),
        (v2(0x20, 0x00, b""), None),
        (v2(0x20, 0x11, TCP4), None),
        (v2(0x21, 0x31, bytes(216)), None),
    ],
)
def test_a_header_is_read_whatever_pieces_it_comes_in(header: bytes, address: str | None) -> None:
    for end in range(len(header)):
        assert parse_header(header[:end]) is None
    for rest in (b"", HTTP):
        assert parse_header(header + rest) == ProxyHeader(address, len(header))


@samples(
    "said",
    [
        HTTP,
        b"EHLO there\r\n",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 40000\r\n",
        b"PROXY TCP4 2001:db8::7 10.0.0.1 40000 25\r\n",
        b"PROXY TCP4 192.0.2.777 10.0.0.1 40000 25\r\n",
        b"PROXY TCP6 1.2.3.4 10.0.0.1 40000 25\r\n",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 40000 25\n" + b" " * V1_LONGEST_BYTES,
        b"PROXY " + b"a" * V1_LONGEST_BYTES,
        b"PROXY \x00\r\n",
        v2(0x11, 0x11, TCP4),
        v2(0x22, 0x11, TCP4),
        v2(0x21, 0x11, TCP4[:11]),
        v2(0x21, 0x21, TCP6[:35]),
        v2(0x21, 0x11, bytes(V2_LONGEST_BYTES)),
    ],
)
def test_what_is_no_header_is_none(said: bytes) -> None:
    with pytest.raises(NoProxyHeader):
        parse_header(said)


@given(
    st.sampled_from((b"", b"PROXY ", b"PROXY TCP4 ", V2_START, V2_START + b"\x21\x11")),
    st.binary(max_size=300),
)
def test_no_bytes_raise_anything_else(start: bytes, rest: bytes) -> None:
    try:
        found = parse_header(start + rest)
    except NoProxyHeader:
        return
    assert found is None or found.length <= len(start + rest)


def client(peer: str, *fields: tuple[str, str]) -> str:
    return PROXIES.client_of(peer, [(name.encode(), value.encode("latin-1")) for name, value in fields])


@samples(
    ("said", "believed"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7:4711", "192.0.2.7"),
        ("[2001:db8::7]:4711", "2001:db8::7"),
        ("2001:db8::7", "2001:db8::7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("6.6.6.6, 192.0.2.7", "192.0.2.7"),
        ("6.6.6.6, 192.0.2.7, 10.1.1.1", "192.0.2.7"),
        ("192.0.2.7, nonsense", "10.0.0.1"),
        ("192.0.2.7, nonsense, 10.1.1.1", "10.1.1.1"),
        ("10.2.2.2, 10.1.1.1", "10.2.2.2"),
        ("", "10.0.0.1"),
        ("\xff\xfe", "10.0.0.1"),
        (", ".join(["192.0.2.7", *["10.1.1.1"] * MAX_HOPS]), "10.1.1.1"),
    ],
)
def test_hops_are_believed_from_the_right_as_far_as_the_list_goes(said: str, believed: str) -> None:
    assert client("10.0.0.1", ("x-forwarded-for", said)) == believed


@samples(
    ("said", "believed"),
    [
        ("for=192.0.2.7", "192.0.2.7"),
        ("For=192.0.2.7;proto=https;by=10.0.0.1", "192.0.2.7"),
        ('proto=https; for="[2001:db8::7]:4711"', "2001:db8::7"),
        ('for=6.6.6.6, for="192.0.2.7:80"', "192.0.2.7"),
        ("for=192.0.2.7, for=unknown", "10.0.0.1"),
        ("for=_hidden", "10.0.0.1"),
        ("proto=https", "10.0.0.1"),
        ("xfor=192.0.2.7", "10.0.0.1"),
    ],
)
def test_the_standard_field_is_read_the_same_way(said: str, believed: str) -> None:
    assert client("10.0.0.1", ("forwarded", said)) == believed


def test_of_two_fields_that_disagree_neither_counts() -> None:
    real, forged = ("x-forwarded-for", "192.0.2.7"), ("forwarded", "for=6.6.6.6")
    assert client("10.0.0.1", real, forged) == "10.0.0.1"
    assert client("10.0.0.1", real, ("forwarded", "for=192.0.2.7")) == "192.0.2.7"
    assert client("10.0.0.1", real, ("x-forwarded-for", "192.0.2.8")) == "192.0.2.8"


def test_a_stranger_is_not_believed() -> None:
    assert client("192.0.2.1", ("x-forwarded-for", "6.6.6.6")) == "192.0.2.1"
    assert client("unknown", ("x-forwarded-for", "6.6.6.6")) == "unknown"
    assert Proxies().client_of("10.0.0.1", [(b"x-forwarded-for", b"6.6.6.6")]) == "10.0.0.1"
    assert PROXIES.trusts("::ffff:10.0.0.1")
