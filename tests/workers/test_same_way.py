"""What mail promises holds through workers too: the tests of mail in one process, run again here."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.inward.test_bounces import (
    test_a_complaint_counts_when_the_mail_inside_carries_our_signature,
    test_a_hard_bounce_to_the_return_path_fails_the_message_and_suppresses,
    test_a_tampered_return_path_is_refused_even_where_an_inbox_has_its_name,
)
from tests.inward.test_receive import (
    test_a_mail_becomes_a_message_of_the_specification,
    test_a_mail_handed_over_again_after_a_lost_answer_is_stored_once,
    test_a_mail_is_kept_behind_our_trace_field_and_read_again_without_it,
    test_several_recipients_get_a_message_and_an_event_each_from_one_mail,
)

# A worker hands rows over and knows no database; each of its starts costs as much as ten tests.
pytestmark = [pytest.mark.sqlite_alone, pytest.mark.share]


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    """One worker is the whole way of a mail."""
    config = settings(tmp_path, DATABASE_URL=database_url, WORKERS="1")
    async with running_server(config, clock) as server:
        yield server


__all__ = [
    "test_a_complaint_counts_when_the_mail_inside_carries_our_signature",
    "test_a_hard_bounce_to_the_return_path_fails_the_message_and_suppresses",
    "test_a_mail_becomes_a_message_of_the_specification",
    "test_a_mail_handed_over_again_after_a_lost_answer_is_stored_once",
    "test_a_mail_is_kept_behind_our_trace_field_and_read_again_without_it",
    "test_a_tampered_return_path_is_refused_even_where_an_inbox_has_its_name",
    "test_several_recipients_get_a_message_and_an_event_each_from_one_mail",
]
