"""The command: python -m bench [NAME ...] [--json] [--list]."""

import argparse
import signal
import sys
from collections.abc import Sequence

from bench import catalogue, report
from bench.catalogue import Measurement
from bench.consumption import Neighbours
from bench.results import Result


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    chosen = [catalogue.get(name, options.size) for name in options.names or catalogue.names()]
    if options.list:
        _print_descriptions(chosen)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers are stopped and folders removed
    neighbours = Neighbours()
    results = [result for measurement in chosen for result in _run(measurement)]
    others = neighbours.share()
    print(
        report.as_json(results, others)
        if options.json
        else f"{report.head(others)}\n\n{report.table(results)}"
    )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench", description="Measures this checkout and its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(catalogue.names())}")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--list", action="store_true", help="only say what is measured")
    parser.add_argument("--size", type=int, help="another size for those that have one, as search has")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in catalogue.names()]
    if unknown:
        parser.error(f"no measurement is called {', '.join(unknown)}")
    return options


def _print_descriptions(measurements: Sequence[Measurement]) -> None:
    width = max(len(measurement.name) for measurement in measurements)
    for measurement in measurements:
        print(f"{measurement.name:<{width}}  {measurement.description}")


def _run(measurement: Measurement) -> list[Result]:
    print(f"{measurement.name}: {measurement.description}", file=sys.stderr, flush=True)
    return measurement.measure()


if __name__ == "__main__":
    main()
