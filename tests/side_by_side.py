"""Runs tests in several processes, which are forks of the one that collected them.

pytest-xdist would collect them anew in each process: 7 of about 120 seconds of its processor time. A process
gets a few tests of one module at a time, and asks for the next ones before it runs the last of them, since
that decides which fixtures are torn down. One process gets the tests that need a browser, which it starts.
"""

import multiprocessing
import os
import shutil
import tempfile
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

AT_A_TIME = 16
BROWSERS = 1
GRACE_SECONDS = 3.0
FOLDER = "PYTEST_DEBUG_TEMPROOT"
FORK = multiprocessing.get_context("fork")


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def number_of_processes(value: str) -> int:
    """`auto` is more than there are cores: tests that kill, restart or deliver wait more than they work."""
    return cores() + 4 if value == "auto" else int(value)


def is_side_by_side(config: pytest.Config) -> bool:
    processes: int = config.option.processes
    return processes > 0 and not config.option.collectonly


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--processes", type=number_of_processes, default=0, help="run tests in so many processes, or 'auto'"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if not is_side_by_side(session.config) or session.testsfailed:
        return None
    if reporter := session.config.pluginmanager.getplugin("terminalreporter"):
        reporter.showfspath = False  # results of several modules come in turn
    run = Run(session)
    try:
        run.run()
    finally:
        run.stop()
    return True


@dataclass
class Worker:
    process: BaseProcess
    connection: Connection
    held: list[int] = field(default_factory=list)  # the places of tests that it has not finished
    has_browser: bool = False


class Run:
    """Hands out tests, and reports their results to pytest as if they had run here."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._hook = session.config.hook
        self._waiting = deque(by_module(session.items))
        self._workers: dict[Connection, Worker] = {}
        self._folder = tempfile.mkdtemp(dir=os.environ.get(FOLDER), prefix="side-by-side-")

    def run(self) -> None:
        for _ in range(self._session.config.option.processes):
            self._start()
        while self._workers:
            for connection in wait(list(self._workers)):
                assert isinstance(connection, Connection)
                self._hear(self._workers[connection])
            if self._session.shouldfail:
                raise self._session.Failed(self._session.shouldfail)
            if self._session.shouldstop:
                raise self._session.Interrupted(self._session.shouldstop)

    def stop(self) -> None:
        """Also those whose test takes signals for itself."""
        for worker in self._workers.values():
            worker.process.terminate()
        for worker in self._workers.values():
            worker.process.join(GRACE_SECONDS)
            worker.process.kill()
            worker.process.join()
        if not self._session.testsfailed:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        here, there = FORK.Pipe()
        inherited = [*self._workers, here]
        process = FORK.Process(target=work, args=(self._session, there, inherited, self._folder))
        process.start()
        there.close()
        worker = self._workers[here] = Worker(process, here)
        self._hand_out(worker)

    def _hand_out(self, worker: Worker) -> None:
        places = self._next_places(worker)
        worker.held += places
        worker.connection.send(places)

    def _next_places(self, worker: Worker) -> list[int]:
        """Fewer towards the end, so that all processes end together."""
        module = next((module for module in self._waiting if self._may_run(worker, module)), None)
        if module is None:
            return []
        worker.has_browser |= self._needs_browser(module)
        left = sum(map(len, self._waiting))
        most = max(1, min(AT_A_TIME, left // (4 * self._session.config.option.processes)))
        places = module[:most]
        del module[:most]
        if not module:
            self._waiting.remove(module)
        return places

    def _may_run(self, worker: Worker, module: list[int]) -> bool:
        browsers = sum(each.has_browser for each in self._workers.values())
        return worker.has_browser or browsers < BROWSERS or not self._needs_browser(module)

    def _needs_browser(self, module: list[int]) -> bool:
        marks = self._session.items[module[0]].iter_markers("needs")
        return any("chromium" in mark.args for mark in marks)

    def _hear(self, worker: Worker) -> None:
        try:
            kind, value = worker.connection.recv()
        except EOFError:
            self._forget(worker)
            return
        match kind:
            case "ask":
                self._hand_out(worker)
            case "start":
                self._hook.pytest_runtest_logstart(**self._named(value))
            case "finish":
                worker.held.remove(value)
                self._hook.pytest_runtest_logfinish(**self._named(value))
            case "report":
                config = self._session.config
                report = self._hook.pytest_report_from_serializable(config=config, data=value)
                self._hook.pytest_runtest_logreport(report=report)
            case "warning":
                self._hook.pytest_warning_recorded.call_historic(kwargs=value)

    def _named(self, place: int) -> dict[str, Any]:
        item = self._session.items[place]
        return {"nodeid": item.nodeid, "location": item.location}

    def _forget(self, worker: Worker) -> None:
        """It has run all, or it died in the first test that it held: then another one runs what is left."""
        del self._workers[worker.connection]
        worker.process.join()
        if not worker.held:
            return
        place, *left = worker.held
        why = f"the process that ran it ended with exit code {worker.process.exitcode}"
        report = pytest.TestReport(
            **self._named(place), keywords={}, outcome="failed", longrepr=why, when="call"
        )
        self._hook.pytest_runtest_logreport(report=report)
        if left:
            self._waiting.appendleft(left)
        self._start()


def by_module(items: list[pytest.Item]) -> Iterator[list[int]]:
    places = range(len(items))
    for _, group in groupby(places, key=lambda place: items[place].path):
        yield list(group)


def work(session: pytest.Session, connection: Connection, inherited: list[Connection], folder: str) -> None:
    """All of a process: it runs what it is given, until it is given nothing."""
    for other in inherited:
        other.close()  # else nobody would see that one has ended
    os.environ[FOLDER] = tempfile.mkdtemp(dir=folder)  # there pytest makes every `tmp_path`
    begin(session.config, connection)
    places: list[int] = connection.recv()
    while places:
        for place, following in pairwise(places):
            run_test(session, connection, place, following)
        last = places[-1]
        connection.send(("ask", None))
        places = connection.recv()
        run_test(session, connection, last, places[0] if places else None)


def begin(config: pytest.Config, connection: Connection) -> None:
    """With its own captured output; what happens is told to the first process."""
    plugins = config.pluginmanager
    plugins.unregister(name="terminalreporter")
    reporter = Reporter(config)
    plugins.register(reporter)  # which is told all warnings of the run so far
    reporter.connection = connection
    if capture := plugins.getplugin("capturemanager"):
        capture.stop_global_capturing()
        capture.start_global_capturing()


def run_test(session: pytest.Session, connection: Connection, place: int, following: int | None) -> None:
    item = session.items[place]
    connection.send(("start", place))
    next_item = None if following is None else session.items[following]
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
    connection.send(("finish", place))


class Reporter:
    """Sends on what a plugin of pytest may see of a run."""

    connection: Connection | None = None  # once it has one, it sends

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._send("report", data)

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        warning_message.source = None  # an object of this process
        told = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        self._send("warning", told)

    def _send(self, kind: str, value: Any) -> None:
        if self.connection is not None:
            self.connection.send((kind, value))
