"""docs/terminal.svg: README's commands as they run in a terminal, with the times that they took.

    python -m checks.recording    # runs them, and writes the picture

The commands run in a new folder behind a pseudo-terminal of 100 columns.  Waits longer than a second are shown as one.
"""

from __future__ import annotations

import html
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

OUT_PATH = Path(__file__).parent.parent / "docs" / "terminal.svg"
COMMANDS = ("zoo example page.png", "zoo table page.png", 'zoo run stories260k "Once upon a time" --max-new-tokens 100')
COLUMNS, CELL, LINE, PAD = 100, 8.43, 18, 16  # characters; pixels
COLOURS = {"": "#d4d7dd", "1": "#ffffff", "2": "#8b929e", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341"}
CODE = re.compile(r"\x1b\[([\d;]*)([A-Za-z])|(\r\n|\n|\r)|([^\x1b\r\n]+)")


class Piece(NamedTuple):
    """Characters that came at once."""

    row: int
    column: int
    start: float
    text: str
    colour: str


def record(command: str, folder: str) -> list[tuple[float, str]]:
    """The output of a command in a terminal, with the seconds since its start; CalledProcessError if it fails."""
    import fcntl
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    env["PYTHONPATH"] = str(OUT_PATH.parent.parent)
    begin, events = time.perf_counter(), []
    child = subprocess.Popen(command, shell=True, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # Linux says so that the other side is closed
            data = b""
        if not data:
            break
        events.append((time.perf_counter() - begin, data.decode()))
    os.close(ours)
    if child.wait():
        raise subprocess.CalledProcessError(child.returncode, command, "".join(text for _, text in events))
    return [*events, (time.perf_counter() - begin, "")]


def pieces(events: list[tuple[float, str]], row: int) -> tuple[list[Piece], int]:
    """The places of a command's characters, from a row on, and the row after them.

    A line that is written again (a bar of progress) is shown as it is in the end.
    """
    found: list[Piece] = []
    column, colour = 0, ""
    for start, text in events:
        for codes, end, turn, plain in CODE.findall(text):
            if end == "m":
                colour = next((code for code in codes.split(";") if code in COLOURS and code), "")
            elif turn == "\r" or end == "K":
                column = 0 if turn else column
                found = [piece for piece in found if piece.row != row or piece.column < column]
            elif turn:
                row, column = row + 1, 0
            while plain:
                part, plain = plain[: COLUMNS - column], plain[COLUMNS - column :]
                found.append(Piece(row, column, start, part, colour))
                column += len(part)
                if column == COLUMNS:
                    row, column = row + 1, 0
    return found, row + (column > 0)


def svg(recorded: dict[str, list[tuple[float, str]]]) -> str:
    """The picture, which shows each piece at its time and stays as it is at the end."""
    shown: list[Piece] = []
    row, now = 0, 0.5
    for command, events in recorded.items():
        shown.append(Piece(row, 0, now, "$ ", "32"))
        for i, letter in enumerate(command):
            shown.append(Piece(row, 2 + i, now + 0.04 * i, letter, "1"))
        now += 0.04 * len(command) + 0.3
        told, times, last = [], 0.0, 0.0
        for at, text in events:
            times, last = times + min(1.0, at - last), at
            told.append((now + times, text))
        found, row = pieces(told, row + 1)
        shown, now = shown + found, now + times + 1.0
    lines = [
        f'<text x="{PAD + piece.column * CELL:.1f}" y="{PAD + 34 + piece.row * LINE}" fill="{COLOURS[piece.colour]}" '
        f'textLength="{len(piece.text) * CELL:.1f}" style="animation-delay:{piece.start:.2f}s">'
        f"{html.escape(piece.text)}</text>"
        for piece in shown
        if piece.text.strip()
    ]
    width, height = round(2 * PAD + COLUMNS * CELL), 2 * PAD + 30 + row * LINE
    dots = "".join(f'<circle cx="{PAD + 4 + 18 * i}" cy="16" r="5" fill="#4b5059"/>' for i in range(3))
    style = (
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;"
        "opacity:0;animation:show 0s linear forwards}@keyframes show{to{opacity:1}}"
        "@media (prefers-reduced-motion:reduce){text{opacity:1;animation:none}}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    label = html.escape("; ".join(recorded))
    frame = f'<rect width="{width}" height="{height}" rx="8" fill="#1b1d22"/>{dots}'
    body = "\n".join(lines)
    return f'{head} role="img" aria-label="{label}">\n<style>{style}</style>\n{frame}\n{body}\n</svg>\n'


def main() -> int:
    folder = tempfile.mkdtemp()
    try:
        OUT_PATH.write_text(svg({command: record(command, folder) for command in COMMANDS}), encoding="utf-8")
    finally:
        shutil.rmtree(folder)
    print(f"{OUT_PATH}: {OUT_PATH.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
