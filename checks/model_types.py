"""Writes zoo/data/model-types.tsv: what each model type of transformers is that zoo has not, and the nearest it has.

    python -m checks.model_types            # write it
    python -m checks.model_types --check    # fail if it is not what would be written

What a type is follows from transformers' tables of classes, the nearest from which family's code its own is made of.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from zoo.model_types import FILE
from zoo.registry import FAMILIES

# transformers' table of classes, MODEL_FOR_..._MAPPING_NAMES -> what a model in it does.  A type's first one counts.
KINDS = {
    "IMAGE_TEXT_TO_TEXT": "answers about images",
    "MULTIMODAL_LM": "answers about several kinds of input",
    "CTC": "writes speech, character by character",
    "RNNT": "writes speech by a transducer",
    "TDT": "writes speech by a transducer",
    "SPEECH_SEQ_2_SEQ": "writes speech with an encoder and a decoder",
    "TEXT_TO_SPECTROGRAM": "speaks texts",
    "TEXT_TO_WAVEFORM": "speaks texts",
    "SEQ_TO_SEQ_CAUSAL_LM": "reads a text and writes another",
    "CAUSAL_LM": "continues texts",
    "TABLE_QUESTION_ANSWERING": "answers about tables",
    "DOCUMENT_QUESTION_ANSWERING": "reads documents",
    "VISUAL_QUESTION_ANSWERING": "answers about images",
    "MASKED_LM": "encodes texts",
    "ZERO_SHOT_OBJECT_DETECTION": "finds objects in images by words",
    "OBJECT_DETECTION": "finds objects in images",
    "UNIVERSAL_SEGMENTATION": "segments images",
    "INSTANCE_SEGMENTATION": "segments images",
    "SEMANTIC_SEGMENTATION": "segments images",
    "IMAGE_SEGMENTATION": "segments images",
    "MASK_GENERATION": "segments images by points and boxes",
    "DEPTH_ESTIMATION": "estimates depth",
    "TEXT_RECOGNITION": "reads lines of text",
    "TABLE_RECOGNITION": "reads tables",
    "ZERO_SHOT_IMAGE_CLASSIFICATION": "compares images and texts",
    "KEYPOINT_MATCHING": "matches points of images",
    "KEYPOINT_DETECTION": "finds points in images",
    "POSE_ESTIMATION": "finds poses in images",
    "IMAGE_TO_IMAGE": "makes images of images",
    "IMAGE_MATTING": "cuts objects out of images",
    "VIDEO_CLASSIFICATION": "classifies videos",
    "IMAGE_CLASSIFICATION": "classifies images",
    "MASKED_IMAGE_MODELING": "encodes images",
    "BACKBONE": "encodes images",
    "IMAGE": "encodes images",
    "AUDIO_CLASSIFICATION": "classifies audio",
    "TIME_SERIES_PREDICTION": "predicts time series",
    "TIME_SERIES_CLASSIFICATION": "predicts time series",
    "TIME_SERIES_REGRESSION": "predicts time series",
    "SEQUENCE_CLASSIFICATION": "encodes texts",
    "TEXT_ENCODING": "encodes texts",
    "RETRIEVAL": "finds documents",
    "DECISION": "decides what to do next",
}
# Kinds that may stand in for one another, where the nearest family is looked for.
KIND_GROUPS = (
    {"classifies images", "encodes images", "finds objects in images", "segments images", "estimates depth"},
    {"finds objects in images", "finds objects in images by words"},
    {"answers about images", "answers about several kinds of input", "continues texts"},
    {"writes speech with an encoder and a decoder", "writes speech, character by character"},
    {"reads documents", "encodes texts"},
)
# What zoo does the same with, where no family's code is in a type's own.
SAME_WORK = {
    "continues texts": "llama",
    "reads a text and writes another": "t5",
    "writes speech with an encoder and a decoder": "whisper",
    "writes speech, character by character": "wav2vec2",
    "writes speech by a transducer": "wav2vec2",
    "classifies audio": "wav2vec2",
    "encodes texts": "bert",
    "reads documents": "layoutlmv3",
    "answers about images": "idefics3",
    "compares images and texts": "clip",
    "classifies images": "vit",
    "encodes images": "dinov2",
    "finds objects in images": "detr",
    "segments images": "segformer",
    "segments images by points and boxes": "sam",
    "finds poses in images": "vitpose",
    "estimates depth": "depth_anything",
    "reads lines of text": "pp_ocrv6_small_rec",
}
PARENT = re.compile(
    r"^from (?:\.\.|transformers\.models\.)(\w+)[.\w]* import|# Copied from transformers\.models\.(\w+)", re.M
)


def tables() -> dict[str, dict[str, Any]]:
    """transformers' table of each of KINDS: model type -> its class."""
    from transformers.models.auto import modeling_auto

    return {name: getattr(modeling_auto, f"MODEL_FOR_{name}_MAPPING_NAMES") for name in KINDS}


def kinds_of(model_type: str, found: dict[str, dict[str, Any]]) -> list[str]:
    """What a model type is, by the tables that have it, the first of KINDS first."""
    return list(dict.fromkeys(kind for name, kind in KINDS.items() if model_type in found[name]))


@cache
def parents(folder: str) -> tuple[str, ...]:
    """The folders of transformers/models that the code of one is made of, the most used first."""
    import transformers

    counts: Counter[str] = Counter()
    for path in (Path(transformers.__file__).parent / "models" / folder).glob("mod*_*.py"):
        if path.name.startswith(("modular_", "modeling_")):
            counts.update(a or b for a, b in PARENT.findall(path.read_text(encoding="utf-8")))
    del counts[folder], counts["auto"]
    return tuple(name for name, _ in counts.most_common())


def nearest_family(model_type: str, kinds: list[str], found: dict[str, dict[str, Any]]) -> str:
    """The nearest of zoo's families that does the same, by what the type's code is made of; "" if there is none."""
    from transformers.models.auto.configuration_auto import model_type_to_module_name as folder_of

    same = {*kinds[:1], *(kind for group in KIND_GROUPS if group & set(kinds[:1]) for kind in group)}
    families = {folder_of(name): name for name in reversed(FAMILIES) if same & set(kinds_of(name, found))}
    level, seen = [folder_of(model_type)], set[str]()
    for _ in range(5):
        for folder in level:
            if folder in families:
                return families[folder]
        seen |= set(level)
        level = [name for folder in level for name in parents(folder) if name not in seen]
    return SAME_WORK.get(kinds[0], "") if kinds else ""


def rows() -> list[str]:
    """The lines of the file: a model type, what it is, and the nearest family or nothing."""
    from transformers import CONFIG_MAPPING
    from transformers.models.auto.configuration_auto import model_type_to_module_name as folder_of

    found, out = tables(), []
    for name in sorted(set(CONFIG_MAPPING) - set(FAMILIES)):
        kinds = kinds_of(name, found)
        folder = folder_of(name)
        whole = next((other for other in (folder, folder.replace("_", "-")) if other in CONFIG_MAPPING), "")
        is_part = not kinds and whole not in ("", name)
        what = f"is a part of another model, {whole}" if is_part else kinds[0] if kinds else "is another kind of model"
        out.append(f"{name}\t{what}\t{nearest_family(name, kinds, found)}")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if the file is another")
    text = "".join(f"{row}\n" for row in rows())
    if parser.parse_args().check:
        sys.exit(FILE.read_text(encoding="utf-8") != text)
    FILE.write_text(text, encoding="utf-8")
    print(f"{text.count(chr(10))} model types, {len(text)} bytes")


if __name__ == "__main__":
    main()
