"""The fork-join under NumPy: how many threads, many callers at once, failures, forks, and nothing left changed."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import zoo
from zoo import ops
from zoo.ops.on_numpy import blas, threads

CONTROL = blas.find()
needs_control = pytest.mark.skipif(CONTROL is None, reason="needs a NumPy whose BLAS thread count can be set")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@pytest.fixture(autouse=True)
def three_threads(monkeypatch):
    threads.set_count(3)
    monkeypatch.setattr(threads, "MIN_PARALLEL_NS", 0)
    before = CONTROL.get() if CONTROL else None
    yield
    threads.set_count(None)
    if CONTROL:
        assert CONTROL.get() == before


class Layer:
    """A Transformer layer on shared random weights."""

    def __init__(self, D: int = 48):
        rng = np.random.default_rng(0)
        self.qkv, self.out, self.up, self.down = (
            rng.standard_normal(shape, np.float32) / 7 for shape in ((3 * D, D), (D, D), (4 * D, D), (D, 4 * D))
        )
        self.one = np.ones(D, np.float32)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        a = ops.attention(*ops.split_heads(ops.linear(x, self.qkv), 4)).reshape(x.shape)
        x = ops.layer_norm(ops.linear(a, self.out), self.one, self.one, 1e-5, residual=x)
        y = ops.linear(ops.linear(x, self.up, None, "gelu"), self.down)
        return ops.layer_norm(y, self.one, self.one, 1e-5, residual=x)


def inputs(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [
        rng.standard_normal((int(rng.integers(1, 4)), int(rng.integers(1, 90)), 48), np.float32) for _ in range(count)
    ]


def test_many_callers_at_once_get_what_each_would_get_alone():
    layer, xs = Layer(), inputs(40)
    alone = [layer(x) for x in xs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            for y, expected in zip(pool.map(layer, xs), alone, strict=True):
                np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_same_every_time(count):
    threads.set_count(count)
    layer, xs = Layer(), inputs(10)
    first = [layer(x) for x in xs]
    for _ in range(3):
        for y, expected in zip(map(layer, xs), first, strict=True):
            np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_a_row_alone_or_in_a_padded_batch():
    layer = Layer()
    x = np.random.default_rng(2).standard_normal((3, 60, 48), np.float32)
    q, k, v = ops.split_heads(ops.linear(x, layer.qkv), 4)
    mask = np.arange(60) < np.array([60, 33, 7])[:, None]
    batch = ops.attention(q, k, v, mask=mask)
    for b, n in enumerate([60, 33, 7]):
        row = ops.attention(*ops.split_heads(ops.linear(x[b : b + 1, :n], layer.qkv), 4))
        assert np.linalg.norm(batch[b, :n] - row[0]) <= 1e-6 * np.linalg.norm(row)


@needs_control
def test_the_blas_has_one_thread_inside_and_its_own_count_outside():
    before = CONTROL.get()
    seen = []
    threads.run(lambda i: seen.append(CONTROL.get()), 6, 1)
    assert seen == [1] * 6
    assert CONTROL.get() == before


@needs_control
def test_a_count_set_from_outside_is_respected():
    threads.set_count(None)
    before = CONTROL.get()
    try:
        CONTROL.set(1)
        assert threads.count() == 1
        threads.run(lambda i: None, 3, 1)
        assert CONTROL.get() == 1
    finally:
        CONTROL.set(before)


@needs_control
def test_work_is_shared_out_and_each_part_done_once():
    names, done = set(), []

    def part(i: int) -> None:
        names.add(threading.get_ident())
        done.append(i)
        time.sleep(0.01)

    for _ in range(1000):  # calls for help that came too late may still wait to be dismissed, and put off new ones
        if not threads._jobs.qsize():
            break
        time.sleep(0.01)
    threads.run(part, 30, 1)
    assert sorted(done) == list(range(30))
    assert len(names) == 3
    assert all(t.daemon for t in threading.enumerate() if t.name == "zoo-worker")


@pytest.mark.parametrize("failing", [0, 7, 19])
def test_an_exception_reaches_the_caller_and_the_rest_works_on(failing):
    def part(i: int) -> None:
        time.sleep(0.001)
        if i == failing:
            raise LookupError(f"part {i}")

    with pytest.raises(LookupError, match=f"part {failing}"):
        threads.run(part, 20, 1)
    test_the_same_every_time(3)


def test_no_warning_leaks_from_any_thread():
    x = np.full((1, 200, 3), 200, np.float32)
    with np.errstate(all="raise"):
        ops.linear(-x, np.eye(3, dtype=np.float32), None, "silu")
        assert np.geterr()["over"] == "raise"


def until(timer: threading.Timer, layer: Layer, x: np.ndarray) -> None:
    timer.start()
    while True:
        layer(x)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_an_interrupt_leaves_everything_sane(request):
    # A process in the background of a shell begins with interrupts ignored.
    request.addfinalizer(partial(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT)))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    layer, x = Layer(), inputs(1)[0]
    expected = layer(x)
    for delay in np.linspace(0.001, 0.02, 12):
        timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            until(timer, layer, x)
        timer.join()
        np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-6)
    assert not threads._inside


def test_a_caller_that_could_not_leave_is_forgotten(monkeypatch):
    before = CONTROL.get() if CONTROL else None
    with monkeypatch.context() as interrupted:
        interrupted.setattr(threads, "_leave", lambda token: None)
        threads.run(lambda i: None, 3, 1)
    threads.run(lambda i: None, 3, 1)
    assert not threads._inside
    assert before is None or CONTROL.get() == before


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_process_computes_too():
    layer, x = Layer(), inputs(1)[0]
    expected = layer(x)
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # a deadlock ends the child, and fails the test
        os._exit(0 if np.allclose(layer(x), expected, rtol=1e-5, atol=1e-6) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-6)


# how many


def fresh(code: str, **environ: str) -> str:
    root = Path(__file__).parents[2]
    clean = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    command = [sys.executable, "-c", code]
    run = subprocess.run(
        command, cwd=root, env={**clean, **environ}, capture_output=True, text=True, check=True, timeout=300
    )
    return run.stdout.strip()


@needs_control
@pytest.mark.parametrize("value", ["1", "1,4"])
def test_one_omp_thread_means_no_worker(value):
    code = """
