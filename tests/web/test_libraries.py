"""The archives of the npm registry: fetched once, known by their digests, or given in a folder."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile

import pytest

from tests.web.browser import served
from zoo.apps.onnx_export.web import libraries
from zoo.apps.onnx_export.web.libraries import Release, write_libraries
from zoo.errors import CheckpointError, NotFoundError, OfflineError


@pytest.fixture
def release(monkeypatch, tmp_path) -> tuple[Release, bytes]:
    """A small release in place of the real ones, and its archive; the cache is empty."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in ("package/dist/one.mjs", "package/dist/other.mjs"):
            member = tarfile.TarInfo(name)
            member.size = len(name)
            archive.addfile(member, io.BytesIO(name.encode()))
    data = buffer.getvalue()
    digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
    made = Release("@some/thing", "1.2.3", digest, "MIT", ("dist/one.mjs",))
    monkeypatch.setattr(libraries, "RELEASES", (made,))
    monkeypatch.setattr("huggingface_hub.constants.HF_ASSETS_CACHE", str(tmp_path / "assets"))
    (tmp_path / "target").mkdir()
    return made, data


def test_fetched_once(release, tmp_path, monkeypatch):
    made, data = release
    path = tmp_path / "registry/@some/thing/-/thing-1.2.3.tgz"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    with served(tmp_path / "registry") as address:
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", f"{address}/")
        write_libraries(tmp_path / "target")
    (kept,) = (tmp_path / "assets").rglob("*.tgz")
    for damaged in (False, True):
        if damaged:
            kept.write_bytes(data[:-1])
            with pytest.raises(
                OfflineError, match=r"thing-1.2.3.tgz cannot be reached: .*`npm pack @some/thing@1.2.3`"
            ):
                write_libraries(tmp_path / "target")
        else:
            write_libraries(tmp_path / "target")
        assert [p.name for p in (tmp_path / "target").iterdir()] == ["one.mjs"]
    assert (tmp_path / "target" / "one.mjs").read_text() == "package/dist/one.mjs"
    assert made.archive == "some-thing-1.2.3.tgz"


def test_what_the_registry_gives_instead_is_refused(release, tmp_path, monkeypatch):
    path = tmp_path / "registry/@some/thing/-/thing-1.2.3.tgz"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"another")
    with served(tmp_path / "registry") as address:
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", address)
        with pytest.raises(
            CheckpointError, match=r"sha512 is .*, expected .* for @some/thing 1.2.3: the file is damaged"
        ):
            write_libraries(tmp_path / "target")
        path.unlink()
        with pytest.raises(NotFoundError, match="the npm registry answers 404"):
            write_libraries(tmp_path / "target")
    assert not list((tmp_path / "assets").rglob("*.tgz"))
    assert not list((tmp_path / "target").iterdir())


def test_given_in_a_folder(release, tmp_path):
    made, data = release
    with pytest.raises(NotFoundError, match=r"some-thing-1.2.3.tgz: .*; `npm pack @some/thing@1.2.3` writes it"):
        write_libraries(tmp_path / "target", tmp_path)
    (tmp_path / made.archive).write_bytes(data + b"\0")
    with pytest.raises(CheckpointError, match="the file is damaged, or of another release"):
        write_libraries(tmp_path / "target", tmp_path)
    (tmp_path / made.archive).write_bytes(data)
    write_libraries(tmp_path / "target", tmp_path)
    assert (tmp_path / "target" / "one.mjs").is_file()
