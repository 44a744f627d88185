import asyncio
import itertools
import os
import socket
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from postroom.couriers.session import Timeouts
from postroom.outward.courier import OutgoingMail
from tests.couriers.certificates import make_certificate, server_context
from tests.couriers.conftest import RAW, MakeCourier, failure_of, impatient_at, mail_to
from tests.couriers.smtp_peer import DROP, ENDLESS_REPLY, FLOOD, STALL, SmtpPeer, Stage
from tests.doubles_dns import DnsServer
from tests.ports import free_port
from tests.programs import path_of
from tests.waiting import until

LARGE = b"Subject: large\r\n\r\n" + (b".x" * 38 + b"\r\n") * 15_000  # many reads and writes
BIG = b"Subject: big\r\n\r\n" + (b".x" * 38 + b"\r\n") * 100_000


@pytest.mark.parametrize("features", [(), ("PIPELINING",)], ids=["step by step", "pipelined"])
async def test_a_mail_arrives_as_it_was_given(make_courier: MakeCourier, features: tuple[str, ...]) -> None:
    async with SmtpPeer(features=features) as peer:
        receipt = await make_courier(peer.port).deliver(mail_to("bob@there.example"))
    assert (receipt.code, receipt.text, receipt.host) == (250, "2.0.0 taken", "mx.there.example")
    assert [mail.raw for mail in peer.mails] == [RAW]
    assert peer.commands == [
        b"EHLO here.example",
        b"MAIL FROM:<agent@here.example>",
        b"RCPT TO:<bob@there.example>",
        b"DATA",
    ]


@pytest.mark.parametrize(
    "raw", [LARGE, b"", b".", b"no line end", b"." * 200_000, b"\r\n.\r\n.\r\n" * 10_000]
)
async def test_content_of_any_shape_arrives_intact(make_courier: MakeCourier, raw: bytes) -> None:
    async with SmtpPeer() as peer:
        await make_courier(peer.port, timeouts=Timeouts()).deliver(mail_to("bob@there.example", raw))
    assert peer.mails[0].raw == (raw if raw.endswith(b"\r\n") else raw + b"\r\n")


async def test_a_report_leaves_with_an_empty_sender(make_courier: MakeCourier) -> None:
    async with SmtpPeer(features=()) as peer:
        await make_courier(peer.port).deliver(mail_to("bob@there.example", mail_from=""))
    assert peer.mails[0].mail_line == b"MAIL FROM:<>"


REPLY_STAGES: list[Stage] = ["greeting", "MAIL", "RCPT", "DATA", "dot"]


STEP_BY_STEP_AND_PIPELINED: list[tuple[str, ...]] = [(), ("PIPELINING",)]


@pytest.mark.parametrize(
    ("reply", "permanent", "code", "enhanced"),
    [
        (b"451 4.7.1 come back later", False, 451, "4.7.1"),
        (b"421 4.3.2 closing", False, 421, "4.3.2"),
        (b"550 5.1.1 no such user", True, 550, "5.1.1"),
        (b"554-5.7.1 spam\r\n554 5.7.1 really", True, 554, "5.7.1"),
        (b"550 2.0.0 mixed up", True, 550, ""),
        (b"452", False, 452, ""),
    ],
)
async def test_a_refusal_is_told_as_the_server_gave_it(
    make_courier: MakeCourier, reply: bytes, permanent: bool, code: int, enhanced: str
) -> None:
    for stage, features in itertools.product(REPLY_STAGES, STEP_BY_STEP_AND_PIPELINED):
        async with SmtpPeer({stage: reply}, features=features) as peer:
            error = await failure_of(make_courier(peer.port).deliver(mail_to("bob@there.example")))
        told = (error.permanent, error.code, error.enhanced)
        assert told == (permanent, code, enhanced), (stage, features)
        assert "mx.there.example" in error.reason, (stage, features)
        assert not error.unknown_outcome, (stage, features)
        assert peer.mails == [], (stage, features)


SILENT_FAULTS = [STALL, DROP]
NOISY_FAULTS = [FLOOD, ENDLESS_REPLY, b"hello?", b"999 what", b"\xff\x00"]


FAULTY_STAGES: list[Stage] = ["greeting", "EHLO", "MAIL", "RCPT", "DATA", "dot"]


