"""Reading modules.json: the steps of a sentence-transformers checkpoint, the folders that hold them, and the settings
that encoders to one vector, to a sparse one and to many share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import ConfigError, UnsupportedError, nearest
from ..files.folder import CheckpointFolder
from ..warning import warn

MODULES = "modules.json"
SETTINGS = "config_sentence_transformers.json"
MULTI_VECTOR = ("MultiVectorEncoder", "ColBERT")  # its model_type; the second is PyLate's
STANFORD = "HF_ColBERT"  # the architecture of ColBERT's own library
LENGTHS = ("query_length", "document_length", "query_expansion")
LIBRARIES = ("sentence_transformers.", "pylate.models.")
# All but the first are what the library wrote in its first years.
TRANSFORMER = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
# The keys of these files.
TRANSFORMER_KEYS = (
    *("transformer_task", "modality_config", "module_output_name", "processing_kwargs", "tokenizer_name_or_path"),
    *("max_seq_length", "do_lower_case", *LENGTHS),
    "unpad_inputs",  # which changes no vector
)
# Those with arguments of transformers' classes, and the arguments that change no vector, or are taken.
ARGUMENTS = {
    "model": (
        "dtype",
        "torch_dtype",
        "attn_implementation",
        "add_pooling_layer",
        "low_cpu_mem_usage",
        "use_safetensors",
    ),
    "processor": ("model_max_length", "padding_side", "use_fast"),
    "tokenizer": ("model_max_length", "padding_side", "use_fast"),
    "config": (),
}
OUTPUTS = {  # task -> the output of the model that the module takes, and the name under which it gives it on
    "feature-extraction": ("last_hidden_state", "token_embeddings"),
    "fill-mask": ("logits", "token_embeddings"),
    "text-generation": ("logits", "causal_logits"),
}
# The keys of config_sentence_transformers.json of every class.
SHARED_KEYS = ("__version__", "model_type", "prompts", "default_prompt_name", "similarity_fn_name", "requirements")


class TransformerSettings(NamedTuple):
    """The settings of the module that holds the model."""

    max_tokens: int | None = None
    lower_case: bool = False
    raw: dict[str, Any] = {}  # noqa: RUF012


class EncoderSettings(NamedTuple):
    """The settings outside of the modules."""

    prompts: dict[str, str]
    default_prompt: str | None
    similarity: str | None  # None: not given
    raw: dict[str, Any]  # all that the file says
    files: tuple[str, ...]


def is_sentence_encoder(modules: Iterable[tuple[str, str]]) -> bool:
    """Return True if one of the modules pools: cross-encoders have a modules.json too."""
    return any(kind in ("Pooling", "StaticEmbedding") for kind, _ in modules)


def is_sparse_encoder(modules: Iterable[tuple[str, str]]) -> bool:
    """Return True if the modules make a sparse vector of the logits of words (SPLADE)."""
    return any(kind == "SpladePooling" for kind, _ in modules)


def is_causal_reranker(modules: Iterable[tuple[str, str]]) -> bool:
    """Return True if the modules make a score of a language model's logits."""
    return any(kind == "LogitScore" for kind, _ in modules)


def encoder_task(
    folder: CheckpointFolder, modules: Sequence[tuple[str, str]], architectures: Sequence[str]
) -> str | None:
    """The task of an encoder's files: "embed", "sparse-embed", "multi-vector-embed", or "rerank" by a language model.

    None: they are no encoder's.
    """
    if STANFORD in architectures:
        return "multi-vector-embed"
    if is_sentence_encoder(modules):
        return "embed"
    if is_sparse_encoder(modules):
        return "sparse-embed"
    if is_causal_reranker(modules):
        return "rerank"
    settings = folder.json(SETTINGS) if modules and folder.has(SETTINGS) else {}
    return "multi-vector-embed" if settings.get("model_type") == MULTI_VECTOR[0] or is_pylate(settings) else None


def is_pylate(settings: Mapping[str, Any]) -> bool:
    """Return True if PyLate wrote the settings, which its first versions did without a model_type."""
    return settings.get("model_type") == MULTI_VECTOR[1] or "query_prefix" in settings


def read_modules(folder: str | os.PathLike[str] | CheckpointFolder) -> list[tuple[str, str]]:
    """The (kind, folder) of each module, in order."""
    folder = CheckpointFolder.of(folder)
    path, found = folder.where(MODULES), folder.json_list(MODULES)
    if not all(isinstance(module, dict) for module in found):
        raise ConfigError(f"{path}: expected a list of modules")
    out = []
    for module in found:
        kind, where = str(module.get("type", "")), module.get("path", "")
        if not kind.startswith(LIBRARIES):
            raise UnsupportedError(f"{path}: the module type {kind!r} would be code of its own, which zoo does not run")
        if not isinstance(where, str) or leaves_folder(where):
            raise ConfigError(f"{path}: {where!r} is not the name of a folder beside it")
        out.append((kind.rpartition(".")[2], where))
    return out


def leaves_folder(name: str) -> bool:
    """Return True if a module's folder could be outside of the checkpoint's."""
    return name.startswith((".", "/", "\\")) or ".." in name or ":" in name


