"""The process in which templates are rendered: bounds, faults, forks, signals; templates that are out to break it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

pytest.importorskip("jinja2", reason="needs jinja2, the extra 'chat'")
pytest.importorskip("resource", reason="needs limits, which Windows has not")

from zoo.errors import UnsupportedError
from zoo.text.template import process
from zoo.text.template.process import RENDERER, Answer, Renderer

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's limits and /proc")

DOUBLE = "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
NEST = "{% set n = namespace(x=[1]) %}{% for i in range(99999) %}{% set n.x = n.x | WRAP %}{% endfor %}{{ n.x | list }}"
SQUARES = "{% set n = namespace(x=3) %}{% for i in range(24) %}{% set n.x = n.x * n.x %}{% endfor %}"
BOMBS = {
    "a text": "{{ 'a' * 10 ** 10 }}",
    "a list": "{{ ([1] * 10 ** 9) | length }}",
    "a tuple": "{{ ((1, 2) * 10 ** 9) | length }}",
    "a power": "{{ 10 ** (10 ** 8) }}",
    "powers of powers": "{{ (9 ** 20000) ** 900000 }}",
    "a division": SQUARES + "{{ n.x // 7 }}",
    "digits": "{{ 10 ** 5000 }}",
    "a width": "{{ 'a' | center(10 ** 10) }}",
    "a width of a method": "{{ 'a'.ljust(10 ** 10) }}",
    "a width in a format": "{{ '%10000000000d' % 1 }}",
    "a width in another": "{{ '{:>10000000000}'.format(1) }}",
    "a computed width": "{{ '%*d' % (10 ** 9, 3) }}",
    "widths": "{{ ('%(a)99999d' * 20000) % {'a': 1} }}",
    "an indent": "{{ {'a': 1} | tojson(indent=10 ** 9) }}",
    "a join": "{{ ('x' * 16000000).join(range(180) | map('string')) | length }}",
    "a replacement": "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
    "a translation": "{{ ('a' * 180).translate({97: 'b' * 16000000}) }}",
    "many texts": "{{ range(9999) | map('string') | map('center', 1000000) | list | length }}",
    "data that doubles": DOUBLE + "{{ n.x }}",
    "data that doubles, as JSON": DOUBLE + "{{ n.x | tojson }}",
    "data that doubles, compared": DOUBLE + "{% set a = n.x %}" + DOUBLE + "{{ n.x == a }}",
    "data in data": NEST.replace("WRAP", "batch(1)"),
    "slices in slices": NEST.replace("WRAP", "slice(1)"),
    "maps of maps": NEST.replace("WRAP", "map('string')"),
    "lists in lists": "{% set n = namespace() %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}",
    "a loop": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "a range": "{{ range(10 ** 9) }}",
    "recursion": "{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
    "a tree of calls": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(99) }}",
    "recursion in a loop": "{% for i in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}",
    "brackets": "{{ " + "(" * 100_000 + "1" + ")" * 100_000 + " }}",
    "lists": "{{ " + "[" * 100_000,
    "signs": "{{ " + "-" * 300_000 + "1 }}",
    "negations": "{{ " + "not " * 200_000 + "1 }}",
    "attributes": "{{ x" + ".a" * 200_000 + " }}",
    "filters": "{{ 1" + "|string" * 100_000 + " }}",
    "sums": "{{ 1" + "+1" * 200_000 + " }}",
    "conditions": "{% if 1 %}" * 100_000,
    "tags": "{%" * 500_000,
    "comments": "{#" * 500_000,
    "white space": "{{" + " " * 1_000_000,
    "quotes": "{{ '" + "\\" * 1_000_000,
    "half a character": "{{ '\\ud800' }}",
    "what an error says": "{{ raise_exception('a' * 10 ** 7) }}",
    "a value in an error": "{{ ('a' * 10 ** 7)[none] + 1 }}",
}


@pytest.mark.parametrize("source", BOMBS.values(), ids=BOMBS)
def test_bombs(source, monkeypatch):
    """Each ends in an error, in the time that there is; and the next template is rendered."""
    monkeypatch.setattr(process, "SECONDS", 2)
    answer = RENDERER.render(source, {}, 1 << 22)
    assert answer.kind in ("stopped", "fails", "syntax", "refused", "undefined")
    assert len(answer.text) <= 2000
    monkeypatch.undo()
    assert RENDERER.render("a{{ x }}", {"x": 1}, 9) == Answer("text", 0, "a1")


def run(code: str) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@linux
@pytest.mark.slow
def test_memory_of_both_processes():
    run(
        f"""
        import importlib.util, resource
        from zoo.text.template.process import RENDERER
        spec = importlib.util.spec_from_file_location("bombs", {__file__!r})
        bombs = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(bombs)
        for name in ("a text", "a list", "a join", "many texts", "data that doubles, as JSON", "lists"):
            RENDERER.render(bombs.BOMBS[name], {{}}, 1 << 22)
        RENDERER.close()
        # Not RUSAGE_SELF, which begins with what the process that started this one had.
        own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
        both = own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        assert sum(both) < 500 << 10, both
        """
    )


@pytest.fixture
def renderer():
    made = Renderer()
    yield made
    made.close()


def test_answers(renderer):
    ask = lambda source, **variables: renderer.render(source, variables, 1000)
    text = "(1, [2.0, {3: None}], 1000000000000000000000000000000, 'é😀')"
    assert ask("{{ v }}", v=(1, [2.0, {3: None}], 10**30, "é😀")) == Answer("text", 0, text)
    assert ask("\n{% if %}")[:2] == ("syntax", 2)
    assert ask("\n{{ a.b.c }}") == Answer("undefined", 2, "'a' is undefined")
    assert ask("{{ raise_exception('no') }}") == Answer("refused", 1, "no")
    assert ask("{{ {}.update }}{{ {}.update({}) }}").kind == "forbidden"
    assert ask("{{ 1 / 0 }}") == Answer("fails", 1, "ZeroDivisionError: division by zero")
    assert ask("{{ 'a' * 1001 }}") == Answer("stopped", 1, "it writes too much")
    assert ask("{{ 'é' * 1000 }}").text == "é" * 1000


def test_every_filter_and_test_works_where_no_file_can_be_opened(renderer):
    from zoo.text.template.expressions import ENVIRONMENT

    for name in ENVIRONMENT.filters:
        for value in ("'aé <b>'", "[1, 2]", "{'a': [1]}", "1.5", "none"):
            answer = renderer.render(f"{{{{ {value} | {name} | string | length >= 0 }}}}", {}, 99)
            assert "No module" not in answer.text
            assert "open files" not in answer.text
    for name in ENVIRONMENT.tests:
        assert "No module" not in renderer.render(f"{{{{ 1 is {name} }}}}", {}, 99).text


def test_the_clock_is_this_processes(renderer, monkeypatch):
    class Frozen(process.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2001, 2, 3, 4, 5, 6, 78)

    monkeypatch.setattr(process, "datetime", Frozen)
    text = renderer.render("{{ strftime_now('%d %b %Y %H:%M:%S.%f') }}", {}, 99).text
    assert text == "03 Feb 2001 04:05:06.000078"


def test_large_requests_and_answers(renderer):
    text = "x😀" * 1_500_000
    assert renderer.render("{{ v }}{{ v }}", {"v": text}, 1 << 23).text == text * 2


def test_one_process_is_kept_and_another_started_where_it_dies(renderer):
    renderer.render("a", {}, 9)
    first = renderer._child
    assert renderer.render("b", {}, 9).text == "b"
    assert renderer._child is first
    first.kill()
    assert renderer.render("c", {}, 9).text == "c"
    assert renderer._child is not first
    renderer._child.kill()
    renderer._child.wait()
    assert renderer.render("d", {}, 9).text == "d"


def test_threads(renderer):
    wrong = []

    def ask(name: str) -> None:
        for i in range(20):
            text = f"{name}{i}" * 99
            if renderer.render("{{ v }}", {"v": text}, 9999).text != text:
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks():
    """Each of them has a process of its own, and ends none of another's."""
    run(
        """
        import os, sys, warnings
        warnings.simplefilter("error")
        from zoo.text.template.process import RENDERER
        RENDERER.render("a", {}, 9)
        mine = RENDERER._child.pid
        if (pid := os.fork()) == 0:
            assert RENDERER.render("b", {}, 9).text == "b" and RENDERER._child.pid != mine
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert RENDERER.render("c", {}, 9).text == "c" and RENDERER._child.pid == mine
        """
    )


