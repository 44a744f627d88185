"""Teach the junk filter with emails that are not stored here, such as a folder of another mail client."""

from postroom.operations import junk
from postroom.operations.junk import JunkExamples, JunkLessons
from postroom.processes import pools
from postroom.web.call import Call


async def teach_junk_filter(call: Call, body: JunkLessons) -> JunkExamples:
    """Teach the junk filter with emails that are no messages here"""
    lessons = await pools.READING.run(junk.read_lessons, call.caller.account_id, body)
    return await call.resources.db.write(junk.add_lessons, call.caller, lessons, body.is_junk, call.now())