@pytest.mark.parametrize("fault", SILENT_FAULTS + NOISY_FAULTS)
async def test_a_fault_is_temporary_and_its_outcome_known_unless_it_comes_after_the_dot(
    make_courier: MakeCourier, fault: bytes
) -> None:
    for stage, features in itertools.product(FAULTY_STAGES, STEP_BY_STEP_AND_PIPELINED):
        async with SmtpPeer({stage: fault}, features=features) as peer:
            courier = make_courier(peer.port, timeouts=impatient_at(stage))
            error = await failure_of(courier.deliver(mail_to("bob@there.example")))
        assert (error.permanent, error.code) == (False, None), (stage, features)
        assert error.unknown_outcome == (stage == "dot"), (stage, features)
        assert peer.mails == [], (stage, features)


@pytest.mark.parametrize("fault", SILENT_FAULTS)
async def test_a_connection_lost_amid_the_content_has_delivered_nothing(
    make_courier: MakeCourier, fault: bytes
) -> None:
    more_than_the_buffers_hold = BIG * 4
    async with SmtpPeer({"content": fault}) as peer:
        mail = mail_to("bob@there.example", more_than_the_buffers_hold)
        error = await failure_of(make_courier(peer.port, timeouts=impatient_at("content")).deliver(mail))
    assert (error.permanent, error.code, error.unknown_outcome) == (False, None, False)


@pytest.mark.parametrize("fault", NOISY_FAULTS)
async def test_noise_amid_the_content_is_a_temporary_fault(make_courier: MakeCourier, fault: bytes) -> None:
    async with SmtpPeer({"content": fault}) as peer:
        courier = make_courier(peer.port, timeouts=impatient_at("content"))
        error = await failure_of(courier.deliver(mail_to("bob@there.example", BIG)))
    assert (error.permanent, error.code) == (False, None)


@pytest.mark.parametrize("answer", [b"354 go on", b"334 what"])
async def test_an_answer_out_of_place_after_the_dot_leaves_the_outcome_unknown(
    make_courier: MakeCourier, answer: bytes
) -> None:
    async with SmtpPeer({"dot": answer}) as peer:
        error = await failure_of(make_courier(peer.port).deliver(mail_to("bob@there.example")))
    assert error.unknown_outcome
    assert not error.permanent


@pytest.mark.parametrize("answer", [b"250 strange", b"220 hi", b"334 what"])
async def test_an_answer_out_of_place_to_data_is_temporary(make_courier: MakeCourier, answer: bytes) -> None:
    async with SmtpPeer({"DATA": answer}) as peer:
        error = await failure_of(make_courier(peer.port).deliver(mail_to("bob@there.example")))
    assert not error.permanent
    assert not error.unknown_outcome


async def test_what_a_server_says_before_it_hangs_up_on_the_content_is_the_reason(
    make_courier: MakeCourier,
) -> None:
    async with SmtpPeer({"content": [b"552 5.3.4 too big for me", STALL]}) as peer:
        delivery = asyncio.create_task(make_courier(peer.port).deliver(mail_to("bob@there.example", BIG)))
        await until(lambda: peer.stages["content"] == 2)
        await peer.hang_up()
        error = await failure_of(delivery)
    assert (error.permanent, error.code, error.enhanced) == (True, 552, "5.3.4")


@pytest.mark.parametrize("fault", [STALL, DROP, b"garbage", b"500 no"])
async def test_what_happens_at_quit_does_not_matter(make_courier: MakeCourier, fault: bytes) -> None:
    async with SmtpPeer({"QUIT": fault}) as peer:
        courier = make_courier(peer.port, timeouts=impatient_at("QUIT"))
        receipt = await courier.deliver(mail_to("bob@there.example"))
        await courier.close()
    assert receipt.code == 250
    assert peer.stages["QUIT"] == 1


async def test_a_server_that_knows_no_ehlo_is_greeted_with_helo(make_courier: MakeCourier) -> None:
    async with SmtpPeer({"EHLO": b"502 unknown"}) as peer:
        await make_courier(peer.port).deliver(mail_to("bob@there.example"))
    assert peer.commands[:3] == [
        b"EHLO here.example",
        b"HELO here.example",
        b"MAIL FROM:<agent@here.example>",
    ]


@pytest.mark.parametrize("fault", SILENT_FAULTS)
async def test_a_refusal_counts_although_the_server_then_falls_silent(
    make_courier: MakeCourier, fault: bytes
) -> None:
    async with SmtpPeer({"MAIL": [b"550 5.7.1 not from you"], "RCPT": [fault]}) as peer:
        courier = make_courier(peer.port, timeouts=impatient_at("RCPT"))
        error = await failure_of(courier.deliver(mail_to("bob@there.example")))
        courier._dialer = replace(courier._dialer, timeouts=Timeouts())
        await courier.deliver(mail_to("bob@there.example"))
    assert (error.permanent, error.code) == (True, 550)
    assert peer.connections == 2


