"""Only the new words of a reply are left."""

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.reading.reply import reply_text
from tests.mail.reply_samples import FOOTERS, FORWARDS, HEADS, OTHER_FIRST_FIELDS, WHOLE
from tests.samples import samples

CUTS = [
    "-----Original Message-----\nold",
    "----- Ursprüngliche Nachricht -----\nold",
    "From: Ann <ann@example.com>\nSent: Monday\nTo: Bob\nSubject: Re: x\n\nold",
    "*From:* Ann\n*Sent:* Monday\n*To:* Bob\n\nold",
    "________________________________\nFrom: Ann\nSent: Monday\nTo: Bob\n\nold",
    "De : Ann\nEnvoyé : lundi\nÀ : Bob\nObjet : x\n\nold",
    "--\nBob",
    "Sent from my iPhone\n\n> old",
    *(f"{head}\n\nold" for head in OTHER_FIRST_FIELDS),
    *FOOTERS,
]
LINES = st.lists(
    st.sampled_from(
        ["> a", "b", "", " ", "-- ", "On 3 Nov 2025, Ann wrote:", "From: a@x", "Sent: b", "To: c", "c  "]
    )
    | st.text(max_size=12)
).map("\n".join)
ALL_HEADS = [head for heads in HEADS.values() for head in heads]


@samples("head", ALL_HEADS)
def test_a_quote_under_its_head_is_left_out(head: str) -> None:
    assert reply_text(f"Yes, please.\n\n{head}\n\n> old\n> older\n>> oldest\n") == "Yes, please."


@samples("head", ALL_HEADS)
def test_an_unmarked_quote_under_a_head_is_left_out(head: str) -> None:
    assert reply_text(f"Yes, please.\r\n\r\n{head}\r\nold text\r\n") == "Yes, please."


@samples("cut", CUTS)
def test_copied_heads_footers_and_signatures_end_the_reply(cut: str) -> None:
    assert reply_text(f"Yes, please.\n\n{cut}\n") == "Yes, please."


def test_answers_between_and_below_quotes_stay() -> None:
    body = "On 3 Nov 2025, Ann wrote:\n> one?\n\nYes.\n\n> two?\n\nNo.\n-- \nBob"
    assert reply_text(body) == "Yes.\n\nNo."


@samples("body", WHOLE)
def test_a_mail_without_quotes_is_whole(body: str) -> None:
    assert reply_text(body) == body


@samples(
    "quoted",
    [
        "On Fri, May 6, 2011 at 6:03 PM, Roman of Hacker News\n<roman@there.example> wrote:\n\n> old",
        "On Fri, May 6, 2011 at 6:03 PM, Roman\nof Hacker\nNews <roman@there.example> wrote:\n> old",
        "Am Fr., 6. Mai 2011 um 18:03 Uhr schrieb Roman\n<roman@there.example>:\n\n> old",
        "On Tue, Apr 11, 2017 at 10:07 PM Ann\n\n<\nmailto:Ann <ann@there.example>\n> wrote:\nold",
        "From: ann@there.example\nDate: Wed, 16 May 2012 00:15:02 -0600\n\nold",
        "Date: Wed, 16 May 2012 00:15:02 -0600\nTo: ann@there.example\n\nold",
        "On 3 Nov 2025, Ann wrote:\n> a\n (http://there.example/c/YzOTYzMmE) >\n> b",
        "On 3 Nov 2025, Ann wrote:\n> View (http://there.example/action\n_nonce=3dd518)\n> b",
    ],
)
def test_wrapped_heads_and_broken_quotes_are_left_out(quoted: str) -> None:
    assert reply_text(f"Yes, please.\n\n{quoted}") == "Yes, please."


def test_dashes_before_a_head_on_the_line_of_the_reply_go_with_it() -> None:
    assert reply_text("reply--- On Wed, Apr 4, 2012 at 3:59 PM, me@there.example wrote:\n> Hi") == "reply"


def test_arrows_around_a_link_are_no_quote() -> None:
    body = "Visit us\n>>> >>>  http://www.there.example <<<\nby clicking"
    assert reply_text(body) == body


def test_a_smile_between_quotes_stays() -> None:
    assert reply_text("On 3 Nov 2025, Ann wrote:\n> a\n:)\n> b") == ":)"


def test_a_mail_of_quotes_only_has_no_new_text() -> None:
    assert reply_text("> a\n> b\n") == ""
    assert reply_text("On 3 Nov 2025, Ann wrote:\n> a\n") == ""
    assert reply_text("") == ""


@samples("forward", FORWARDS)
def test_a_forward_keeps_its_text_with_and_without_a_note(forward: str) -> None:
    assert reply_text(forward) == forward
    assert reply_text(f"See below.\n\n{forward}\n") == f"See below.\n\n{forward}"


