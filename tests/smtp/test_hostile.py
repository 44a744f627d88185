"""Clients that mean harm, on real sockets: each costs little, gets its refusal, and hurts nobody else."""

import asyncio

import pytest
from msgspec.structs import replace

from postroom.net.proxies import network_of
from postroom.smtp.limits import is_transfer_too_slow
from postroom.smtp.server import Server
from tests.samples import samples
from tests.smtp.doubles import RecordingIntake
from tests.smtp.live import LIMITS, Client, connect, connected, running, until_gone

MEGABYTE = 1024 * 1024


async def assert_still_serves(server: Server) -> None:
    async with connected(server) as client:
        await client.start_mail()
        await client.send(b"Hi\r\n.\r\n")
        assert (await client.reply()).startswith("250")


async def test_talk_before_the_greeting_is_refused() -> None:
    async with running(limits=replace(LIMITS, greeting_delay_seconds=3600)) as server:
        client = await connect(server)
        await client.send(b"EHLO client.example\r\n")
        assert (await client.rest()).startswith("554 5.5.0")
        await client.close()


async def test_content_that_does_not_wait_for_354_is_refused() -> None:
    intake = RecordingIntake()
    async with running(intake) as server, connected(server) as client:
        await client.command("EHLO client.example")
        await client.send(
            b"MAIL FROM:<ann@remote.example>\r\nRCPT TO:<alice@postroom.test>\r\nDATA\r\nHi\r\n.\r\n"
        )
        assert "\r\n554 5.5.0" in await client.rest()
    assert intake.mails == []


@pytest.mark.parametrize("content", [b"", b"Hi", b"Hi\r\n", b"Hi\r\n.", b"Hi\r\n.\r", b"Hi\n.\n"])
async def test_a_mail_without_its_end_is_not_accepted(content: bytes) -> None:
    intake = RecordingIntake()
    async with running(intake) as server:
        async with connected(server) as client:
            await client.start_mail()
            await client.send(content)
        await until_gone(server)
    assert intake.mails == []


async def test_a_half_closed_client_still_gets_the_answer_to_its_mail() -> None:
    intake = RecordingIntake()
    async with running(intake) as server, connected(server) as client:
        await client.start_mail()
        client.writer.write(b"Hi\r\n.\r\nNOOP\r\nQUIT\r\n")
        client.writer.write_eof()
        answer = await client.rest()
    assert [line[:3] for line in answer.splitlines()] == ["250", "250", "221"]
    assert intake.contents == [b"Hi\r\n"]


async def test_a_half_closed_client_without_goodbye_is_closed() -> None:
    async with running() as server, connected(server) as client:
        await client.start_mail()
        client.writer.write(b"Hi\r\n.\r\n")
        client.writer.write_eof()
        assert (await client.rest()).startswith("250")


async def test_ten_thousand_recipients_end_the_session() -> None:
    intake = RecordingIntake()
    limits = replace(LIMITS, max_recipients=100, max_refused_recipients=200)
    async with running(intake, limits) as server:
        async with connected(server) as client:
            await client.command("EHLO client.example")
            await client.command("MAIL FROM:<ann@remote.example>")
            sending = asyncio.create_task(send_recipients(client, 10_000))
            answer = await client.rest()
            await sending
        lines = answer.splitlines()
        assert len([line for line in lines if line.startswith("250")]) == 100
        assert len([line for line in lines if line.startswith("452 4.5.3")]) == 220
        assert lines[-1].startswith("421 4.7.0")
        await assert_still_serves(server)


async def send_recipients(client: Client, count: int) -> None:
    try:
        await client.send(b"".join(b"RCPT TO:<user%d@postroom.test>\r\n" % (n % 2000) for n in range(count)))
    except ConnectionError:
        return


async def test_a_flood_of_commands_ends_the_session() -> None:
    async with running() as server:
        async with connected(server) as client:
            await client.command("EHLO client.example")
            await client.send(b"NOOP\r\n" * 20_000)
            lines = (await client.rest()).splitlines()
        assert len(lines) == LIMITS.max_commands_without_mail
        assert lines[-1].startswith("421 4.7.0")
        await assert_still_serves(server)


async def test_a_flood_of_garbage_ends_the_session() -> None:
    async with running() as server:
        async with connected(server) as client:
            await client.command("EHLO client.example")
            await client.send(b"\0\xff\x80 garbage\r\n" * 5_000)
            lines = (await client.rest()).splitlines()
        assert [line[:3] for line in lines] == ["500"] * LIMITS.max_errors + ["421"]
        await assert_still_serves(server)


async def test_a_client_that_never_reads_is_cut_off() -> None:
    limits = replace(LIMITS, max_errors=10**9, command_timeout_seconds=0.3, linger_seconds=0.3)
    async with running(limits=limits) as server:
        client = await connect(server)
        client.writer.write(b"EHLO client.example\r\n")
        await asyncio.sleep(0.05)
        client.writer.write(b"BAD\r\n" * 2_000_000)
        await until_gone(server)
        client.reset()


