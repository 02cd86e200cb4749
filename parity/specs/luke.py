"""LUKE checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from zoo.files.json_file import read_json

from ..vocabularies import write_bpe, write_json
from .common import Spec, labels

CONFIG = {"vocab_size": 50267, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
CONFIG |= {"intermediate_size": 3072, "hidden_act": "gelu", "max_position_embeddings": 514, "type_vocab_size": 1}
CONFIG |= {"layer_norm_eps": 1e-5, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
CONFIG |= {"entity_vocab_size": 500000, "entity_emb_size": 256, "use_entity_aware_attention": True}
CONFIG |= {"bert_model_name": "roberta-base"}
TINY = {"vocab_size": 900, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
TINY |= {"intermediate_size": 72, "max_position_embeddings": 66, "entity_vocab_size": 90, "entity_emb_size": 20}
ENTITY_TOKENS = ("<ent>", "<ent2>")


@dataclass(frozen=True, kw_only=True)
class LukeSpec(Spec):
    def write_files(self, folder: Path, config: Mapping[str, Any]) -> None:
        """RoBERTa's vocabulary, two tokens more, and entities."""
        size, most = config["vocab_size"], config["max_position_embeddings"] - 2
        write_bpe(folder, size - 2, most, named=True)
        write_json(folder / "added_tokens.json", {token: size - 2 + i for i, token in enumerate(ENTITY_TOKENS)})
        for name in ("special_tokens_map.json", "tokenizer_config.json"):
            path = folder / name
            content = {**read_json(path), "additional_special_tokens": [*ENTITY_TOKENS]}
            write_json(path, content | ({"tokenizer_class": "LukeTokenizer"} if "tokenizer_class" in content else {}))
        entities = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3, "Cologne": 4}
        write_json(folder / "entity_vocab.json", entities)


_luke = partial(LukeSpec, model_type="luke", like="save_pretrained", config=CONFIG, tiny=TINY)

SPECS: dict[str, Spec] = {
    # transformers 5.23 does not tie the words' matrix of the head, which the Hub's files repeat.
    "luke-base": _luke(
        like="studio-ousia/luke-base",
        architecture="LukeForMaskedLM",
        untied=True,
        pooler=True,
        format="bin",
        full=True,
    ),
    "luke-bare": _luke(architecture="LukeModel", pooler=True, tiny={**TINY, "entity_emb_size": 48}),
    "luke-classifier": _luke(
        architecture="LukeForSequenceClassification", config={**CONFIG, **labels(count=3)}, pooler=True
    ),
    "luke-ner": _luke(
        architecture="LukeForTokenClassification", config={**CONFIG, **labels(count=9), "type_vocab_size": 2}
    ),
    "luke-squad": _luke(architecture="LukeForQuestionAnswering", dtype="F16"),
    "luke-large-finetuned-open-entity": _luke(
        like="studio-ousia/luke-large-finetuned-open-entity",
        architecture="LukeForEntityClassification",
        config={**CONFIG, **labels("entity", "event", "group", "location", "object")},
        pooler=True,
    ),
    "luke-large-finetuned-tacred": _luke(
        like="studio-ousia/luke-large-finetuned-tacred",
        architecture="LukeForEntityPairClassification",
        config={**CONFIG, **labels(count=7), "use_entity_aware_attention": False},
        pooler=True,
        format="sharded",
    ),
    "luke-large-finetuned-conll-2003": _luke(
        like="studio-ousia/luke-large-finetuned-conll-2003",
        architecture="LukeForEntitySpanClassification",
        config={**CONFIG, **labels("NIL", "MISC", "PER", "ORG", "LOC")},
        pooler=True,
    ),
}
