"""One GGUF file of each kind of tokenizer, with the checkpoint that it was made of."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="session")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from made_gguf import OWN, write_llama

    return write_llama(OWN, tmp_path_factory.mktemp("stories") / "stories.gguf")


@pytest.fixture(scope="session")
def chat(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A random Llama 3 with a chat template, as a folder and as a file."""
    from chat_checkpoint import write_chat_checkpoint
    from made_gguf import write_llama

    folder = write_chat_checkpoint(tmp_path_factory.mktemp("chat") / "folder")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    config = json.loads((folder / "config.json").read_text())
    more = {"bos": config["bos_token_id"], "eos": config["eos_token_id"]}
    ids = {f"tokenizer__ggml__{role}_token_id": index for role, index in more.items()}
    template = {"tokenizer__chat_template": settings["chat_template"]}
    return folder, write_llama(folder, folder.with_name("chat.gguf"), tokens="bytes", **ids, **template)


@pytest.fixture(scope="session")
def sentences(minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real all-MiniLM-L6-v2 as a file."""
    from made_gguf import write_bert

    return write_bert(minilm, tmp_path_factory.mktemp("minilm") / "minilm.gguf")


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """A few hundred texts in many scripts, with spaces, signs and special tokens."""
    vectors = json.loads((DATA / "tokenizer_vectors" / "bert.json").read_text(encoding="utf-8"))
    found = [row["text"] for rows in vectors.values() for row in rows.values()]
    lines = (DATA / "tokenizer_vectors" / "ggml-vocab-bert-bge.gguf.inp").read_text(encoding="utf-8")
    found += lines.split("\n__ggml_vocab_test__\n")
    pieces = [
        "the",
        " ",
        "\n",
        "  ",
        "Hello",
        "é",
        "ß",
        "日本",
        "🦙",
        "<|",
        "|>",
        "1234",
        "'s",
        "\t",
        "\u00a0",
        "▁",
        "_",
        "_x",
    ]
    rng = random.Random(0)
    found += ["".join(rng.choices(pieces, k=rng.randrange(1, 9))) for _ in range(700)]
    return list(dict.fromkeys(t for t in found if isinstance(t, str)))
