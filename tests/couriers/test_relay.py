from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.clock import SECOND
from postroom.couriers.mail import SmtpCourier
from postroom.couriers.session import Timeouts
from postroom.net.dns import Resolver
from postroom.net.relay import Relay, parse_outbound
from postroom.queue.retries import MAIL_WAITS, SPREAD
from tests.couriers.certificates import make_certificate, server_context, trusting_context
from tests.couriers.conftest import MakeCourier, failure_of, impatient_at, mail_to
from tests.couriers.smtp_peer import DROP, STALL, SmtpPeer, Stage
from tests.samples import samples

# A name that leads to this machine like localhost, but is not taken for it.
FOREIGN = "127.1"
SECRET = ("agent", "s3cret:@/pass")


@samples(
    ("value", "relay"),
    [
        ("mx", None),
        ("smtp://relay.example", Relay("relay.example", 25)),
        ("smtp://relay.example:2525", Relay("relay.example", 2525)),
        ("smtp://relay.example/", Relay("relay.example", 25)),
        ("smtp://a:b@relay.example", Relay("relay.example", 587, "a", "b")),
        ("smtp://a%40x.example:p%3Aq%2F@relay.example:26", Relay("relay.example", 26, "a@x.example", "p:q/")),
        ("smtps://a:b@relay.example", Relay("relay.example", 465, "a", "b", implicit_tls=True)),
        ("smtps://[::1]:4650", Relay("::1", 4650, implicit_tls=True)),
        ("SMTP://Relay.Example", Relay("relay.example", 25)),
        (
            "ses://AKIA:s%2Fx@eu-central-1",
            Relay("email-smtp.eu-central-1.amazonaws.com", 465, "AKIA", "s/x", implicit_tls=True),
        ),
        (
            "mailgun://me%40x.example:pw@",
            Relay("smtp.mailgun.org", 465, "me@x.example", "pw", implicit_tls=True),
        ),
        ("mailgun://me:pw@eu", Relay("smtp.eu.mailgun.org", 465, "me", "pw", implicit_tls=True)),
        ("postmark://Token-1@", Relay("smtp.postmarkapp.com", 587, "Token-1", "Token-1")),
        ("resend://re_Key@", Relay("smtp.resend.com", 465, "resend", "re_Key", implicit_tls=True)),
    ],
)
def test_the_setting_is_read(value: str, relay: Relay | None) -> None:
    assert parse_outbound(value) == relay


