"""The confined process: it calls one function on what it is sent, and can do nothing else.

It runs as a script, without zoo and without site-packages: `child.py FILE FUNCTION FOLDER...`.  FILE is a module of its
own, or a package's `__init__.py`, that imports the standard library and the packages in the FOLDERs.  Its `prepare()`
is called while files can still be opened; then the process gives up files, network and processes for good, and answers
requests until they end.

A request's arguments are marshalled by the process that started this one; data of megabytes may follow them, and is
the function's last argument, a bytearray.  An answer is a status and bytes (the function returns them, or a tuple of
buffers), and no more to its reader.

A module with a global `fetch` is given a function there: fetch(offset, most) asks for part of the file that its owner
reads, and gets its bytes, fewer at the end.
"""

from __future__ import annotations

import contextlib
import importlib.util
import marshal
import os
import signal
import struct
import sys
import time

try:
    import resource
except ImportError:  # not on Windows
    resource = None

# Bytes of arguments, bytes of data behind them, bytes of memory and seconds of the processor to answer in.
REQUEST = struct.Struct("<QQQI")
ANSWER = struct.Struct("<cQ")  # status, bytes that follow
STATUS_DONE, STATUS_FAILED, STATUS_STOPPED = b"d", b"f", b"s"  # the function's result; its exception; it took too much
STATUS_PART = b"w"  # no answer yet, but a part of the file is asked for
PART_HEADER = struct.Struct("<QQ")  # the part's offset and most bytes; then the bytes that are sent, and 0
MAX_MESSAGE = 2000  # characters of an exception's message
MAX_MEMORY = 2 << 30  # bytes for any request
MAX_RECURSION = 3000  # Python's calls in one another

# Linux's system calls for a process that computes, and reads and writes what is open: numbers by architecture.
# read, write, readv, writev, close, fstat, lseek, mmap, mprotect, munmap, brk, mremap, madvise, rt_sigaction,
# rt_sigprocmask, rt_sigreturn, sigaltstack, sched_yield, futex, set_robust_list, rseq, restart_syscall, exit,
# exit_group, getpid, gettid, getrandom, getrusage, prlimit64, gettimeofday, clock_gettime, clock_nanosleep
_X86_64 = "0 1 19 20 3 5 8 9 10 11 12 25 28 13 14 15 131 24 202 273 334 219 60 231 39 186 318 98 302 96 228 230"
_AARCH64 = (
    "63 64 65 66 57 80 62 222 226 215 214 216 233 134 135 139 132 124 98 99 293 128 93 94 172 178 278 165 261 169"
)
_SYSTEM_CALLS = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64 + " 113 115")}


def main(file: str, function: str, *folders: str) -> None:
    """Answer requests until they end; the first answer says that the process is ready."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the process that asks
    sys.setrecursionlimit(MAX_RECURSION)
    sys.path += folders
    requests, answers = os.fdopen(0, "rb"), os.fdopen(1, "wb", 0)

    def answer(status: bytes, *parts: bytes) -> None:
        for part in (ANSWER.pack(status, sum(map(len, parts))), *parts):
            left = memoryview(part)
            while left:
                left = left[answers.write(left) :]

    def fetch(offset: int, most: int) -> bytes:
        answer(STATUS_PART, PART_HEADER.pack(offset, most))
        return requests.read(PART_HEADER.unpack(requests.read(PART_HEADER.size))[0])

    spec = importlib.util.spec_from_file_location("job", file)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["job"] = job = importlib.util.module_from_spec(spec)  # a package imports its modules by this name
    spec.loader.exec_module(job)
    if hasattr(job, "fetch"):
        job.fetch = fetch  # type: ignore[attr-defined]
    job.prepare()
    call, own = getattr(job, function), _address_space()
    _filter_system_calls()
    _limit("AS", own + MAX_MEMORY, for_good=True)
    for name, most in (("NOFILE", 3), ("FSIZE", 0), ("NPROC", 0), ("CORE", 0)):
        _limit(name, most, for_good=True)
    answer(STATUS_DONE, b"")
    while head := requests.read(REQUEST.size):
        size, more, memory, seconds = REQUEST.unpack(head)
        _limit("AS", own + min(memory, MAX_MEMORY))
        _limit("CPU", int(time.process_time() + seconds))  # the limit counts whole seconds
        try:
            arguments = marshal.loads(requests.read(size))
            if more:
                data = bytearray(more)
                requests.readinto(data)
                arguments = *arguments, data
            result = call(*arguments)
            answer(STATUS_DONE, *(result if isinstance(result, tuple) else (result,)))
        except MemoryError:
            answer(STATUS_STOPPED, b"it takes too much memory")
        except RecursionError:
            answer(STATUS_STOPPED, b"it is nested too deeply")
        except Exception as e:  # a hostile file may bring about any of them
            answer(STATUS_FAILED, f"{type(e).__name__}: {e}"[:MAX_MESSAGE].encode(errors="replace"))


def _address_space() -> int:
    """Bytes of address space that this Python has taken so far; some builds reserve a lot."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _limit(name: str, most: int, *, for_good: bool = False) -> None:
    """Set a limit of this process, where the platform has it; if not for good, it can be raised again."""
    kind = getattr(resource, f"RLIMIT_{name}", None)
    if resource is None or kind is None:
        return
    with contextlib.suppress(OSError, ValueError):
        hard = resource.getrlimit(kind)[1]
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (soft, soft if for_good else hard))


def _filter_system_calls() -> None:
    """Linux: every system call but those listed above fails with EPERM from here on (seccomp, mode filter).

    Other systems and architectures, and kernels built without it, have the limits above alone.
    """
    if sys.platform != "linux" or sys.maxsize < 1 << 32 or os.uname().machine not in _SYSTEM_CALLS:
        return
    try:
        import ctypes
    except ImportError:
        return
    architecture, listed = _SYSTEM_CALLS[os.uname().machine]
    calls = [int(number) for number in listed.split()]
    # Instructions of the kernel's packet filter: (code, jump if equal, jump if not, operand).
    load, jump_if_equal, result = 0x20, 0x15, 0x06
    refused = (result, 0, 0, 0x00050001)  # errno 1
    program = [
        *((load, 0, 0, 4), (jump_if_equal, 1, 0, architecture), refused, (load, 0, 0, 0)),
        *((jump_if_equal, len(calls) - i, 0, number) for i, number in enumerate(calls)),
        *(refused, (result, 0, 0, 0x7FFF0000)),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *instruction) for instruction in program))
    argument = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    control = ctypes.CDLL(None).prctl
    control.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    control(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    control(22, 2, ctypes.addressof(argument), 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


if __name__ == "__main__":
    main(*sys.argv[1:])
