"""A claimed notice: to a reviewer of a held email, an email to a user, a notification, or a report."""

from postroom import ids
from postroom.outward import reviewers
from postroom.outward.courier import WebhookCourier
from postroom.outward.deliver_mail import Outbound
from postroom.outward.notices import dmarc_reports, notify_people, system_emails, tls_reports
from postroom.queue.deliveries import Delivery
from postroom.queue.outcomes import TriedDelivery
from postroom.resources import Resources


async def deliver_notice(
    resources: Resources, outbound: Outbound, courier: WebhookCourier, delivery: Delivery
) -> None:
    if ids.is_id(ids.NOTIFICATION, delivery.message_id):
        await notify_people.deliver_notification(resources, courier, outbound.recorder, delivery)
    elif ids.is_id(ids.SYSTEM_EMAIL, delivery.message_id):
        await system_emails.deliver_system_email(resources, outbound, delivery)
    elif ids.is_id(ids.TLS_REPORT, delivery.message_id):
        await tls_reports.deliver_report(resources, outbound, courier, delivery)
    elif ids.is_id(ids.DMARC_REPORT, delivery.message_id):
        await dmarc_reports.deliver_report(resources, outbound, delivery)
    else:
        await reviewers.deliver_notice(resources, outbound, delivery, system_emails.keep_captured)


async def write_tried(resources: Resources, tried: TriedDelivery) -> list[str]:
    """Writes an outcome that an earlier run left."""
    if ids.is_id(ids.NOTIFICATION, tried.delivery.message_id):
        return await notify_people.write_tried(resources, tried)
    if ids.is_id(ids.SYSTEM_EMAIL, tried.delivery.message_id):
        return await system_emails.write_tried(resources, tried)
    return await reviewers.write_tried(resources, tried)
