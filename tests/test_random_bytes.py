"""Random bytes that are fetched many at a time."""

import os

from postroom.random_bytes import FETCHED_BYTES, SHARED, RandomBytes


def test_no_byte_is_given_twice() -> None:
    source = RandomBytes()
    given = [source.take(10) for _ in range(3 * FETCHED_BYTES // 10)]
    assert len(set(given)) == len(given)
    assert {len(each) for each in given} == {10}
    assert len(source.take(FETCHED_BYTES + 1)) == FETCHED_BYTES + 1


def test_a_forked_process_gives_none_of_its_parents_bytes() -> None:
    SHARED.take(10)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, SHARED.take(32))
        os._exit(0)
    os.waitpid(child, 0)
    ours, theirs = SHARED.take(32), os.read(reader, 32)
    os.close(reader)
    os.close(writer)
    assert len(theirs) == 32
    assert ours != theirs