async def test_a_pipelining_server_that_waits_for_unwanted_content_gets_an_empty_one(
    make_courier: MakeCourier,
) -> None:
    async with SmtpPeer({"RCPT": [b"550 5.1.1 no such user"], "DATA": [b"354 go on"]}) as peer:
        courier = make_courier(peer.port)
        error = await failure_of(courier.deliver(mail_to("nobody@there.example")))
        await courier.deliver(mail_to("bob@there.example"))
    assert error.code == 550
    assert peer.connections == 1
    assert [mail.rcpt_line for mail in peer.mails] == [b"RCPT TO:<bob@there.example>"]


async def test_no_connection_is_a_temporary_fault(make_courier: MakeCourier) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        error = await failure_of(make_courier(unused.getsockname()[1]).deliver(mail_to("bob@there.example")))
    assert (error.permanent, error.code, error.enhanced) == (False, None, "4.4.1")


@pytest.mark.parametrize(
    "address",
    [
        "a@b\r\nRSET@there.example",
        "a>@there.example",
        "<@there.example",
        "a\0@there.example",
        "a" * 400 + "@x",
    ],
)
async def test_no_address_can_become_a_command(make_courier: MakeCourier, address: str) -> None:
    async with SmtpPeer() as peer:
        courier = make_courier(peer.port)
        mails = [
            OutgoingMail("a@here.example", address, RAW, "there.example"),
            OutgoingMail(address, "bob@there.example", RAW, "there.example"),
        ]
        errors = [await failure_of(courier.deliver(mail)) for mail in mails]
    assert [(error.permanent, error.enhanced) for error in errors] == [(True, "5.1.3")] * 2
    assert peer.connections == 0


@pytest.mark.parametrize("raw", [b"a\n.\nb\r\n", b"a\r.\rb\r\n", b"a\n.\r\n", b"a\r\n.\r"])
async def test_no_mail_with_bare_line_ends_can_smuggle_another(make_courier: MakeCourier, raw: bytes) -> None:
    async with SmtpPeer() as peer:
        error = await failure_of(make_courier(peer.port).deliver(mail_to("bob@there.example", raw)))
    assert (error.permanent, error.enhanced) == (True, "5.6.0")
    assert peer.connections == 0


async def test_a_mail_larger_than_the_server_takes_is_not_sent(make_courier: MakeCourier) -> None:
    async with SmtpPeer(features=("SIZE 10",)) as peer:
        error = await failure_of(make_courier(peer.port).deliver(mail_to("bob@there.example")))
    assert (error.permanent, error.enhanced) == (True, "5.3.4")
    assert peer.stages["MAIL"] == 0


@pytest.mark.parametrize("size", ["SIZE", "SIZE 0", "SIZE ten", "SIZE -1", "SIZE " + "9" * 5000])
async def test_an_unclear_size_limit_is_no_limit(make_courier: MakeCourier, size: str) -> None:
    async with SmtpPeer(features=(size[:2000],)) as peer:
        await make_courier(peer.port).deliver(mail_to("bob@there.example"))
    assert peer.mails[0].mail_line == b"MAIL FROM:<agent@here.example> SIZE=%d" % len(RAW)


async def test_an_address_outside_ascii_needs_a_server_that_can(make_courier: MakeCourier) -> None:
    async with SmtpPeer(features=("SMTPUTF8",)) as able, SmtpPeer(features=()) as unable:
        await make_courier(able.port).deliver(mail_to("jürgen@there.example"))
        error = await failure_of(make_courier(unable.port).deliver(mail_to("jürgen@there.example")))
    assert able.mails[0].mail_line == b"MAIL FROM:<agent@here.example> SMTPUTF8"
    assert able.mails[0].rcpt_line == "RCPT TO:<jürgen@there.example>".encode()
    assert (error.permanent, error.enhanced) == (True, "5.6.7")


async def test_a_domain_outside_ascii_is_sent_in_its_ascii_form(
    make_courier: MakeCourier, dns: DnsServer
) -> None:
    dns.records["xn--bcher-kva.example", "A"] = ["127.0.0.1"]
    async with SmtpPeer(features=()) as peer:
        await make_courier(peer.port).deliver(mail_to("bob@bücher.example"))
    assert peer.mails[0].rcpt_line == b"RCPT TO:<bob@xn--bcher-kva.example>"


