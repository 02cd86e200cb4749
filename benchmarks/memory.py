"""The largest memory of a process, read by that process.  It imports little, since processes that are timed load it."""

import sys


def peak() -> int:
    """Bytes that this process had at most; VmHWM, unlike ru_maxrss, does not count the process that forked it."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as f:
            return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmHWM"))
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
