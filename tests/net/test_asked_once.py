"""One question for all who want its answer, also if one of them stops waiting."""

import asyncio

import pytest

from postroom.net.asked_once import KEPT_MS, MOST_KEPT, AskedOnce

pytestmark = pytest.mark.sqlite_alone


async def test_a_question_is_asked_once_until_its_answer_is_old_and_few_are_kept() -> None:
    asked: list[int] = []
    may_answer = asyncio.Event()

    async def ask() -> int:
        asked.append(len(asked))
        await may_answer.wait()
        return asked[-1]

    answers: AskedOnce[int] = AskedOnce()
    waiting = [asyncio.ensure_future(answers.get(b"x", ask, 1)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    may_answer.set()
    assert await asyncio.gather(*waiting[1:]) == [0, 0], "one who went away ended it for nobody"
    assert await answers.get(b"x", ask, KEPT_MS + 1) == 0
    assert await answers.get(b"x", ask, KEPT_MS + 2) == 1
    for number in range(MOST_KEPT):
        await answers.get(b"%d" % number, ask, KEPT_MS)
    before = len(asked)
    await answers.get(b"1", ask, KEPT_MS)
    assert len(asked) == before
    await answers.get(b"x", ask, KEPT_MS)
    assert len(asked) == before + 1
