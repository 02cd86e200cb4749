"""Another platform, simulated on Linux: what zoo's own modules import and call behaves as Windows or macOS does.

    python -m checks.elsewhere windows -m pytest -q tests/checkpoint tests/guards
    python -m checks.elsewhere macos -m pytest -q tests/checkpoint

Only modules of zoo are given the other platform's `os`, `sys`, `signal`, `resource`, ...: other libraries are those of
Linux.  What holds for files holds for all: on Windows an open or mapped file cannot be replaced, renamed or removed,
names have no `:` or `?`, a rename replaces nothing, and a line of text ends with CR and LF.  Processes that zoo starts
are simulated as well.  It proves that the code takes the right ways, not that the platform takes them.
"""

from __future__ import annotations

import atexit
import builtins
import errno
import importlib.machinery
import io
import os
import runpy
import shutil
import stat
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = str(ROOT / "zoo") + os.sep
UNIX_ONLY = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "readline", "posix", "syslog")
NOT_IN_NAMES = frozenset('<>:"\\|?*')  # Windows' files cannot be called so
DEVICES = frozenset(["con", "prn", "aux", "nul", *(f"{port}{i}" for port in ("com", "lpt") for i in range(10))])
# What Linux has and the other one has not, by module.
MISSING_NAMES: dict[str, dict[str, frozenset[str]]] = {
    platform: {module: frozenset(names.split()) for module, names in modules.items()}
    for platform, modules in {
        "windows": {
            "os": """
                fork register_at_fork uname sysconf getuid geteuid getgid killpg setsid mkfifo
                sched_getaffinity memfd_create posix_fallocate posix_fadvise sendfile pread pwrite
                O_DIRECTORY O_NOFOLLOW O_CLOEXEC O_NONBLOCK statvfs chown fchmod openpty nice
            """,
            "signal": """
                SIGKILL SIGALRM SIGHUP SIGUSR1 SIGUSR2 SIGXCPU SIGXFSZ SIGPIPE SIGCHLD SIGPROF
                alarm setitimer pthread_sigmask sigwait pthread_kill
            """,
        },
        "macos": {
            "os": "sched_getaffinity memfd_create posix_fallocate posix_fadvise O_TMPFILE O_DIRECT",
            "signal": "SIGPWR SIGRTMIN SIGRTMAX SIGSTKFLT sigtimedwait",
            "fcntl": "F_SETPIPE_SZ F_GETPIPE_SZ",
            "resource": "prlimit RLIMIT_RTPRIO RLIMIT_SIGPENDING",
        },
    }.items()
}


def _open_no_folder(path: Any, flags: int, *rest: Any, **options: Any) -> int:
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return os.open(path, flags, *rest, **options)


SET: dict[str, dict[str, dict[str, Any]]] = {
    "windows": {"sys": {"platform": "win32"}, "os": {"name": "nt", "open": _open_no_folder}},
    "macos": {"sys": {"platform": "darwin"}},
}

BUILTINS: dict[str, Any] = {}  # the built-in names of zoo's modules
# A Python in the place of this one: options first, then what it runs.
START = """#!/bin/sh
export ZOO_ELSEWHERE={folder}
options=
while [ $# -gt 0 ]; do
  case "$1" in
    -X|-W) options="$options $1 $2"; shift 2 ;;
    -m|-c) break ;;
    -*) options="$options $1"; shift ;;
    *) break ;;
  esac
done
exec "{python}" $options "{file}" {platform} "$@"
"""


def simulate(platform: str) -> None:
    """Have this process, and those that it starts, find what `platform` has; zoo is not imported yet."""
    loaded = [name for name in sys.modules if name == "zoo" or name.startswith("zoo.")]
    if loaded:
        raise RuntimeError(f"zoo is imported already: {loaded[0]}")
    real = builtins.__import__
    modules = {name: _strip_names(real(name), platform) for name in ("os", "sys", "signal", "fcntl", "resource")}
    absent = UNIX_ONLY if platform == "windows" else ()

    def import_module(name: str, *rest: Any) -> Any:
        if name in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return modules[name] if name in modules else real(name, *rest)

    BUILTINS.update({**vars(builtins), "__import__": import_module, "open": _without_proc(builtins.open)})
    load = importlib.machinery.SourceFileLoader.exec_module

    def exec_module(self: Any, module: types.ModuleType) -> None:
        if (getattr(module, "__file__", None) or "").startswith(PACKAGE):
            module.__dict__["__builtins__"] = BUILTINS
        load(self, module)

    importlib.machinery.SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign]
    if platform == "windows":
        _as_windows_files()
    _start_simulated(platform)


def _strip_names(module: types.ModuleType, platform: str) -> types.ModuleType:
    """A module as the other platform has it; what is set in it is set in Linux's."""

    before: dict[str, Any] = {}

    class Other(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name in MISSING_NAMES[platform].get(module.__name__, ()):
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            return SET[platform].get(module.__name__, {}).get(name) or getattr(module, name)

        def __setattr__(self, name: str, value: Any) -> None:
            before.setdefault(name, getattr(module, name, None))
            setattr(module, name, value)

        def __delattr__(self, name: str) -> None:  # as pytest's monkeypatch takes back what it set
            setattr(module, name, before.pop(name))

    other = Other(module.__name__)
    for name in ("__doc__", "__spec__", "__loader__", "__package__"):
        other.__dict__.pop(name, None)
    return other


def _without_proc(call: Callable[..., Any]) -> Callable[..., Any]:
    def open_file(file: Any, *rest: Any, **options: Any) -> Any:
        if str(file).startswith("/proc/"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))
        return call(file, *rest, **options)

    return open_file


