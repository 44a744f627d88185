"""No spelling of a foreign address reaches the directory as one that is served here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.smtp.dialogue import addresses, commands, replies
from postroom.smtp.dialogue.replies import Refusal
from tests.samples import samples
from tests.smtp.doubles import DOMAIN

ODD = st.sampled_from([*'@%!"\\:;,<>()[]. +', "alice", "elsewhere.example", DOMAIN, "é", "\u200b"])


@given(st.lists(ODD, max_size=12).map("".join))
def test_a_recipient_is_refused_or_has_one_at_and_a_plain_domain(path: str) -> None:
    try:
        address = addresses.read_recipient(path)
    except Refusal:
        return
    local, _, domain = address.rpartition("@")
    assert address.count("@") == 1
    assert domain == domain.lower()
    assert not set(domain) & set('"\\:;,<>()% !')
    assert not set(local.partition("+")[0]) & set("%!")


@given(st.text(max_size=60))
def test_any_text_behind_mail_or_rcpt_is_read_or_refused(text: str) -> None:
    for keyword in ("FROM", "TO"):
        try:
            argument = commands.read_path(f"{keyword}:{text}", keyword)
            addresses.read_sender(argument.path)
        except Refusal:
            continue
        assert text.lstrip(" ").startswith("<")


@samples("text", ["<" * 4000, '"' * 4000, 'TO:<"' + "\\" * 4000, "TO:<" + '"a"' * 1300, "TO:" + " " * 4000])
def test_a_hostile_argument_is_refused_quickly(text: str) -> None:
    with pytest.raises(Refusal):
        commands.read_path(text, "TO")


def test_a_quoted_name_that_needs_no_quotes_loses_them() -> None:
    assert addresses.read_recipient('"alice"@Postroom.Test') == "alice@postroom.test"
    assert addresses.read_recipient('"al\\ice"@postroom.test') == "alice@postroom.test"
    assert addresses.read_recipient('"al ice"@postroom.test') == '"al ice"@postroom.test'


def test_the_source_route_of_a_sender_is_ignored() -> None:
    assert addresses.read_sender("@relay.example,@other.example:ann@remote.example") == "ann@remote.example"


def test_a_size_that_is_no_number_is_no_size() -> None:
    with pytest.raises(Refusal) as refused:
        commands.require_mail_parameters({"SIZE": "²"}, 100)
    assert refused.value.reply == replies.BAD_ARGUMENT