@samples(
    "value",
    [
        "",
        "MX",
        "relay.example:25",
        "http://relay.example",
        "smtp://",
        "smtp://:25",
        "smtp://relay.example:0",
        "smtp://relay.example:65536",
        "smtp://relay.example:x",
        "smtp://[::1",
        "smtp://user@relay.example",
        "smtp://:secretword@relay.example",
        "smtp://user:secretword@relay.example/path",
        "smtp://user:secretword@relay.example?x",
        "smtp://user:secret#word@relay.example",
        "smtp://user:secret%00word@relay.example",
        "smtp://relay example",
        "smtp://relay.example\n",
    ],
)
def test_a_wrong_setting_is_refused_without_telling_the_password(value: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_outbound(value)
    assert str(caught.value)
    assert "secret" not in str(caught.value)


@given(st.text(max_size=60) | st.from_regex(r"smtps?://\S{0,40}", fullmatch=True))
def test_any_setting_is_read_or_refused(value: str) -> None:
    try:
        relay = parse_outbound(value)
    except ValueError:
        return
    assert relay is None or (relay.host and 0 < relay.port < 65536)


def test_a_relay_does_not_show_its_password() -> None:
    assert "hidden" not in repr(Relay("relay.example", 25, "user", "hidden"))


@pytest.mark.parametrize("mechanism", ["AUTH PLAIN", "AUTH LOGIN", "AUTH=LOGIN", "auth plain login"])
async def test_the_relay_takes_mail_for_every_domain_after_one_sign_in(
    make_courier: MakeCourier, mechanism: str
) -> None:
    async with SmtpPeer(features=("PIPELINING", mechanism), credentials=SECRET) as peer:
        courier = make_courier(relay=Relay("127.0.0.1", peer.port, *SECRET))
        await courier.deliver(mail_to("bob@one.example"))
        await courier.deliver(mail_to("eve@two.example"))
    assert [mail.rcpt_line for mail in peer.mails] == [
        b"RCPT TO:<bob@one.example>",
        b"RCPT TO:<eve@two.example>",
    ]
    assert (peer.connections, peer.stages["AUTH"]) == (1, 1)


@pytest.mark.parametrize(
    ("stage", "reply"),
    [
        ("greeting", b"554 5.3.2 not you"),
        ("EHLO", STALL),
        ("AUTH", b"535 5.7.8 wrong password"),
        ("AUTH", DROP),
        ("MAIL", b"530 5.7.0 sign in first"),
    ],
)
async def test_trouble_with_the_relay_itself_never_ends_a_delivery(
    make_courier: MakeCourier, stage: Stage, reply: bytes
) -> None:
    async with SmtpPeer({stage: reply}, credentials=SECRET) as peer:
        relay = Relay("127.0.0.1", peer.port, *SECRET)
        courier = make_courier(relay=relay, timeouts=impatient_at(stage))
        error = await failure_of(courier.deliver(mail_to("bob@one.example")))
    assert not error.permanent


async def test_a_recipient_that_the_relay_refuses_has_failed_for_good(make_courier: MakeCourier) -> None:
    async with SmtpPeer({"RCPT": b"550 5.1.1 no such user"}) as peer:
        courier = make_courier(relay=Relay("127.0.0.1", peer.port))
        error = await failure_of(courier.deliver(mail_to("bob@one.example")))
    assert (error.permanent, error.enhanced) == (True, "5.1.1")


async def test_a_relay_without_a_known_way_to_sign_in_is_a_temporary_fault(make_courier: MakeCourier) -> None:
    async with SmtpPeer(features=("AUTH GSSAPI",)) as peer:
        courier = make_courier(relay=Relay("127.0.0.1", peer.port, *SECRET))
        error = await failure_of(courier.deliver(mail_to("bob@one.example")))
    assert not error.permanent
    assert "AUTH" in error.reason


async def test_a_password_never_leaves_in_the_clear(make_courier: MakeCourier) -> None:
    async with SmtpPeer(credentials=SECRET) as peer:
        courier = make_courier(relay=Relay(FOREIGN, peer.port, *SECRET))
        error = await failure_of(courier.deliver(mail_to("bob@one.example")))
    assert not error.permanent
    assert (peer.stages["EHLO"], peer.stages["AUTH"]) == (1, 0)


async def test_a_password_is_not_sent_to_an_unproven_host(make_courier: MakeCourier, tmp_path: Path) -> None:
    tls = server_context(make_certificate(tmp_path, FOREIGN))
    async with SmtpPeer(credentials=SECRET, tls=tls) as peer:
        courier = make_courier(relay=Relay(FOREIGN, peer.port, *SECRET))
        error = await failure_of(courier.deliver(mail_to("bob@one.example")))
    assert not error.permanent
    assert "TLS" in error.reason
    assert (peer.connections, peer.stages["AUTH"]) == (1, 0)


@pytest.mark.parametrize("implicit_tls", [False, True])
async def test_a_password_is_sent_to_a_proven_host(
    make_courier: MakeCourier, tmp_path: Path, implicit_tls: bool
) -> None:
    pem = make_certificate(tmp_path, FOREIGN)
    peer = SmtpPeer(credentials=SECRET, tls=server_context(pem), implicit_tls=implicit_tls)
    async with peer:
        relay = Relay(FOREIGN, peer.port, *SECRET, implicit_tls=implicit_tls)
        await make_courier(relay=relay, trusted=trusting_context(pem)).deliver(mail_to("bob@one.example"))
    assert [mail.in_tls for mail in peer.mails] == [True]
    assert peer.stages["AUTH"] == 1


async def test_implicit_tls_with_the_wrong_name_is_refused(make_courier: MakeCourier, tmp_path: Path) -> None:
    pem = make_certificate(tmp_path, "other.example")
    async with SmtpPeer(tls=server_context(pem), implicit_tls=True) as peer:
        courier = make_courier(
            relay=Relay(FOREIGN, peer.port, implicit_tls=True), trusted=trusting_context(pem)
        )
        error = await failure_of(courier.deliver(mail_to("bob@one.example")))
    assert not error.permanent
    assert peer.stages["EHLO"] == 0


async def test_a_relay_on_this_machine_needs_no_valid_certificate(
    make_courier: MakeCourier, tmp_path: Path
) -> None:
    tls = server_context(make_certificate(tmp_path, "other.example"))
    async with SmtpPeer(credentials=SECRET, tls=tls, implicit_tls=True) as peer:
        relay = Relay("localhost", peer.port, *SECRET, implicit_tls=True)
        await make_courier(relay=relay).deliver(mail_to("bob@one.example"))
    assert [mail.in_tls for mail in peer.mails] == [True]


def test_mail_on_a_relay_that_hangs_is_tried_again_soon_but_never_given_up_behind_the_dot() -> None:
    relay = SmtpCourier(Resolver(), own_name="here.example", relay=Relay("relay.example", 25))
    timeouts = relay._dialer.timeouts
    silent = max(timeouts.connect, timeouts.greeting, timeouts.command, timeouts.mail, timeouts.rcpt)
    longest_wait = MAIL_WAITS[0] / SECOND * (1 + SPREAD)
    assert silent + longest_wait <= 100
    assert timeouts.final_dot == Timeouts().final_dot
    assert SmtpCourier(Resolver(), own_name="here.example")._dialer.timeouts == Timeouts()
