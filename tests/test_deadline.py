"""A call that may take only so long: its result, its error, and its end when nobody waits for it."""

from __future__ import annotations

import threading
import time

import pytest

from zoo.deadline import within


def test_results_and_errors() -> None:
    assert within(5, lambda: 3) == 3
    with pytest.raises(KeyError, match="gone"):
        within(5, lambda: {}["gone"])


def test_a_call_that_nobody_waits_for_ends() -> None:
    begun = threading.active_count()
    with pytest.raises(TimeoutError, match="not done after 0 s"):
        within(0.05, lambda: [time.sleep(0.01) for _ in range(10**6)])
    end = time.monotonic() + 20
    while threading.active_count() > begun and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == begun
