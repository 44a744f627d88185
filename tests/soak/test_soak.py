"""The plot of a soak, and what it is drawn from."""

import os
from pathlib import Path
from xml.etree import ElementTree

from tests.soak import plot, watch


def test_a_line_a_process_is_drawn_inside_its_panel() -> None:
    series = {"server": [(0.0, 10.0), (60.0, 20.0)], "child <1>": [(0.0, 5.0), (60.0, 5.0)]}
    root = ElementTree.fromstring(plot.draw({"memory, MB": series, "descriptors": {}}))
    lines = [each for each in root.iter() if each.tag.endswith("polyline")]
    assert len(lines) == 2
    for line in lines:
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert plot.LEFT <= x <= plot.WIDTH - 10
            assert plot.GAP <= y <= plot.GAP + plot.HEIGHT
    assert "child <1>" in [each.text for each in root.iter() if each.tag.endswith("text")]


def test_what_a_process_uses_is_read_from_the_kernel(tmp_path: Path, no_collector: None) -> None:
    assert next(iter(watch.processes(os.getpid()))) == ("server", os.getpid())
    assert watch.memory_megabytes(os.getpid()) > 5
    before = watch.descriptors(os.getpid())
    with (tmp_path / "file").open("w"):
        assert watch.descriptors(os.getpid()) == before + 1
    assert watch.log_megabytes(tmp_path) == 0
    (tmp_path / "postroom.db-wal").write_bytes(bytes(watch.MEGABYTE))
    assert watch.log_megabytes(tmp_path) == 1
