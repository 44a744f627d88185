"""Links are found in order, and those that verify, sign in or unsubscribe are told from the others."""

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.html.markup import tokens
from postroom_mail.html.page import read_page
from postroom_mail.reading import links as reader
from postroom_mail.reading.links import LinkDetail, unsubscribe_targets
from tests.mail.link_samples import LABELS, SENTENCES
from tests.samples import samples


def links(text: str, html: str) -> tuple[str, ...]:
    return reader.links(text, read_page(html))


def link_details(text: str, html: str, list_unsubscribe: tuple[str, ...] = ()) -> list[LinkDetail]:
    return reader.link_details(text, read_page(html), list_unsubscribe)


def test_links_come_from_targets_and_text_in_order_without_repeats() -> None:
    html = '<a href="https://a.example/?x=1&amp;y=2">a</a> <a href=" HTTP://b.example ">b</a>'
    text = "See https://a.example/?x=1&y=2, (https://c.example/x_(y)) or <http://d.example/>."
    assert links(text, html) == (
        "https://a.example/?x=1&y=2",
        "HTTP://b.example",
        "https://c.example/x_(y)",
        "http://d.example/",
    )


@samples(
    "target",
    [
        "javascript:alert(1)",
        "mailto:a@b.example",
        "//x.example",
        "http://",
        "http://[",
        "https:///x",
        "http://a b",
        "x",
    ],
)
def test_targets_that_are_no_web_address_are_left_out(target: str) -> None:
    assert links("", f'<a href="{target}">x</a>') == ()


def test_line_breaks_inside_a_target_are_ignored_as_browsers_do() -> None:
    assert links("", '<a href="https://x.example/\n  a">x</a><a href="ht\ntps://y.example/">y</a>') == (
        "https://y.example/",
    )


def test_the_number_and_length_of_links_are_bounded() -> None:
    assert len(links(" ".join(f"http://x{number}.example" for number in range(500)), "")) == 100
    assert links("http://x.example/" + "a" * 3_000, "") == ()


@samples(("purpose", "label"), LABELS)
def test_the_label_of_a_link_tells_its_purpose(purpose: str, label: str) -> None:
    html = f'<p>Hello Ann,</p><p>Thank you.</p><a href="https://t.example/c/x1">{label}</a><p>Bye</p>'
    assert [detail.purpose for detail in link_details("", html)] == [purpose]


@samples(("purpose", "sentence"), SENTENCES)
def test_the_sentence_of_a_bare_link_tells_its_purpose(purpose: str, sentence: str) -> None:
    text = sentence.replace("@", "https://t.example/c/x1")
    assert [detail.purpose for detail in link_details(text, "")] == [purpose]


@samples(
    ("url", "purpose"),
    [
        ("https://x.example/verify?token=abc", "verify"),
        ("https://x.example/users/confirm_email/abc", "verify"),
        ("https://x.example/account/activate/abc", "verify"),
        ("https://x.example/auth/magic-link?t=1", "signin"),
        ("https://x.example/login", "signin"),
        ("https://x.example/u/unsubscribe/1", "unsubscribe"),
        ("https://x.example/opt-out?id=1", "unsubscribe"),
        ("https://x.example/order/confirm/1", "other"),
        ("https://confirm.example/about", "other"),
        ("https://x.example/", "other"),
    ],
)
def test_the_words_of_an_address_tell_its_purpose(url: str, purpose: str) -> None:
    assert [detail.purpose for detail in link_details(url, "")] == [purpose]


def test_a_whole_mail_has_one_link_to_verify_and_one_to_unsubscribe() -> None:
    html = """<a href="https://x.example/"><img alt="Acme"></a><h1>Welcome!</h1>
    <p>Please confirm your email address by clicking the button.</p>
    <a href="https://t.example/ls/click?upn=1">Confirm email address</a>
    <p>Or open <a href="https://t.example/ls/click?upn=2">this link</a> to verify your account.</p>
    <a href="https://x.example/help">Help</a> <a href="https://x.example/privacy">Privacy</a>
    <a href="https://t.example/ls/click?upn=3">Unsubscribe</a>"""
    assert [detail.purpose for detail in link_details("", html)] == [
        *("other", "verify", "verify", "other", "other", "unsubscribe"),
    ]


def test_the_header_field_names_links_to_unsubscribe() -> None:
    targets = unsubscribe_targets("<mailto:u@x.example?subject=u>, <https://x.example/1>")
    assert targets == ("mailto:u@x.example?subject=u", "https://x.example/1")
    details = link_details("https://x.example/1 https://x.example/2", "", targets)
    assert [detail.purpose for detail in details] == ["unsubscribe", "other"]


def test_words_of_styles_and_scripts_say_nothing() -> None:
    html = '<style>.verify your email</style><script>log in</script><a href="https://x.example/1">go</a>'
    assert [detail.purpose for detail in link_details("", html)] == ["other"]


@given(st.text(max_size=200), st.text(alphabet=st.sampled_from("<a href=\"'http:/.[]>&; \n"), max_size=100))
def test_any_text_can_be_searched_and_details_follow_the_links(text: str, html: str) -> None:
    found = links(text, html)
    assert all(link.lower().startswith("http") for link in found)
    assert tuple(detail.url for detail in link_details(text, html)) == found


def test_targets_without_quotes_are_read_whole() -> None:
    html = "<a href=https://a.example/?x=1&amp;y=2>a</a> <a href=https://b.example/c/>b</a> <area href=x/>"
    assert links("", html) == ("https://a.example/?x=1&y=2", "https://b.example/c/")
    assert [tag.attributes for tag in tokens("<td width=50/><td width=50 />").start_tags] == [
        {"width": "50/"},
        {"width": "50"},
    ]


@samples("unit", ["http://a", "http://a.b ", '<a href="http://a.b">', "<a href=//>", "://", "verify "])
def test_long_hostile_mails_give_few_links(unit: str) -> None:
    assert len(link_details(unit * 5_000, unit * 5_000)) <= 100
