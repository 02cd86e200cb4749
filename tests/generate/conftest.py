"""Random decoders: of transformers, whose next token is neither certain nor a tie, and one of zoo itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from zoo.loading import load_model
from zoo.models.bert import BertConfig, BertLMHeadModel

VOCAB = 40
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


@pytest.fixture(scope="session")
def decoder(tmp_path_factory) -> Callable[..., tuple[Any, Any]]:
    """`decoder(cls, **config)`: the model of transformers, and zoo's."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    made: dict[str, tuple[Any, Any]] = {}

    def make(name: str, device: str | None = None, **options: Any) -> tuple[Any, Any]:
        key = f"{name} {device} {options}"
        if key not in made:
            folder = tmp_path_factory.mktemp(name)
            family = "Bert" if name.startswith("Bert") else name.split("For")[0]
            options = {"max_position_embeddings": 64, "is_decoder": True, "use_cache": True, **SIZES, **options}
            torch.manual_seed(len(name))
            config = getattr(transformers, f"{family}Config")(vocab_size=VOCAB, **options)
            config._attn_implementation = "eager"
            model = getattr(transformers, name)(config).eval()
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(torch.randn_like(p) * 0.15)
            model.save_pretrained(folder)
            made[key] = model, load_model(folder, device=device)
        return made[key]

    return make


@pytest.fixture(scope="session")
def small() -> BertLMHeadModel:
    """A decoder for which no torch is needed, with 64 positions."""
    config = BertConfig(vocab_size=VOCAB, max_position_embeddings=64, is_decoder=True, **SIZES)
    return BertLMHeadModel.from_config(config)
