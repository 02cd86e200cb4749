"""JSON: texts, configs, preprocessors, generation, locks, modules."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from .. import mutate
from .target import DATA, STORIES, TARGETS, Target, as_json, tolerant, write


def _parse_json(data: bytes, at: Path) -> None:
    from zoo.files.json_file import parse_json

    parse_json(data, "text")


TARGETS["json"] = Target(
    lambda: [as_json({"a": [1, 2.5, None, True, {"b": "\u00e9\ud83d\ude00"}], "c": -(2**62)})],
    mutate.of_bytes(
        [b"{", b"}", b"[" * 900, b'"', b"\\ud800", b"\xed\xa0\x80", b"NaN", b"1e999", b"1" * 60, b'{"a":1,"a":2}']
    ),
    _parse_json,
)


def _configs() -> list[bytes]:
    return [path.read_bytes() for path in sorted((DATA / "configs").rglob("*.json"))] + [
        (STORIES / "config.json").read_bytes()
    ]


def _config(data: bytes, at: Path) -> None:
    from zoo.checkpoint.config_file import read_config
    from zoo.registry import family_of, model_class
    from zoo.task_kinds import TASKS

    write(at, "config.json", data)
    config = read_config(at)
    config.to_dict(), config.sizes(), model_class(config)
    family_of(config.model_type).heads_by_task(TASKS, config.architectures)


TARGETS["config"] = Target(_configs, mutate.of_json(["bert", "llama", "gelu", "eager", 1 << 40]), _config, weight=2)


def preprocessors() -> list[bytes]:
    found = [path.read_bytes() for path in sorted(DATA.rglob("*preprocessor*.json"))]
    made = {"image_processor_type": "ViTImageProcessor", "do_resize": True, "size": {"height": 8, "width": 8}}
    made |= {
        "resample": 2,
        "do_normalize": True,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "rescale_factor": 1 / 255,
    }
    detr = {"feature_extractor_type": "DetrFeatureExtractor", "size": 8, "max_size": 16, "do_resize": True}
    return [*found, as_json(made), as_json(detr)]


def _preprocessor(data: bytes, at: Path) -> None:
    from zoo.images import ImageProcessor

    write(at, "preprocessor_config.json", data)
    processor = ImageProcessor.from_folder(at)
    height, width = processor.output_size(6, 9)
    if height * width < 1 << 16:
        processor(np.zeros((6, 9, 3), np.uint8))


TARGETS["preprocessor"] = Target(
    preprocessors,
    mutate.of_json([{"shortest_edge": 4}, {"longest_edge": 9}, {"height": 3, "width": 4}, 1e-40]),
    _preprocessor,
)


def _generation(data: bytes, at: Path) -> None:
    from zoo.generate.config import GenerationConfig

    write(at, "generation_config.json", data)
    GenerationConfig.from_folder(at).replace(max_new_tokens=3)


TARGETS["generation-config"] = Target(
    lambda: [
        (STORIES / "generation_config.json").read_bytes(),
        as_json(
            {
                "bos_token_id": 1,
                "eos_token_id": [2, 3],
                "do_sample": True,
                "temperature": 0.6,
                "top_p": 0.9,
                "top_k": 50,
            }
        ),
        as_json(
            {"num_beams": 4, "length_penalty": 2.0, "no_repeat_ngram_size": 3, "early_stopping": True, "max_length": 20}
        ),
    ],
    mutate.of_json(),
    _generation,
)


def _locks() -> list[bytes]:
    from zoo.checkpoint.lock_file import LockedFile, LockEntry, write_lock

    path = Path("seed.lock").absolute()
    write_lock(
        path, {"org/name": LockEntry("0" * 40, {"config.json": LockedFile(3, "a" * 64)}), "model": LockEntry(None, {})}
    )
    data = path.read_bytes()
    path.unlink()
    return [data]


def _lock(data: bytes, at: Path) -> None:
    from zoo.checkpoint.lock_file import read_lock

    read_lock(write(at, "zoo.lock", data))


TARGETS["lock"] = Target(_locks, mutate.of_json(["a" * 64, "0" * 40, "../x", "sha256:" + "0" * 64]), _lock)


def _modules(data: bytes, at: Path) -> None:
    from zoo.checkpoint.modules import is_sentence_encoder, read_modules
    from zoo.checkpoint.sentence_encoder import read_sentence_encoder

    named = json.loads(data) if data[:1] == b"{" else {}
    for name, value in named.items() if isinstance(named, dict) else ():
        if name in (
            "modules.json",
            "1_Pooling/config.json",
            "sentence_bert_config.json",
            "config_sentence_transformers.json",
        ):
            (at / "1_Pooling").mkdir(exist_ok=True)
            write(at, name, as_json(value))
    if is_sentence_encoder(read_modules(at)):
        read_sentence_encoder(at, 8)


def _modules_seeds() -> list[bytes]:
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": p, "type": f"sentence_transformers.models.{k}"}
        for i, (p, k) in enumerate(kinds.items())
    ]
    pooling = {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True, "include_prompt": True}
    other = {"prompts": {"query": "q: "}, "default_prompt_name": "query"}
    files = {
        "modules.json": modules,
        "1_Pooling/config.json": pooling,
        "sentence_bert_config.json": {"max_seq_length": 8},
    }
    return [as_json(files | {"config_sentence_transformers.json": other})]


TARGETS["modules"] = Target(
    _modules_seeds,
    mutate.of_json(["sentence_transformers.models.Dense", "1_Pooling", "..", "lasttoken"]),
    tolerant(_modules),
)
