"""Names that users of other libraries type by habit: what zoo has in their place, for error messages, and results whose
fields are keys, as those of transformers' pipelines."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from .errors import nearest

T = TypeVar("T", bound=type[tuple[Any, ...]])
F = TypeVar("F", bound=Callable[..., Any])

_LOAD = "zoo.load(name, task=...) loads a checkpoint as a task"
_PLACE = "zoo.load(name, device=...) chooses the device"
_DTYPE = "zoo.load(name, dtype=...) chooses the precision"
_CALL = "call the task itself"

# Of the module zoo.
MODULE_NAMES = {
    **dict.fromkeys(("pipeline", "from_pretrained", "SentenceTransformer", "SparseEncoder", "CrossEncoder"), _LOAD),
    **dict.fromkeys(("AutoModelForCausalLM", "TextEmbedding", "WhisperModel", "Llama", "LLM", "Pipeline"), _LOAD),
    "AutoModel": "zoo.load_model(name) loads a model without its task",
    "AutoConfig": "the config is zoo.load_model(name).config",
    "AutoTokenizer": "the tokenizer is zoo.load(name).tokenizer",
    "AutoProcessor": "the processor is zoo.load(name).processor",
    "util": "semantic_search and quantise are in zoo.tasks.vectors",
    "read_pdf": "zoo.extract_tables(path) reads the tables of PDFs and pictures",
    "open": "zoo.extract_tables(path) reads the tables of PDFs and pictures",
}

# Of a task.
TASK_NAMES = {
    **dict.fromkeys(("device", "to", "cuda", "cpu"), _PLACE),
    **dict.fromkeys(("dtype", "half", "float", "bfloat16"), _DTYPE),
    **dict.fromkeys(("eval", "train"), "a task computes without dropout; docs/finetuning.md trains models"),
    **dict.fromkeys(("save_pretrained", "push_to_hub"), "zoo.save(task, folder) writes it"),
    **dict.fromkeys(("image_processor", "feature_extractor"), "use processor"),
    **dict.fromkeys(("max_seq_length", "max_length"), "use max_tokens"),
    **dict.fromkeys(("labels", "id2label"), "use task.config.id2label"),
    **dict.fromkeys(("get_sentence_embedding_dimension", "get_embedding_dimension", "embedding_size"), "use size"),
    **dict.fromkeys(("forward", "predict", "transcribe", "classify", "detect", "rank", "rerank"), _CALL),
    **dict.fromkeys(("generate", "create_completion", "completion"), f"{_CALL}, or stream(text) for pieces"),
    **dict.fromkeys(("create_chat_completion", "stream_chat", "invoke"), "use chat(messages), or conversation()"),
    **dict.fromkeys(("embed", "passage_embed", "encode_image", "encode_text"), f"{_CALL}, or encode(inputs)"),
    "query_embed": "use encode_query(texts)",
    "compute_score": "use predict(pairs)",
    "similarity_pairwise": "use similarity(a, b), whose diagonal has the pairs",
    "tokenize": "use task.tokenizer(texts)",
    "task": "use task.name",
}

# Of a table of a document.
TABLE_NAMES = {
    **dict.fromkeys(("df", "to_df", "to_dataframe", "as_df"), "use to_pandas()"),
    **dict.fromkeys(("to_list", "extract", "data", "values", "texts"), "use rows()"),
    **dict.fromkeys(("to_excel", "export"), "table.save(path) writes .xlsx, .csv, .html, .md and .json"),
    **dict.fromkeys(("bbox", "_bbox"), "use box"),
    **dict.fromkeys(("accuracy", "parsing_report", "confidence"), "use score, and cell.confidence of its cells"),
    "html": "use to_html()",
}

# Options of what finds the tables of a document.
_STRUCTURE_HINT = (
    "a table's rules are its cells if it has some, else the models find its rows and columns: leave it out"
)
_PLACE_HINT = "tables are found; detection=None takes the whole picture as one, so crop it before"
TABLE_OPTIONS = {
    **dict.fromkeys(("flavor", "lattice", "stream", "borderless_tables", "table_settings"), _STRUCTURE_HINT),
    **dict.fromkeys(
        ("implicit_rows", "implicit_columns", "guess", "line_scale", "process_background"), _STRUCTURE_HINT
    ),
    **dict.fromkeys(("table_areas", "table_regions", "area", "columns", "clip", "bbox"), _PLACE_HINT),
    **dict.fromkeys(("page", "page_number", "page_numbers"), "use pages, of the call: pages=3 or '1-3,7'"),
    **dict.fromkeys(("password", "dpi", "resolution"), "zoo.apps.documents.open_document(path, dpi=..., password=...)"),
    **dict.fromkeys(("min_confidence", "detection_threshold"), "use threshold"),
    **dict.fromkeys(("parallel", "max_workers", "n_jobs"), "zoo table FILES -o FOLDER --jobs 2 has several processes"),
    **dict.fromkeys(("output_format", "multiple_tables"), "a list of tables comes back, each with to_pandas()"),
}

# Options of generation.
GENERATION_NAMES = {
    **dict.fromkeys(("max_tokens", "n_predict", "num_predict", "max_completion_tokens"), "use max_new_tokens"),
    **dict.fromkeys(("stop", "stop_sequences", "stopping_criteria"), "use stop_strings"),
    **dict.fromkeys(("stream", "streamer"), "use stream(text), which yields pieces"),
    **dict.fromkeys(("repeat_penalty", "repetition"), "use repetition_penalty"),
    **dict.fromkeys(("temp",), "use temperature"),
    **dict.fromkeys(("n", "best_of"), "use num_return_sequences"),
    **dict.fromkeys(("logprobs", "output_scores", "return_dict_in_generate"), "use details=True"),
}

# Options of loading: (the values that change nothing, what to do instead of others).
LOAD_OPTIONS: dict[str, tuple[tuple[Any, ...], str]] = {
    "trust_remote_code": ((False, None), "code of checkpoints is never run"),
    "torch_dtype": ((None,), "the option is called dtype"),
    "compute_type": ((None,), "dtype= is the precision, weights='int8' or 'int4' quantises"),
    **dict.fromkeys(("load_in_8bit", "quantization"), ((False, None), "weights='int8' quantises the matrices")),
    "load_in_4bit": ((False, None), "weights='int4' quantises the matrices"),
    "quantization_config": ((None,), "weights='int8' or 'int4' quantises the matrices"),
    "device_map": ((None,), "device= takes one device"),
    **dict.fromkeys(("n_gpu_layers", "gpu_layers"), ((0, None), "device='cuda' computes on a GPU")),
    **dict.fromkeys(("n_threads", "threads", "cpu_threads"), ((None,), "zoo.set_num_threads(n) is for all models")),
    **dict.fromkeys(("backend", "providers", "provider"), ((None, "torch"), "device='onnx' runs on ONNX Runtime")),
    **dict.fromkeys(("use_auth_token", "use_fast", "hf_token"), ((None, True, False), "token= is that of the Hub")),
    **dict.fromkeys(("n_ctx", "max_model_len", "context_length"), ((None,), "the context is as long as the model's")),
    **dict.fromkeys(("cache_folder", "download_root"), ((None,), "the option is called cache_dir")),
    **dict.fromkeys(("model_kwargs", "tokenizer_kwargs", "pipeline_kwargs"), ((None,), "give its options themselves")),
    **dict.fromkeys(("tokenizer", "feature_extractor", "image_processor"), ((None,), "it is the checkpoint's own")),
    **dict.fromkeys(("clip_model_path", "chat_handler"), ((None,), "mmproj= names the file that reads images")),
    **dict.fromkeys(("model_path", "model_name", "model_name_or_path"), ((), "the name is the first argument")),
    **dict.fromkeys(("batch_size", "aggregation_strategy", "top_k"), ((None,), "it is an option of the task's call")),
}


def instead_of(name: str, names: dict[str, str]) -> str:
    """The end of a message about a name that does not exist: ": ...", or ""."""
    return f": {names[name]}" if name in names else ""


def check_options(names: dict[str, str]) -> Callable[[F], F]:
    """A decorator of a method: TypeError for an option that it does not have says what to type, as `names` do."""

    def decorate(method: F) -> F:
        parameters = list(inspect.signature(method).parameters)[1:]

        @wraps(method)
        def call(*args: Any, **options: Any) -> Any:
            for name in options.keys() - set(parameters):
                what = instead_of(name, names) or f"{nearest(name, parameters)}: expected {', '.join(parameters)}"
                raise TypeError(f"{name!r} is not an option here{what}")
            return method(*args, **options)

        return call  # type: ignore[return-value]

    return decorate


# How names of the Hub that lack their organisation begin -> the organisation.
_ORGANISATIONS = {
    "sentence-transformers": ("all-", "paraphrase-", "multi-qa-", "msmarco-"),
    "cross-encoder": ("ms-marco-", "stsb-", "nli-"),
    "BAAI": ("bge-",),
    "intfloat": ("e5-", "multilingual-e5-"),
    "openai": ("whisper-", "clip-vit-"),
    "google": ("vit-", "siglip", "flan-t5-", "gemma-", "mt5-"),
    "google-t5": ("t5-",),
    "google-bert": ("bert-base-", "bert-large-"),
    "microsoft": ("trocr-", "table-transformer-", "Phi-", "phi-", "deberta-", "beit-"),
    "facebook": ("bart-", "detr-", "dinov2-", "opt-"),
    "Helsinki-NLP": ("opus-mt-",),
    "meta-llama": ("Llama-", "Meta-Llama-"),
    "Qwen": ("Qwen",),
}
_WHISPER_SIZES = ("tiny", "base", "small", "medium", "large-v2", "large-v3")


def with_organisation(name: str) -> str:
    """The end of a message about a name of the Hub that was not found: "; did you mean 'org/name'?", or ""."""
    if "/" in name:
        return ""
    if name in _WHISPER_SIZES:
        return f"; did you mean 'openai/whisper-{name}'?"
    for organisation, begins in _ORGANISATIONS.items():
        if name.startswith(begins):
            return f"; did you mean '{organisation}/{name}'?"
    return ""


def with_keys(**names: str) -> Callable[[T], T]:
    """A decorator of a named tuple whose fields are keys, too: `entity["word"]`, `dict(entity)`.

    names: a pipeline's name of a field -> the field's.
    """

    def add_keys(cls: T) -> T:
        fields: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]

        def get_item(self: Any, key: Any) -> Any:
            if not isinstance(key, str):
                return tuple.__getitem__(self, key)
            if key not in fields and key not in names:
                guess = nearest(key, [*fields, *names])
                raise KeyError(f"{cls.__name__} has no field {key!r}, expected one of {', '.join(fields)}{guess}")
            return getattr(self, names.get(key, key))

        def get_attribute(self: Any, name: str) -> Any:  # of a name that is no attribute
            instead = f"; the field is called {names[name]!r}" if name in names else ""
            raise AttributeError(f"{cls.__name__} has no field {name!r}{instead}", name=name, obj=self)

        cls.__getitem__ = get_item  # type: ignore[method-assign]
        cls.__getattr__ = get_attribute  # type: ignore[attr-defined]
        cls.keys = lambda self: fields  # type: ignore[attr-defined] - dict(result) asks for it
        return cls

    return add_keys
