"""`zoo example`: a page to a file, and nothing of the user's written over."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from zoo.apps.cli import main


def test_the_page_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["example"]) == main(["example", "other.png"]) == main(["example"]) == 0
    assert capsys.readouterr().err == "zoo: wrote page.png\nzoo: wrote other.png\nzoo: wrote page.png\n"
    assert Image.open("page.png").size > (600, 600)
    assert Path("page.png").read_bytes() == Path("other.png").read_bytes()
    Path("mine.png").write_bytes(b"mine")
    for name, message in (("mine.png", "exists and is another file"), ("page.jpg", "the page is a PNG file")):
        with pytest.raises(SystemExit) as stopped:
            main(["example", name])
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err
    assert Path("mine.png").read_bytes() == b"mine"
    assert main(["example", "none/page.png"]) == 1