async def test_one_byte_over_the_limit_is_refused_and_the_session_goes_on() -> None:
    assert LIMITS.max_message_bytes == 35 * MEGABYTE
    limit, intake = MEGABYTE, RecordingIntake()
    limits = replace(LIMITS, max_message_bytes=limit)
    async with running(intake, limits=limits) as server, connected(server) as client:
        await client.start_mail()
        await client.send(b"x" * (limit - 1) + b"\r\n.\r\n")
        assert (await client.reply()).startswith("552 5.3.4")
        await client.start_mail()
        await client.send(b"x" * (limit - 2) + b"\r\n.\r\n")
        assert (await client.reply()).startswith("250")
    assert [envelope.size_bytes for envelope, _ in intake.mails] == [limit]


async def test_nul_and_lone_line_ends_do_not_get_past_the_limit() -> None:
    intake = RecordingIntake()
    limits = replace(LIMITS, max_message_bytes=MEGABYTE)
    async with running(intake, limits=limits) as server, connected(server) as client:
        for content in (b"\0" * MEGABYTE, b"\n" * (MEGABYTE // 2 + 1), b"\r" * (MEGABYTE // 2 + 1)):
            await client.start_mail()
            await client.send(content + b"\r\n.\r\n")
            assert (await client.reply()).startswith("552 5.3.4")
    assert intake.mails == []


async def test_nul_is_not_stored() -> None:
    intake = RecordingIntake()
    async with running(intake) as server, connected(server) as client:
        await client.start_mail()
        await client.send(b"\0Hi\0\0 there\r\n\0\r\n.\r\n")
        assert (await client.reply()).startswith("250")
    assert intake.contents == [b"Hi there\r\n\r\n"]


async def test_the_cap_per_address_turns_the_next_one_away() -> None:
    async with running(limits=replace(LIMITS, max_connections_per_address=2)) as server:
        async with connected(server), connected(server):
            client = await connect(server)
            assert (await client.rest()).startswith("421 4.7.0 Too many connections from your address")
            await client.close()
        await until_gone(server)
        await assert_still_serves(server)


async def test_at_the_cap_in_total_who_does_nothing_makes_room() -> None:
    async with running(limits=replace(LIMITS, max_connections=1)) as server:
        async with connected(server) as idle:
            await assert_still_serves(server)
            assert await idle.rest() == ""
        await until_gone(server)
        await assert_still_serves(server)


async def test_silence_is_a_timeout() -> None:
    limits = replace(LIMITS, command_timeout_seconds=0.1)
    async with running(limits=limits) as server, connected(server) as client:
        assert (await client.rest()).startswith("421 4.4.2")


async def test_a_command_byte_by_byte_does_not_stretch_its_time() -> None:
    limits = replace(LIMITS, command_timeout_seconds=0.3)
    async with running(limits=limits) as server, connected(server) as client:
        dripping = asyncio.create_task(drip(client, b"N"))
        assert (await client.rest()).startswith("421 4.4.2")
        dripping.cancel()


async def test_silence_inside_a_mail_is_a_timeout() -> None:
    intake = RecordingIntake()
    limits = replace(LIMITS, data_timeout_seconds=0.1)
    async with running(intake, limits=limits) as server, connected(server) as client:
        await client.start_mail()
        await client.send(b"Hi\r\n")
        assert (await client.rest()).startswith("421 4.4.2")
    assert intake.mails == []


async def test_a_mail_that_only_drips_is_cut_off() -> None:
    intake = RecordingIntake()
    limits = replace(LIMITS, data_grace_seconds=0.2)
    async with running(intake, limits=limits) as server, connected(server) as client:
        await client.start_mail()
        dripping = asyncio.create_task(drip(client, b"x"))
        assert (await client.rest()).startswith("421 4.4.2")
        dripping.cancel()
    assert intake.mails == []


async def drip(client: Client, byte: bytes) -> None:
    try:
        while True:
            await client.send(byte)
            await asyncio.sleep(0.02)
    except ConnectionError:
        return


def test_a_mail_is_too_slow_after_the_grace_or_the_longest_time() -> None:
    assert not is_transfer_too_slow(LIMITS, seconds=29, received_bytes=0)
    assert is_transfer_too_slow(LIMITS, seconds=31, received_bytes=31 * 500 - 1)
    assert not is_transfer_too_slow(LIMITS, seconds=31, received_bytes=31 * 500)
    assert is_transfer_too_slow(LIMITS, seconds=1801, received_bytes=10**9)


@samples(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
    ],
)
def test_the_cap_counts_an_ipv6_customer_once(address: str, network: str) -> None:
    assert network_of(address) == network
