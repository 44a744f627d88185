import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.net.public_addresses import ForbiddenAddress, check_host_literal, is_public, parse_loose_ipv4
from tests.samples import samples

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.215.14",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
]
NOT_PUBLIC = {
    "unspecified": ["0.0.0.0", "0.1.2.3", "::"],
    "loopback": ["127.0.0.1", "127.255.255.254", "::1"],
    "private": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"],
    "carrier-grade NAT": ["100.64.0.1", "100.127.255.255"],
    "link-local": ["169.254.1.1", "fe80::1", "fe80::1%eth0", "febf::1"],
    "metadata": ["169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1"],
    "reserved": ["240.0.0.1", "255.255.255.255", "192.0.0.8", "192.88.99.1", "4000::1", "5f00::1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "benchmark": ["198.18.0.1", "198.19.255.255", "2001:2::1"],
    "mapped": ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::ffff:8.8.8.8%1"],
    "compatible": ["::127.0.0.1", "::8.8.8.8"],
    "6to4": ["2002:7f00:1::", "2002:808:808::1"],
    "Teredo": ["2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    "NAT64": ["64:ff9b::127.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::808:808", "64:ff9b:1::a00:1"],
    "unique-local": ["fc00::1", "fdff::1"],
    "site-local": ["fec0::1"],
    "discard": ["100::1"],
    "no address": ["", "example.com", "1.2.3", "1.2.3.4.5", "0x7f.0.0.1", "1.2.3.04", "::g", "1.1.1.1 "],
}


@samples("ip", PUBLIC)
def test_an_address_of_the_internet_is_public(ip: str) -> None:
    assert is_public(ip)


@samples(("kind", "ip"), [(kind, ip) for kind, ips in NOT_PUBLIC.items() for ip in ips])
def test_every_other_address_is_not_public(kind: str, ip: str) -> None:
    assert not is_public(ip), kind


LOOSE = {
    "127.0.0.1": "127.0.0.1",
    "127.0.0.1.": "127.0.0.1",
    "2130706433": "127.0.0.1",
    "017700000001": "127.0.0.1",
    "0x7f000001": "127.0.0.1",
    "0X7F.1": "127.0.0.1",
    "0177.0.0.1": "127.0.0.1",
    "0x7f.0x0.0x0.0x1": "127.0.0.1",
    "127.1": "127.0.0.1",
    "127.0.1": "127.0.0.1",
    "10.257": "10.0.1.1",
    "0": "0.0.0.0",
    "0x": "0.0.0.0",
    "00000000000000000000177.0.0.1": "127.0.0.1",
    "\uff11\uff12\uff17.0.0.1": "127.0.0.1",
    "\u2460\u2461\u2466.0.0.1": "127.0.0.1",
    "127\u30020\uff0e0\uff611": "127.0.0.1",
    "127.0.0.\u200b1": "127.0.0.1",
    "1\u00ad27.0.0.1": "127.0.0.1",
}
NOT_LOOSE = [
    "",
    ".",
    "example.com",
    "1.2.3.4.5",
    "256.0.0.1",
    "1.2.3.256",
    "1.2.65536",
    "4294967296",
    "08.0.0.1",
    "0xg.0.0.1",
    "1..2",
    "-1",
    "1e3",
    "127.0.0.1 ",
    "9" * 5000,
]


@samples(("spelling", "address"), LOOSE.items())
def test_loose_spellings_are_read_as_the_address_they_reach(spelling: str, address: str) -> None:
    assert parse_loose_ipv4(spelling) == address


@samples("host", NOT_LOOSE)
def test_what_is_no_loose_address_is_none(host: str) -> None:
    assert parse_loose_ipv4(host) is None


@given(st.from_regex(r"(0[xX]?)?[0-9a-f]{1,10}(\.(0[xX]?)?[0-9a-f]{1,4}){0,3}", fullmatch=True))
def test_all_that_the_system_reads_as_an_address_is_read_the_same(host: str) -> None:
    try:
        expected = socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return
    assert parse_loose_ipv4(host) == expected


@samples("host", ["example.com", "mail.example.com.", "xn--bcher-kva.example", "1e100.net", "0x7f.com"])
def test_a_name_is_no_literal(host: str) -> None:
    assert check_host_literal(host) is None


@samples(
    ("host", "address"),
    [
        ("8.8.8.8", "8.8.8.8"),
        ("134744072", "8.8.8.8"),
        ("[2606:4700:4700::1111]", "2606:4700:4700::1111"),
        ("2606:4700:4700:0:0:0:0:1111", "2606:4700:4700::1111"),
    ],
)
def test_a_public_literal_is_returned_in_its_ordinary_spelling(host: str, address: str) -> None:
    assert check_host_literal(host) == address


@samples(
    "host",
    [
        *LOOSE,
        "[::1]",
        "::1",
        "[::ffff:127.0.0.1]",
        "[fe80::1%25eth0]",
        "[::1",
        "[127.0.0.1]",
        "1.2.3.256",
        "example.1",
        "08.0.0.1",
        "127.0.0.1 x",
        "exam\nple.com",
        "",
        "a" * 300,
    ],
)
def test_a_literal_that_is_not_public_or_not_clear_is_refused(host: str) -> None:
    with pytest.raises(ForbiddenAddress):
        check_host_literal(host)


@given(st.text(max_size=400))
def test_any_text_is_a_name_a_public_address_or_refused(host: str) -> None:
    try:
        address = check_host_literal(host)
    except ForbiddenAddress:
        return
    assert address is None or is_public(address)
