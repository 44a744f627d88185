"""One line for each movement and each fault, on standard error; never a body, a key or a secret."""

import functools
import sys

import structlog

Logger = structlog.typing.FilteringBoundLogger


def set_up() -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["at", "level", "event"]),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


@functools.cache
def get() -> Logger:
    logger: Logger = structlog.get_logger()
    return logger
