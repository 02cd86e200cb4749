"""Small checkpoints with real vocabularies: written by transformers with random weights, or by zoo itself."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DATA = Path(__file__).parent.parent / "data" / "tokenizers"
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
FILES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "bert": ("vocab.txt", "bert-base-uncased.vocab.txt.xz", {"do_lower_case": True}, {"vocab_size": 30522}),
    "bert-cased": ("vocab.txt", "bert-base-cased.vocab.txt.xz", {"do_lower_case": False}, {"vocab_size": 28996}),
    "roberta": (
        "tokenizer.json",
        "roberta.tokenizer.json.xz",
        {},
        {"vocab_size": 50265, "type_vocab_size": 1, "max_position_embeddings": 514, "pad_token_id": 1},
    ),
}


def write_tokenizer(folder: Path, kind: str) -> dict[str, Any]:
    """Put the tokenizer's files into the folder; what the config says because of them."""
    folder.mkdir(parents=True, exist_ok=True)
    name, packed, options, config = FILES[kind]
    (folder / name).write_bytes(lzma.decompress((DATA / packed).read_bytes()))
    cls = "RobertaTokenizer" if kind == "roberta" else "BertTokenizer"
    options = {**options, "model_max_length": 512, "tokenizer_class": cls}
    (folder / "tokenizer_config.json").write_text(json.dumps(options))
    return {**TINY, **config}


@pytest.fixture(scope="session")
def reference(tmp_path_factory) -> Callable[..., Path]:
    """`reference(kind, head, **config)`: the folder of a random checkpoint that transformers wrote."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")

    def make(kind: str, head: str, **options: Any) -> Path:
        folder = tmp_path_factory.mktemp(f"{kind}-{head}")
        config = write_tokenizer(folder, kind)
        family = "Roberta" if kind == "roberta" else "Bert"
        torch.manual_seed(0)
        config = getattr(transformers, f"{family}Config")(**config, **options)
        model = getattr(transformers, family + head)(config)
        with torch.no_grad():
            # Larger than at the start of training, so that results are far from a tie; no bias is zero.
            for name, p in model.named_parameters():
                p.normal_(0, 0.15 if p.ndim > 1 else 0.1)
                if name.endswith("LayerNorm.weight"):
                    p += 1
        model.save_pretrained(folder)
        return folder

    return make


@pytest.fixture
def pipe() -> Callable[..., Any]:
    """`pipe(task, folder)`: transformers' pipeline."""
    transformers = pytest.importorskip("transformers")
    return lambda task, folder, **options: transformers.pipeline(task, model=str(folder), device="cpu", **options)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Callable[..., Path]:
    """`tiny(head, **config)`: the folder of a random BERT that zoo wrote, so that no torch is needed."""
    from zoo.models import bert
    from zoo.saving import save_model

    def make(head: str = "Model", **options: Any) -> Path:
        folder = tmp_path_factory.mktemp(f"zoo-{head}")
        config = write_tokenizer(folder, "bert")
        model = getattr(bert, f"Bert{head}").from_config(bert.BertConfig.from_dict({**config, **options}))
        return save_model(model, folder)

    return make


@pytest.fixture
def images(tmp_path: Path, rng: np.random.Generator) -> list[str]:
    """Paths of images of several sizes and modes."""
    from image_checkpoints import draw

    paths = []
    for i, (size, mode, ending) in enumerate(
        [((40, 61), "RGB", "png"), ((90, 33), "L", "png"), ((24, 24), "RGB", "jpg"), ((57, 130), "P", "png")]
    ):
        paths.append(str(tmp_path / f"{i}.{ending}"))
        draw(rng, *size).convert(mode).save(paths[-1])
    return paths
