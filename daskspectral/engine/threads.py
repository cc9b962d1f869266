"""One BLAS thread for each dask thread, set once per process."""

from __future__ import annotations

import logging
import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

logger = logging.getLogger(__name__)

_lock = threading.Lock()
_users = 0
_drives = False  # a run was active in this process
_limit: Any = None


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in this process during runs, and restore the setting afterwards."""
    global _users, _limit, _drives
    with _lock:
        _users, _drives = _users + 1, True
        if _users == 1:
            _limit = _controller().limit(limits=1)
            _release()
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()
                _release()
                _limit = None


def _release() -> None:
    """Let other threads change the number too, which threadpoolctl 3.8 allows only the last one that did."""
    with _controller().select(prefix="none").limit(limits=None):
        pass


@cache
def limit_worker() -> None:
    """Limit BLAS to one thread in a worker process from its first task on, but not in the driver."""
    called_here = threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None
    if not _drives and not called_here:
        _controller().limit(limits=1)
        logger.debug("BLAS limited to one thread in this worker")
