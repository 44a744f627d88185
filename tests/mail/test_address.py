"""Address lists as people and programs write them, the form to compare by, and strict validation."""

import pytest
from email_validator import validate_email
from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.mime import address
from postroom_mail.mime.address import Address
from tests.samples import samples

LISTS = {
    "": [],
    "a@x.example": [("", "a@x.example")],
    "Ann Other <a@x.example>": [("Ann Other", "a@x.example")],
    '"Other, Ann" <a@x.example>, b@x.example': [("Other, Ann", "a@x.example"), ("", "b@x.example")],
    "a@x.example (Ann (the) Other)": [("Ann (the) Other", "a@x.example")],
    "(before) a@x.example": [("before", "a@x.example")],
    "Team: a@x.example, b@x.example; c@x.example": [
        ("", "a@x.example"),
        ("", "b@x.example"),
        ("", "c@x.example"),
    ],
    "undisclosed-recipients:;": [],
    "a@x.example; b@x.example": [("", "a@x.example"), ("", "b@x.example")],
    "Ann a@x.example": [("Ann", "a@x.example")],
    "Ann <a@x.example> <b@x.example>": [("Ann", "a@x.example"), ("", "b@x.example")],
    "Ann <a@x.example, Bob <b@x.example>": [("Ann", "a@x.example"), ("Bob", "b@x.example")],
    '"Ann <a@x.example>': [("Ann", "a@x.example")],
    "Ann (oops <a@x.example>": [("Ann oops", "a@x.example")],
    '"ceo@bank.example" <evil@x.example>': [("ceo@bank.example", "evil@x.example")],
    "=?utf-8?Q?=3Cceo=40bank.example=3E?= <evil@x.example>": [("<ceo@bank.example>", "evil@x.example")],
    "=?utf-8?Q?Other,_Ann?= <a@x.example>": [("Other, Ann", "a@x.example")],
    "user@[IPv6:2001:db8::1]": [("", "user@[IPv6:2001:db8::1]")],
    '"two words"@x.example': [("", '"two words"@x.example')],
    "<@hop.example,@relay.example:a@x.example>": [("", "a@x.example")],
    "ünï@exämple.example": [("", "ünï@exämple.example")],
    "root, <>, nobody@, @nowhere, <two words@x.example>": [],
    "a@x.example,,, ,b@x.example": [("", "a@x.example"), ("", "b@x.example")],
    f"{'a' * 400}@x.example": [],
    "ann@(home)x.example": [("home", "ann@x.example")],
    "ann(c)@x.example": [("c", "ann@x.example")],
    "ann@x(c).example": [("c", "ann@x.example")],
    "ann . other @ x . example": [("", "ann.other@x.example")],
    "ann@x. example": [("", "ann@x.example")],
    "Ann <ann . other @ x . example>": [("Ann", "ann.other@x.example")],
    "Ann <ann@(at home)x.example>": [("Ann", "ann@x.example")],
    "Ann <ann@(Home, sweet)x.example>": [("Ann", "ann@x.example")],
    "Ann <ann(c)@x.example(d)>": [("Ann", "ann@x.example")],
    '<"a . b"@x.example>': [("", '"a . b"@x.example')],
    "J. Smith js@x.example": [("J. Smith", "js@x.example")],
    "Ann(c)Bob ann@x.example": [("Ann Bob", "ann@x.example")],
    "<<a@x.example>>, b@x.example": [("", "a@x.example"), ("", "b@x.example")],
    '"Other,  Ann" <a@x.example>; Bob   B <b@x.example>': [
        ("Other,  Ann", "a@x.example"),
        ("Bob B", "b@x.example"),
    ],
}

NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), include_characters=" "), max_size=30
)
LOCALS = st.from_regex(r"[a-z0-9.+_-]{1,20}", fullmatch=True)
DOMAINS = st.from_regex(r"[a-z0-9-]{1,10}\.(example|test)", fullmatch=True)
ADDRESSES = st.builds(
    lambda name, local, domain: Address(name.strip(), f"{local}@{domain}"),
    NAMES.filter(lambda name: "=?" not in name),
    LOCALS,
    DOMAINS,
)


@samples("value", LISTS)
def test_a_list_is_read_as_meant(value: str) -> None:
    assert address.parse_list(value) == tuple(Address(*pair) for pair in LISTS[value])


@given(st.lists(ADDRESSES, max_size=5))
def test_a_written_list_reads_back(addresses: list[Address]) -> None:
    assert address.parse_list(", ".join(map(str, addresses))) == tuple(addresses)


@given(st.text(max_size=200))
def test_any_text_gives_only_plausible_addresses(value: str) -> None:
    assert all(address.is_plausible(found.address) for found in address.parse_list(value))


@given(st.builds("{}@{}".format, st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20)))
def test_normalizing_twice_changes_nothing(value: str) -> None:
    for found in address.parse_list(value):
        normalized = address.normalize(found.address)
        assert address.normalize(normalized) == normalized


@samples(
    ("given", "normalized"),
    [
        ("Ada@Analytical.Example", "ada@analytical.example"),
        (" ada@analytical.example. ", "ada@analytical.example"),
        ("ada@BÜCHER.example", "ada@xn--bcher-kva.example"),
        ("ada@xn--bcher-kva.example", "ada@xn--bcher-kva.example"),
        ("U\u0308@x.example", "ü@x.example"),
        ("ada", "ada"),
        ("ada@\u2603\u200d.example", "ada@\u2603\u200d.example"),
        ("", ""),
    ],
)
def test_normalize_gives_the_form_to_compare_by(given: str, normalized: str) -> None:
    assert address.normalize(given) == normalized


