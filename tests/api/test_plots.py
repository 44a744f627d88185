"""Plots tell their numbers: on their axes, where one points at a bar, and to who does not see them."""

from postroom.web.dashboard.display.plots import bars


def test_a_plot_names_its_highest_value_its_hours_and_each_bar() -> None:
    drawn = bars([0, 1200, 3], "Mails out", [0, 34, 0])
    assert 'aria-label="Mails out: 1237 in total, 34 failed, at most 1234"' in drawn
    assert '<span class="most" aria-hidden="true">1,234</span>' in drawn
    assert "<span>3 h ago</span>" in drawn
    for words in ("2 h ago: 0", "1 h ago: 1,200", "1 h ago: 34 failed", "this hour: 3"):
        assert f"<title>{words}</title>" in drawn


def test_a_measure_has_its_unit_and_no_sum() -> None:
    drawn = bars([7, 9], "Wait", is_sum=False, unit=" ms")
    assert 'aria-label="Wait: at most 9 ms"' in drawn
    assert "<title>1 h ago: 7 ms</title>" in drawn


def test_a_time_without_anything_has_no_plot() -> None:
    assert "<svg" not in bars([0, 0], "Nothing")


def test_a_plot_of_days_names_them() -> None:
    drawn = bars([1, 2, 3], "Mails in", labels=["2026-11-15", "2026-11-16", "2026-11-17"])
    assert "<span>2026-11-15</span><span>2026-11-16</span><span>2026-11-17</span>" in drawn
    assert "<title>2026-11-16: 2</title>" in drawn