def test_the_signature_above_a_forward_is_left_out() -> None:
    body = "See below.\n-- \nBob\n\n---------- Forwarded message ---------\nFrom: Ann\n\nThe plan"
    assert reply_text(body) == "See below.\n---------- Forwarded message ---------\nFrom: Ann\n\nThe plan"


def test_the_subject_tells_a_forward_from_a_reply_where_the_head_does_not() -> None:
    body = "See below.\n\nFrom: Ann <ann@example.com>\nSent: Monday\nTo: Bob\nSubject: Plan\n\nThe plan."
    assert reply_text(body, "Re: Plan") == "See below."
    for subject in ("FW: Plan", "Fwd: Plan", "WG: Plan", "TR : Plan", "转发\uff1a计划"):
        assert reply_text(body, subject) == body


def test_a_forward_inside_the_quoted_history_is_quoted() -> None:
    body = "Yes.\n\nOn 3 Nov 2025, Ann wrote:\n> See:\n> ---------- Forwarded message ---------\n> The plan\n"
    assert reply_text(body) == "Yes."


def bodies() -> list[str]:
    below = [*ALL_HEADS, *OTHER_FIRST_FIELDS, *FOOTERS]
    return [*(f"Yes, please.\n\nBob  \n\n\nand Ann\n\n{cut}\n> old\n" for cut in below), *FORWARDS, *WHOLE]


@samples("body", bodies())
def test_the_reply_to_the_samples_stands_in_the_body(body: str) -> None:
    found = reply_text(body)
    assert found != ""
    assert found in body


# Written by programs that put the head behind the words, wrap it, or leave half of it out.
ODD_HEADS = [
    ("reply On Wed, Apr 4, 2012 at 5:00 PM, Ann Other <ann@example.com> wrote:\n> old", "reply"),
    ("Good. On Wed, Apr 4, 2012 at 5:00 PM, Ann <ann@example.com> wrote: old text here", "Good."),
    ("On it! On Wed, Apr 4, 2012 at 5:00 PM, Ann <ann@example.com> wrote:\n> old", "On it!"),
    ("Yes.\n\nOn Wed, Apr 4, 2012 at\n5:00 PM, Ann\nOther\n<ann@example.com>\nwrote:\n> old", "Yes."),
    ("Yes.\n\nOn Apr 4, 2012, at 5:00 PM, Ann Other sent:\n\n> old", "Yes."),
    ("Yes.\n\n2011/4/7 Ann Other <ann@example.com>:\n> old", "Yes."),
    ("Yes.\n\n2011/4/7 Ann Other <ann@example.com>\n\n> old", "Yes."),
    ("Kyllä.\n\nma 3. marrask. 2025 klo 10.00 Ann (ann@example.com) kirjoitti:\n> old", "Kyllä."),
    ("Passt. Am 3.11.2025 um 10:00 schrieb Ann <ann@example.com>:\n> alt", "Passt."),
    ("D'accord. Le lun. 3 nov. 2025 à 10:00, Ann <ann@example.com> a écrit :\n> vieux", "D'accord."),
    ("ok\nOn Wed, Apr 4, 2012 at 5:00 PM, Ann\n> old", "ok"),
    ("Agreed.\n\nQuoting Ann Other <ann@example.com>:\n\n> old", "Agreed."),
    ("Agreed.\n\nann@example.com wrote:\n> old", "Agreed."),
    ("Ann Berg on 3 Nov 2025 wrote:\n> old", ""),
]


@samples(("body", "new"), ODD_HEADS)
def test_a_head_in_an_odd_place_hides_no_new_word(body: str, new: str) -> None:
    assert reply_text(body) == new


def test_the_samples_are_many_and_in_many_languages() -> None:
    assert len(bodies()) >= 120
    assert len(HEADS) >= 30


@samples(
    "unit",
    [
        *(
            "On 1 ",
            "On 1\n",
            ">",
            "> x\n",
            "> x\ny\n",
            "\n",
            "-",
            "-\n",
            "From: a\n",
            " ",
            "On 1 wrote:\n",
            "a:\n",
            ":\n",
        ),
        *(
            "a\na\na\na:\n",
            "\na:\n\n",
            "*\n",
            "_\n",
            "---- x ---\n",
            "Date: x\nTo: y\nCc: z\nfrom\n",
            "--------\nlist\n",
            "On 1 x wrote: ",
            "a On 1 wrote:\n",
            " schrieb ",
        ),
    ],
)
def test_long_hostile_bodies_are_read_in_one_pass(unit: str) -> None:
    assert len(reply_text(unit * 110_000)) <= 100_000


@given(st.text(max_size=300))
def test_any_text_gives_a_reply_no_longer_than_itself(body: str) -> None:
    assert len(reply_text(body)) <= len(body)
