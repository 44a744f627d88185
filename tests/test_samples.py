"""A test of many samples fails when one of them does."""

import pytest

from tests.samples import samples

seen: list[int] = []


def test_all_samples_are_tried_and_those_that_fail_are_told() -> None:
    @samples("number", range(6))
    def check(number: int) -> None:
        seen.append(number)
        assert number % 2
        if number == 3:
            pytest.fail("three")

    with pytest.raises(BaseExceptionGroup, match="4 of 6 samples") as caught:
        check()
    assert seen == [0, 1, 2, 3, 4, 5]
    told = [error.__notes__ for error in caught.value.exceptions]
    assert told == [[f"with the sample number={number}"] for number in (0, 2, 3, 4)]


def test_none_is_no_sample_of_anything() -> None:
    @samples("number", [])
    def check(number: int) -> None:
        raise ValueError(number)

    with pytest.raises(AssertionError):
        check()


@samples(("left", "right"), [(1, 1), ("a", "a")])
def test_a_sample_of_two_parts_is_given_in_parts(left: object, right: object) -> None:
    assert left == right