@pytest.fixture
def interruptible():
    """A shell's background ignores interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupts(renderer):
    renderer.render("a", {}, 9)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        renderer.render("{{ 10 ** (10 ** 8) }}", {}, 9)
    assert renderer.render("b", {}, 9).text == "b"


def test_without_standard_streams():
    run(
        """
        import os
        for stream in (0, 1, 2):
            os.close(stream)
        from zoo.text.template.process import RENDERER
        assert RENDERER.render("a{{ 1 }}", {}, 9).text == "a1"
        assert RENDERER.render("{{ raise_exception('no') }}", {}, 9).kind == "refused"
        """
    )


def test_the_process_ends_with_this_one():
    out = run(
        """
        from zoo.text.template.process import RENDERER
        RENDERER.render("a", {}, 9)
        print(RENDERER._child.pid)
        """
    )
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(int(out), 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("it is still there")


def test_what_users_have_lying_about_is_not_imported(tmp_path):
    for name in ("jinja2.py", "struct.py", "sitecustomize.py", "usercustomize.py", "marshal.py", "resource.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')")
    (tmp_path / "main.py").write_text(
        "import sys; sys.path.remove(sys.path[0])\n"
        "from zoo.text.template.process import RENDERER\n"
        "assert RENDERER.render('a', {}, 9).text == 'a'\n"
        "print('once')\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "once\n"), done.stderr


@linux
def test_the_process_can_do_nothing_else(renderer):
    renderer.render("a", {}, 9)
    with open(f"/proc/{renderer._child.pid}/limits") as file:
        limits = {line[:26].strip(): line[26:].split()[:2] for line in file}
    assert limits["Max open files"] == ["3", "3"]
    assert limits["Max file size"] == limits["Max core file size"] == limits["Max processes"] == ["0", "0"]
    assert int(limits["Max address space"][0]) < 300 << 20
    with open(f"/proc/{renderer._child.pid}/environ") as file:
        assert {pair.split("=")[0] for pair in file.read().split("\0") if pair} <= set(process._PASSED)


def test_no_python_to_start(renderer, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", "")
        with pytest.raises(UnsupportedError, match="there is none to start"):
            renderer.render("a", {}, 9)
        patched.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(UnsupportedError, match="cannot be started"):
            renderer.render("a", {}, 9)
    monkeypatch.setattr(process, "_MAIN", "raise SystemExit(1)")
    with pytest.raises(UnsupportedError, match="does not start"):
        renderer.render("a", {}, 9)