def read_transformer(
    folder: CheckpointFolder,
    task: str = "feature-extraction",
    refused: Sequence[str] = (*LENGTHS, "processing_kwargs"),
) -> tuple[TransformerSettings, list[str]]:
    """The settings of the transformer, which has to give what `task` names, and the files that they are from.

    refused: settings that may not be there; of others the caller takes what it needs from `raw`.
    """
    name = next(filter(folder.has, TRANSFORMER), None)
    if name is None:
        return TransformerSettings(), []
    raw, path = folder.json(name), folder.where(name)
    if raw.get("transformer_task", task) != task:
        raise UnsupportedError(f"{path}: transformer_task is {raw['transformer_task']!r}, expected {task!r}")
    for key in (*refused, "tokenizer_name_or_path"):
        if raw.get(key):
            raise UnsupportedError(f"{path}: {key} = {raw[key]!r} is not implemented")
    longest = count_in(raw, "max_seq_length", path)
    arguments = [f"{part}_{end}" for part in ARGUMENTS for end in ("args", "kwargs")]
    for key in filter(raw.get, arguments):
        given, known = raw[key], ARGUMENTS[key.partition("_")[0]]
        for option in given if isinstance(given, dict) else ("",):
            if option not in (*known, "trust_remote_code"):  # which the library does not take from a file, either
                raise UnsupportedError(f"{path}: {key} = {given!r:.200} is not implemented")
        longest = count_in(given, "model_max_length", f"{path}: {key}") or longest
    _check_output(raw, task, path)
    warn_unknown(raw, (*TRANSFORMER_KEYS, *arguments), path)
    lower_case = raw.get("do_lower_case", False)
    if not isinstance(lower_case, bool):
        raise ConfigError(f"{path}: do_lower_case = {lower_case!r}, expected true or false")
    return TransformerSettings(longest, lower_case, raw), [name]


def _check_output(raw: Mapping[str, Any], task: str, path: str) -> None:
    """UnsupportedError where the module takes another output of the model than the task's."""
    output, name = OUTPUTS[task]
    kinds = {"text": {}} if raw.get("modality_config") is None else raw["modality_config"]
    if not isinstance(kinds, dict) or not {"text", "message"} & kinds.keys():
        raise UnsupportedError(f"{path}: modality_config = {kinds!r:.200} has no text, and zoo reads texts alone here")
    for kind in {"text", "message"} & kinds.keys():
        given = kinds[kind] if isinstance(kinds[kind], dict) else {"method": kinds[kind]}
        if given.get("method", "forward") != "forward" or given.get("method_output_name", output) != output:
            raise UnsupportedError(
                f"{path}: modality_config: {kind} = {given!r:.200} is not implemented, only {output}"
            )
    if raw.get("module_output_name", name) != name:
        raise UnsupportedError(f"{path}: module_output_name = {raw['module_output_name']!r}, expected {name!r}")


def refuse_unknown(raw: Mapping[str, Any], known: Sequence[str], path: str) -> None:
    """UnsupportedError for a key that a module of sentence-transformers does not have: it cannot load the file."""
    for key in raw:
        if key not in known:
            raise UnsupportedError(f"{path}: {key} is not a setting of this module, which has {', '.join(known)}")


def warn_unknown(raw: Mapping[str, Any], known: Iterable[str], path: str) -> None:
    """Say which keys of a file change nothing, as sentence-transformers knows them no more than zoo does."""
    if unknown := sorted(set(raw) - set(known)):
        warn(f"{path}: {', '.join(unknown)} is not a setting of sentence-transformers, and changes nothing")


def count_in(raw: dict[str, Any], key: str, path: str) -> int | None:
    """A whole number above 0 in a file's settings, or None if there is none; ConfigError for anything else."""
    value = raw.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ConfigError(f"{path}: {key} = {value!r}, expected a whole number of at least 1")
    return value


def read_settings(
    folder: CheckpointFolder, classes: Sequence[str], similarities: Sequence[str], own: Sequence[str] = ()
) -> EncoderSettings:
    """The prompts and the similarity of an encoder of one of sentence-transformers' `classes`.

    own: the settings of these classes alone, which the caller takes from `raw`.
    """
    if not folder.has(SETTINGS):
        return EncoderSettings({}, None, None, {}, ())
    raw, path = folder.json(SETTINGS), folder.where(SETTINGS)
    if raw.get("model_type", classes[0]) not in classes:
        raise UnsupportedError(f"{path}: model_type {raw['model_type']!r} is not implemented")
    prompts, default = raw.get("prompts") or {}, raw.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(text, str | None) for text in prompts.values()):
        raise ConfigError(f"{path}: prompts is not an object of texts")
    prompts = {name: text for name, text in prompts.items() if text is not None}
    if default is not None and (not isinstance(default, str) or default not in prompts):
        raise ConfigError(
            f"{path}: default_prompt_name {default!r} is not one of its prompts{nearest(str(default), prompts)}"
        )
    similarity = raw.get("similarity_fn_name")
    if similarity is not None and similarity not in similarities:
        known = f"only {', '.join(similarities)}"
        raise UnsupportedError(f"{path}: similarity_fn_name {similarity!r} is not implemented, {known}")
    warn_unknown(raw, (*SHARED_KEYS, *own), path)
    return EncoderSettings(prompts, default, similarity, raw, (SETTINGS,))