async def test_content_outside_ascii_is_announced(make_courier: MakeCourier) -> None:
    async with SmtpPeer(features=("8BITMIME",)) as peer:
        await make_courier(peer.port).deliver(mail_to("bob@there.example", "Grüße\r\n".encode()))
    assert peer.mails[0].mail_line == b"MAIL FROM:<agent@here.example> BODY=8BITMIME"


async def test_starttls_is_used_when_offered_whatever_the_certificate(
    make_courier: MakeCourier, tmp_path: Path
) -> None:
    tls = server_context(make_certificate(tmp_path, "other.example"))
    async with SmtpPeer(tls=tls) as peer:
        courier = make_courier(peer.port, timeouts=Timeouts())
        receipts = [await courier.deliver(mail_to("bob@there.example", raw)) for raw in (LARGE, RAW)]
    assert [(mail.raw, mail.in_tls) for mail in peer.mails] == [(LARGE, True), (RAW, True)]
    assert [receipt.has_tls for receipt in receipts] == [True, True]
    assert peer.connections == 1
    assert peer.stages["EHLO"] == 2


async def test_a_failed_handshake_leads_to_a_new_connection_in_the_clear(
    make_courier: MakeCourier, tmp_path: Path
) -> None:
    tls = server_context(make_certificate(tmp_path, "mx.there.example"))
    async with SmtpPeer({"TLS": DROP}, tls=tls) as peer:
        await make_courier(peer.port).deliver(mail_to("bob@there.example"))
    assert [mail.in_tls for mail in peer.mails] == [False]
    assert peer.connections == 2


async def test_a_declined_starttls_goes_on_in_the_clear(make_courier: MakeCourier, tmp_path: Path) -> None:
    tls = server_context(make_certificate(tmp_path, "mx.there.example"))
    async with SmtpPeer({"STARTTLS": b"454 4.7.0 not now"}, tls=tls) as peer:
        receipt = await make_courier(peer.port).deliver(mail_to("bob@there.example"))
    assert not receipt.has_tls
    assert [mail.in_tls for mail in peer.mails] == [False]
    assert peer.connections == 1


@pytest.mark.parametrize("fault", [STALL, DROP, b"nonsense"])
async def test_a_fault_at_starttls_is_temporary(
    make_courier: MakeCourier, tmp_path: Path, fault: bytes
) -> None:
    tls = server_context(make_certificate(tmp_path, "mx.there.example"))
    async with SmtpPeer({"STARTTLS": fault}, tls=tls) as peer:
        courier = make_courier(peer.port, timeouts=impatient_at("STARTTLS"))
        error = await failure_of(courier.deliver(mail_to("bob@there.example")))
    assert (error.permanent, error.unknown_outcome) == (False, False)


async def test_commands_injected_before_tls_are_never_believed(
    make_courier: MakeCourier, tmp_path: Path
) -> None:
    tls = server_context(make_certificate(tmp_path, "mx.there.example"))
    injected = b"220 go ahead\r\n250 injected"
    async with SmtpPeer({"STARTTLS": [injected]}, tls=tls) as peer:
        await make_courier(peer.port).deliver(mail_to("bob@there.example"))
    assert peer.connections == 2


@pytest.mark.needs("smtp-sink")
async def test_postfix_smtp_sink_takes_the_mail(make_courier: MakeCourier, tmp_path: Path) -> None:
    port = free_port()
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents[:2]:
        folder.chmod(0o755)
    place = ["-u", "nobody", "-R", str(tmp_path), "-d", "mail-"]  # root has to become somebody else
    if os.geteuid() != 0:
        place = ["-d", str(tmp_path / "mail-")]
    sink = subprocess.Popen([path_of("smtp-sink"), *place, f"127.0.0.1:{port}", "100"])
    try:
        courier = make_courier(port, timeouts=Timeouts())
        async with asyncio.timeout(120):
            await until(lambda: is_listening(port))
            receipts = [await courier.deliver(mail_to("bob@there.example", BIG)) for _ in range(3)]
            await courier.close()
            await until(lambda: sum(is_whole(path) for path in tmp_path.glob("mail-*")) >= 3)
    finally:
        sink.terminate()
        sink.wait()
    assert [receipt.code for receipt in receipts] == [250] * 3
    assert len(list(tmp_path.glob("mail-*"))) == 3


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_whole(path: Path) -> bool:
    return path.read_bytes().rstrip().endswith(BIG.replace(b"\r\n", b"\n").rstrip())
