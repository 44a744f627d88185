"""The news of an appointment in words: who answered, or what was cancelled."""

from postroom_client.results import Appointment


def status_line(appointment: Appointment) -> str:
    """Return who has answered and how, or what was cancelled; "" for an invitation."""
    alone = f" (the occurrence of {appointment.recurrence_id} alone)" if appointment.recurrence_id else ""
    if appointment.method == "REPLY" and appointment.attendees:
        who = appointment.attendees[0]
        return f"{who.name or who.address}: {who.participation_status or 'no answer'}{alone}"
    is_cancelled = appointment.method == "CANCEL" or appointment.status == "CANCELLED"
    return f"cancelled{alone}" if is_cancelled else ""
