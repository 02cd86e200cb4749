"""Folders with a version of transformers in them, which a process finds before what is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distributions, version
from pathlib import Path
from typing import NamedTuple

from zoo.errors import InputError, ZooError

VERSION = re.compile(r"\d+\.\d+(\.\d+\w*)?")
NEWEST_VERSION = "newest"  # the newest version that pip finds
INSTALL_ROUNDS = 3  # for what transformers requires, what that requires, and so on
CALLED_PACKAGES = ("transformers", "tokenizers", "huggingface_hub")  # the packages whose versions are shown


class UnavailableVersionError(ZooError):
    """A version of transformers that cannot be installed, or not with what is here."""


class Environment(NamedTuple):
    """A version of transformers.  folder: where it is; None for the one that is installed here."""

    version: str
    folder: Path | None = None

    @property
    def versions(self) -> dict[str, str]:
        """The versions of transformers and of what it calls."""
        return {name: _version_of(name, self.folder) or "" for name in CALLED_PACKAGES}


def installed_version() -> Environment:
    """The version that is installed here."""
    return Environment(version("transformers"))


def is_installed(asked: str) -> bool:
    """True if a version that was asked for is the one that is installed here."""
    return f"{installed_version().version}.".startswith(f"{asked}.")


def expect_version(asked: str) -> None:
    """InputError for what is neither a version nor a folder with transformers in it."""
    if Path(asked).is_dir():
        if _version_of("transformers", Path(asked)) is None:
            raise InputError(
                f"--drift {asked}: there is no transformers in this folder; make one with "
                f"pip install --target {asked} --no-deps transformers==VERSION"
            )
    elif asked != NEWEST_VERSION and not VERSION.fullmatch(asked):
        raise InputError(
            f"--drift {asked}: expected versions of transformers such as 5.20 or 5.20.1, {NEWEST_VERSION}, or "
            "folders that pip install --target made, with commas between them"
        )


def environment_of(asked: str, scratch: Path) -> Environment:
    """The version that was asked for, installed into a new folder of scratch; of a folder, the one that is there."""
    folder = Path(asked)
    if folder.is_dir():
        lacking = list(_lacking(folder))
        if lacking:
            raise UnavailableVersionError(
                f"{folder} lacks what its transformers needs: "
                f"pip install --target {folder} --no-deps {' '.join(map(repr, lacking))}"
            )
    else:
        folder = scratch / asked
        exactly = "" if asked == NEWEST_VERSION else f"=={asked}" + ".*" * (asked.count(".") == 1)
        _install(folder, [f"transformers{exactly}"])
        for _ in range(INSTALL_ROUNDS):
            lacking = list(_lacking(folder))
            if not lacking:
                break
            _install(folder, lacking)
    return Environment(_version_of("transformers", folder) or "", folder.resolve())


def _install(folder: Path, packages: list[str]) -> None:
    """Install packages alone: torch and all else that fits are those that are installed here."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(
        [*command, "--target", str(folder), *packages], capture_output=True, text=True, check=False, errors="replace"
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise UnavailableVersionError(f"pip cannot install {' '.join(packages)}: {last}")


def _lacking(folder: Path) -> Iterator[str]:
    """The requirements of the packages in a folder that neither it nor what is installed here meets."""
    from packaging.requirements import Requirement  # which transformers needs as well

    for found in _packages(folder):
        for requirement in map(Requirement, found.requires or ()):
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            has = _version_of(requirement.name, folder)
            if has is None or not requirement.specifier.contains(has, prereleases=True):
                yield f"{requirement.name}{requirement.specifier}"


def _packages(folder: Path) -> list[Distribution]:
    return list(distributions(path=[str(folder)]))


def _version_of(name: str, folder: Path | None) -> str | None:
    """The version of a package in a folder, or else of the one that is installed here; None without either."""
    if folder is not None:
        for found in _packages(folder):
            if found.name.replace("-", "_").lower() == name.replace("-", "_").lower():
                return found.version
        if name == "transformers":
            return None
    try:
        return version(name)
    except PackageNotFoundError:
        return None