@samples(
    ("given", "parts"),
    [
        ("a@x.example", ("a", "x.example")),
        ('"a@b"@x.example', ('"a@b"', "x.example")),
        ("postmaster", ("postmaster", "")),
        ("", ("", "")),
    ],
)
def test_split_cuts_at_the_last_at(given: str, parts: tuple[str, str]) -> None:
    assert address.split(given) == parts


@samples(
    ("given", "base"),
    [
        ("desk+invoices@x.example", "desk@x.example"),
        ("desk+a+b@x.example", "desk@x.example"),
        ("desk@x.example", "desk@x.example"),
        ("+tag@x.example", "+tag@x.example"),
        ('"a+b"@x.example', '"a+b"@x.example'),
        ("desk+tag", "desk"),
    ],
)
def test_base_of_drops_the_tag(given: str, base: str) -> None:
    assert address.base_of(given) == base


@samples(
    ("given", "valid"),
    [
        ("Ada@Analytical.Example", "Ada@analytical.example"),
        ("desk@postroom.localhost", "desk@postroom.localhost"),
        ("desk+tag@POSTROOM.localhost", "desk+tag@postroom.localhost"),
        ("a@localhost", "a@localhost"),
        ("a@mail.test", "a@mail.test"),
        ("a@printer.local", "a@printer.local"),
        ("a@example.com", "a@example.com"),
        ("a@bücher.example", "a@xn--bcher-kva.example"),
        ("ü@x.example", "ü@x.example"),
    ],
)
def test_validate_accepts_what_can_be_delivered_somewhere(given: str, valid: str) -> None:
    assert address.validate(given) == valid


@samples(
    "given",
    [
        "",
        "ada",
        "@x.example",
        "ada@",
        "ada@nodot",
        "a b@x.example",
        "a@x..example",
        "a..b@x.example",
        "a@-x.example",
        "a@x_y.example",
        "Ada <ada@x.example>",
        "a@x.example, b@x.example",
        "a@x.example\r\nBcc: b@x.example",
        "a@[127.0.0.1]",
        '"quoted local"@x.example',
        f"{'a' * 65}@x.example",
        f"a@{'x' * 330}.example",
        "a@b@postroom.localhost",
        "a\ud800@x.example",
    ],
)
def test_validate_refuses_everything_else(given: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        address.validate(given)


@given(
    st.from_regex(
        r"[a-zA-Z0-9!#$%&'*+/=?^_`{|}~.-]{1,70}@([a-zA-Z0-9-]{1,45}\.){1,4}[a-zA-Z0-9-]{1,22}", fullmatch=True
    )
)
def test_the_short_way_for_plain_addresses_agrees_with_the_long_one(given_address: str) -> None:
    if address._PLAIN_ADDRESS.fullmatch(given_address):
        special = given_address.lower().rpartition(".")[2] in address._SPECIAL_USE
        stand_in = ".example" if special else ""
        checked = validate_email(given_address + stand_in, check_deliverability=False, strict=True)
        expected = f"{checked.local_part}@{checked.ascii_domain.removesuffix(stand_in)}"
        assert address.validate(given_address) == expected


@given(st.text(alphabet="aB9 .+_-@<>", max_size=30) | st.from_regex(address._PLAIN, fullmatch=True))
def test_plain_fields_are_read_as_token_by_token(value: str) -> None:
    assert address.parse_list(value) == tuple(address._mailboxes(value, is_quick=False))


@given(
    st.text(alphabet='aé9 .+_-@<>,;"(', max_size=40)
    | st.lists(ADDRESSES, max_size=4).map(lambda all: ", ".join(map(str, all)))
)
def test_plain_mailboxes_of_a_list_are_read_as_token_by_token(value: str) -> None:
    assert tuple(address._mailboxes(value)) == tuple(address._mailboxes(value, is_quick=False))


@samples(
    "unit",
    [
        "<",
        "<>",
        "< ",
        "<,",
        "a<",
        "()",
        "(",
        '""',
        '"',
        "a ",
        "a@ ",
        "a . ",
        "<(",
        "<(a)",
        ":",
        ",",
        "\\",
        "=?utf-8?q?a?= ",
    ],
)
def test_a_flood_of_marks_is_no_address_and_hides_none_before_it(unit: str) -> None:
    found = address.parse_list(f"a@x.example, Ann <b@x.example>, {unit * 100_000}")
    assert found[:2] == (Address("", "a@x.example"), Address("Ann", "b@x.example"))
    assert len(found) <= 3


@samples("entry", ["a@x.example", "Ann <a@x.example>", "é <a@x.example>", '"A, B" <a@x.example>'])
def test_a_long_list_of_real_mailboxes_is_read_to_its_bound(entry: str) -> None:
    assert len(address.parse_list(", ".join([entry] * 12_000))) == address.MAX_ADDRESSES


def test_names_in_encoded_words_are_read_by_the_thousand() -> None:
    assert len(address.parse_list(", ".join(["=?utf-8?Q?Ann=C3=A9?= <a@x.example>"] * 5_000))) == 5_000