import threading, numpy as np
from zoo import ops
from zoo.ops.on_numpy import threads
x = np.ones((1, 256, 512), np.float32)
ops.linear(x, x[0])
print(threads.count(), threading.active_count())
"""
    assert fresh(code, OMP_NUM_THREADS=value) == "1 1"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs CPU affinity")
def test_affinity_is_respected():
    code = """
import os
import platform
os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
from zoo.ops.on_numpy import threads
print(threads.count())
"""
    assert fresh(code) == "1"


def test_importing_starts_no_thread():
    assert fresh("import threading, zoo.ops; print(threading.active_count())") == "1"


@pytest.mark.parametrize("count", [0, -1, 1025, 2.0, True, "2", 10**30])
def test_a_count_that_is_none_is_refused(count):
    with pytest.raises(zoo.ZooError, match="a whole number from 1 to 1024, or None, found"):
        zoo.set_num_threads(count)
    assert zoo.get_num_threads() == 3


def test_the_public_functions_set_and_tell_the_count(monkeypatch):
    zoo.set_num_threads(np.int64(5))
    assert zoo.get_num_threads() == 5
    zoo.set_num_threads(None)
    assert zoo.get_num_threads() == (1 if CONTROL is None else min(threads.limit(), CONTROL.get()))


def test_without_a_switch_the_blas_keeps_its_threads_unless_a_count_is_set(monkeypatch):
    monkeypatch.setattr(threads, "_control", None)
    monkeypatch.setattr(threads, "_limit", 4)
    assert zoo.get_num_threads() == 3
    names = set()
    threads.run(lambda i: (time.sleep(0.01), names.add(threading.get_ident())), 30, 1)
    assert len(names) > 1
    zoo.set_num_threads(None)
    assert zoo.get_num_threads() == 1


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("max 100000", None),
        ("150000 100000", 1.5),
        ("-1 100000", None),
        ("400000 100000\n", 4),
        ("", None),
        ("x y", None),
        ("0 0", None),
    ],
)
def test_a_quota_is_parsed(text, cpus):
    assert threads.parse_quota(text) == cpus


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({}, None),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "250000 100000"}, 2),
        (
            {
                "/proc/self/cgroup": "0::/a/b\n",
                "/sys/fs/cgroup/a/b/cpu.max": "max 100000",
                "/sys/fs/cgroup/a/cpu.max": "50000 100000",
            },
            1,
        ),
        ({"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/cpu.max": "max 100000"}, None),
        (
            {
                "/proc/self/cgroup": "5:memory:/d\n4:cpu,cpuacct:/d\n",
                "/sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_quota_us": "300000\n",
                "/sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_period_us": "100000\n",
                "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
                "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            3,
        ),
        ({"/proc/self/cgroup": "nonsense\n"}, None),
    ],
)
def test_a_cgroup_limits_the_count(files, cpus):
    assert threads.cgroup_quota(files.get) == cpus


@needs_control
@pytest.mark.skipif(CONTROL is not None and not CONTROL.core, reason="needs an OpenBLAS that says its processor")
def test_the_core_of_the_blas_decides_what_is_packed():
    """Nehalem's kernels run on whatever x86 there is; a core that OpenBLAS does not know leaves it its own choice."""
    code = "from zoo.ops.on_numpy import blas; print(blas.find().core, blas.needs_no_packing())"
    core = CONTROL.core
    assert fresh(code) == f"{core} {core.lower() in blas.CORES_WITHOUT_PACKING}"
    if platform.machine() in ("x86_64", "AMD64"):
        assert fresh(code, OPENBLAS_CORETYPE="Nehalem") == "Nehalem False"


@pytest.mark.parametrize(
    ("core", "unpacked"), [("SkylakeX", True), ("Cooperlake", True), ("Haswell", False), ("Zen", False), (None, False)]
)
def test_only_cores_that_are_known_are_trusted_with_small_products(core, unpacked, monkeypatch):
    control = blas.Control(lambda: 1, lambda n: None, core)
    monkeypatch.setattr(blas, "find", lambda: control)
    assert blas.needs_no_packing.__wrapped__() is unpacked
    monkeypatch.setattr(blas, "find", lambda: None)
    assert blas.needs_no_packing.__wrapped__() is False