def _as_windows_files() -> None:
    """Replace the calls that change names of files, and opening files for text, by those that act as Windows' do."""
    rename, replace, unlink, rmdir, mkdir = os.rename, os.replace, os.unlink, os.rmdir, os.mkdir

    def rename_file(a: Any, b: Any, **options: Any) -> None:
        if os.path.lexists(b):
            raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", str(b))
        _refuse_open(a)
        _refuse_name(b)
        rename(a, b, **options)

    def replace_file(a: Any, b: Any, **options: Any) -> None:
        if os.path.isdir(b):
            raise PermissionError(errno.EACCES, "Access is denied", str(b))
        _refuse_open(a)
        _refuse_open(b)
        _refuse_name(b)
        replace(a, b, **options)

    def unlink_file(path: Any, **options: Any) -> None:
        if not options:
            _refuse_open(path)
        unlink(path, **options)

    def remove_directory(path: Any, **options: Any) -> None:
        if not options and os.path.realpath(path) == os.getcwd():
            raise PermissionError(errno.EACCES, "it is the working directory of a process", str(path))
        rmdir(path, **options)

    def make_directory(path: Any, *rest: Any, **options: Any) -> None:
        _refuse_name(path)
        mkdir(path, *rest, **options)

    os.rename, os.replace, os.unlink, os.remove, os.rmdir = (
        rename_file,
        replace_file,
        unlink_file,
        unlink_file,
        remove_directory,
    )
    os.mkdir = make_directory
    setattr(shutil, "_use_fd_functions", False)  # noqa: B010 - rmtree by names, as there
    text = io.open

    def open_text(file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None,
                  newline: Any = None, *rest: Any, **options: Any) -> Any:  # fmt: skip
        if set(mode) & set("wax"):
            _refuse_name(file)
            if newline is None and "b" not in mode:
                newline = "\r\n"
        return text(file, mode, buffering, encoding, errors, newline, *rest, **options)

    io.open = builtins.open = open_text
    BUILTINS["open"] = _without_proc(open_text)


def _refuse_name(path: Any) -> None:
    if isinstance(path, int):
        return
    name = os.path.basename(os.fsdecode(path).rstrip("/"))
    is_device = name.partition(".")[0].lower() in DEVICES and not os.fsdecode(path).startswith("/dev/")
    if NOT_IN_NAMES & set(name) or is_device or (name.endswith((" ", ".")) and name not in (".", "..")):
        raise OSError(errno.EINVAL, "The filename, directory name, or volume label syntax is incorrect", str(path))


def _refuse_open(path: Any) -> None:
    """PermissionError if this process has a file open or mapped, or one in a folder, which holds it for a while."""
    real = os.path.realpath(os.fspath(path))
    held = set()
    for link in os.listdir("/proc/self/fd"):
        try:
            at = os.readlink(f"/proc/self/fd/{link}")
        except OSError:
            continue
        if at.startswith("/") and os.path.exists(at) and stat.S_ISREG(os.stat(at).st_mode):
            held.add(at)
    with _maps("/proc/self/maps") as maps:
        held |= {parts[5].rstrip("\n") for line in maps if len(parts := line.split(maxsplit=5)) == 6}
    if any(one == real or one.startswith(real + os.sep) for one in held):
        raise PermissionError(errno.EACCES, "The process cannot access the file: another process uses it", str(path))


_maps = io.open  # Linux's own


def _start_simulated(platform: str) -> None:
    """Processes that this one starts with sys.executable simulate the platform as well."""
    import multiprocessing

    folder = os.environ.get("ZOO_ELSEWHERE")
    if folder is None:
        folder = tempfile.mkdtemp(prefix="elsewhere-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        start = Path(folder, "python")
        start.write_text(
            START.format(python=sys.executable, folder=folder, file=__file__, platform=platform),
            encoding="utf-8",
            newline="",
        )
        start.chmod(0o755)
        os.environ["ZOO_ELSEWHERE"] = folder
    sys.executable = str(Path(folder, "python"))
    multiprocessing.set_executable(sys.executable)


def main(platform: str, kind: str, *arguments: str) -> None:
    """Run what Python's command line names (-m, -c or a file) on the simulated platform."""
    simulate(platform)
    if kind in ("-m", "-c"):
        sys.path[0] = os.getcwd()
        what, *rest = arguments
        sys.argv = [kind, *rest]
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
            return
        code = compile(what, "<string>", "exec")
    else:
        sys.path[0], sys.argv = str(Path(kind).parent), [kind, *arguments]
        code = compile(Path(kind).read_bytes(), kind, "exec")
    this = sys.modules["__main__"] = types.ModuleType("__main__")
    this.__dict__["__file__"] = kind
    if kind.startswith(PACKAGE):
        this.__dict__["__builtins__"] = BUILTINS
    exec(code, this.__dict__)


if __name__ == "__main__":
    main(*sys.argv[1:])
