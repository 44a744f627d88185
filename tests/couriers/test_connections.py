import asyncio

import pytest

from postroom.couriers.mail import MailLimits
from postroom.couriers.session import Timeouts
from tests.couriers.conftest import MakeCourier, failure_of, mail_to
from tests.couriers.smtp_peer import DROP, STALL, SmtpPeer, Stage
from tests.doubles_dns import DnsServer
from tests.waiting import until


async def test_a_connection_is_used_again(make_courier: MakeCourier) -> None:
    async with SmtpPeer() as peer:
        courier = make_courier(peer.port)
        for _ in range(5):
            await courier.deliver(mail_to("bob@there.example"))
        await courier.close()
    assert (len(peer.mails), peer.connections, peer.stages["RSET"], peer.stages["QUIT"]) == (5, 1, 0, 1)


async def test_a_refused_recipient_costs_a_reset_and_no_connection(make_courier: MakeCourier) -> None:
    async with SmtpPeer({"RCPT": [b"550 5.1.1 no such user"]}, features=()) as peer:
        courier = make_courier(peer.port)
        await failure_of(courier.deliver(mail_to("nobody@there.example")))
        await courier.deliver(mail_to("bob@there.example"))
    assert (len(peer.mails), peer.connections, peer.stages["RSET"]) == (1, 1, 1)


@pytest.mark.parametrize("stage", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize("fault", [DROP, b"421 4.3.2 idle for too long"])
async def test_an_old_connection_that_the_server_ends_is_replaced_at_once(
    make_courier: MakeCourier, stage: Stage, fault: bytes
) -> None:
    async with SmtpPeer(features=()) as peer:
        courier = make_courier(peer.port)
        await courier.deliver(mail_to("bob@there.example"))
        peer.behaviour[stage] = [fault]
        await courier.deliver(mail_to("bob@there.example"))
    assert peer.connections == 2
    assert len(peer.mails) == 2


async def test_an_old_connection_lost_after_the_dot_is_not_replaced(make_courier: MakeCourier) -> None:
    async with SmtpPeer() as peer:
        courier = make_courier(peer.port)
        await courier.deliver(mail_to("bob@there.example"))
        peer.behaviour["dot"] = DROP
        error = await failure_of(courier.deliver(mail_to("bob@there.example")))
    assert error.unknown_outcome
    assert (peer.connections, peer.stages["dot"]) == (1, 2)


async def test_a_connection_carries_a_limited_number_of_mails(make_courier: MakeCourier) -> None:
    async with SmtpPeer() as peer:
        courier = make_courier(peer.port, limits=MailLimits(mails_per_connection=2))
        for _ in range(5):
            await courier.deliver(mail_to("bob@there.example"))
    assert peer.connections == 3


async def test_a_resting_connection_ends_itself(make_courier: MakeCourier) -> None:
    async with SmtpPeer() as peer:
        courier = make_courier(peer.port, limits=MailLimits(idle_seconds=0.01))
        await courier.deliver(mail_to("bob@there.example"))
        await until(lambda: not peer.open_now)
    assert peer.stages["QUIT"] == 1


async def test_resting_connections_are_bounded(make_courier: MakeCourier, dns: DnsServer) -> None:
    for number in range(4):
        dns.records[f"d{number}.example", "A"] = ["127.0.0.1"]
    async with SmtpPeer() as peer:
        courier = make_courier(peer.port, limits=MailLimits(connections=2))
        for number in range(4):
            await courier.deliver(mail_to(f"bob@d{number}.example"))
        await until(lambda: peer.open_now <= 2)
    assert peer.stages["QUIT"] == 2


async def test_a_domain_never_gets_more_connections_than_its_share(
    make_courier: MakeCourier, dns: DnsServer
) -> None:
    dns.records["other.example", "A"] = ["127.0.0.2"]
    release = asyncio.Event()
    async with SmtpPeer(hold=release) as slow, SmtpPeer(address="127.0.0.2", port=slow.port) as other:
        courier = make_courier(slow.port, limits=MailLimits(connections_per_domain=3), timeouts=Timeouts())
        waiting = [asyncio.create_task(courier.deliver(mail_to("bob@THERE.example"))) for _ in range(20)]
        await courier.deliver(mail_to("eve@other.example"))  # the slow domain delays no other one
        release.set()
        await asyncio.gather(*waiting)
    assert len(slow.mails) == 20
    assert slow.most_open == 3
    assert len(other.mails) == 1


async def test_all_domains_together_keep_to_the_overall_share(
    make_courier: MakeCourier, dns: DnsServer
) -> None:
    for number in range(10):
        dns.records[f"d{number}.example", "A"] = ["127.0.0.1"]
    release = asyncio.Event()
    async with SmtpPeer(hold=release) as peer:
        courier = make_courier(peer.port, limits=MailLimits(connections=2), timeouts=Timeouts())
        mails = [mail_to(f"bob@d{number}.example") for number in range(10)]
        deliveries = [asyncio.create_task(courier.deliver(mail)) for mail in mails]
        await until(lambda: peer.stages["DATA"] >= 2)
        await asyncio.sleep(0.05)
        assert (peer.open_now, peer.stages["DATA"]) == (2, 2)
        release.set()
        await asyncio.gather(*deliveries)
    assert len(peer.mails) == 10


async def test_a_cancelled_delivery_leaves_no_connection_behind(make_courier: MakeCourier) -> None:
    async with SmtpPeer({"dot": STALL}) as peer:
        courier = make_courier(peer.port, timeouts=Timeouts())
        delivery = asyncio.create_task(courier.deliver(mail_to("bob@there.example")))
        async with asyncio.timeout(60):
            await until(lambda: peer.stages["dot"])
            delivery.cancel()
            with pytest.raises(asyncio.CancelledError):
                await delivery
            peer.behaviour.clear()
            await courier.deliver(mail_to("bob@there.example"))
    assert peer.connections == 2
