"""What a send, a draft or a thread says of the answer that it expects, and of the nudges if none comes."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from postroom import limits
from postroom.errors import BadRequest
from postroom.fields import read_asked
from postroom.outward.send_stages import Expectation, Nudge

NudgeText = Annotated[
    str, Meta(min_length=1, max_length=limits.BODY_CHARACTERS, description="Plain text, or HTML.")
]
NudgeTemplate = Annotated[
    str, Meta(min_length=1, max_length=limits.NAME_CHARACTERS, description="A template of the inbox.")
]


class ReplyWithin(Struct, rename="camel", frozen=True, omit_defaults=True):
    """One of them."""

    days: Annotated[int, Meta(ge=1, le=limits.EXPECT_DAYS)] | None = None
    working_days: (
        Annotated[
            int, Meta(ge=1, le=limits.EXPECT_DAYS // 2, description="Within the working hours of the inbox.")
        ]
        | None
    ) = None


class FollowUpStep(Struct, rename="camel", frozen=True):
    """A nudge in the same thread, sent only if nobody has answered: `body` or `templateId`."""

    after_days: Annotated[
        int, Meta(ge=1, le=limits.EXPECT_DAYS, description="After the email, not after the last nudge.")
    ]
    body: NudgeText | None = None
    template_id: NudgeTemplate | None = None


ExpectReplyBy = Annotated[
    Annotated[str, Meta(max_length=64)] | ReplyWithin,
    Meta(
        description="Until when an answer is expected: a time with its zone, or `{days}` or `{workingDays}`"
        " after the email. Then the thread is overdue.",
    ),
]
FollowUps = Annotated[
    list[FollowUpStep],
    Meta(
        max_length=limits.FOLLOW_UPS,
        description="Nudges, in the order of their days; an answer, a bounce, a pause or your own next email"
        " cancels them.",
    ),
]


def read_expectation(given: str | ReplyWithin | None) -> Expectation | None:
    if given is None:
        return None
    if isinstance(given, str):
        return Expectation(until=read_asked(given, "expectReplyBy"))
    if (given.days is None) == (given.working_days is None):
        raise BadRequest("expectReplyBy takes days or workingDays, one of them.", field="expectReplyBy")
    return Expectation(days=given.days, working_days=given.working_days)


def read_follow_ups(given: Sequence[FollowUpStep]) -> tuple[Nudge, ...]:
    last = 0
    for number, step in enumerate(given):
        place = f"followUps[{number}]"
        if (step.body is None) == (step.template_id is None):
            raise BadRequest("A follow-up has a body or a templateId.", field=place)
        if step.after_days <= last:
            raise BadRequest("Each follow-up comes on a later day than the one before it.", field=place)
        last = step.after_days
    return tuple(Nudge(step.after_days, step.body, step.template_id) for step in given)
