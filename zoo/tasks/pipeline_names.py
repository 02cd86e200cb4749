"""Arguments of tasks' calls by the names that transformers' pipelines have for them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InputError, nearest

# The pipelines' name of an argument -> zoo's.
PIPELINE_NAMES = {
    "aggregation_strategy": "aggregation",
    "ignore_labels": "ignore",
    "handle_impossible_answer": "handle_impossible",
    "align_to_words": "whole_words",
    "src_lang": "source",
    "tgt_lang": "target",
    "return_timestamps": "timestamps",
    **dict.fromkeys(("initial_prompt", "hotwords"), "prompt"),  # of faster-whisper, as the next one
    **dict.fromkeys(("beam_size", "beam_width"), "num_beams"),
    "show_progress_bar": "progress",
    "top_n": "top_k",
    "labels": "candidate_labels",
    "input_points": "points",
    "input_labels": "point_labels",
    "input_boxes": "boxes",
    "multimask_output": "multimask",
}
# Their names of the inputs.
INPUT_NAMES = ("inputs", "sequences", "text_inputs", "image", "images")
# What a pipeline has to be told and zoo does anyway: the values that change nothing (None: all), and what to do instead
# of another one.
NEEDLESS_OPTIONS: dict[str, tuple[tuple[Any, ...] | None, str]] = {
    "batch_size": (None, ""),
    "num_workers": (None, ""),
    "timeout": (None, ""),
    "padding": (None, ""),
    "stride": (None, ""),  # long texts and recordings are read through windows
    "chunk_length_s": (None, ""),
    "stride_length_s": (None, ""),
    "truncation": ((True, "longest_first", "only_first"), "what is longer than the checkpoint takes is cut"),
    "return_full_text": ((False, None), "the result is the continuation alone: put the text before it"),
    "return_tensors": ((False, None), "results are texts and arrays of NumPy"),
    "convert_to_numpy": ((True, None), "results are arrays of NumPy"),
    "convert_to_tensor": ((False, None), "results are NumPy arrays, which torch.from_numpy makes tensors of"),
    **dict.fromkeys(("activation_fn", "activation_fct"), ((None,), "raw=True gives the logits")),
    "apply_softmax": ((False, None), "raw=True gives the logits"),
    "return_all_scores": ((True, None), "top_k=1 gives the best label alone"),
    "grouped_entities": ((True, None), "aggregation='none' gives each token"),
    "is_split_into_words": ((False, None), "give the text as it stands, which the tokenizer splits"),
}
CUT_LENGTH = "set max_tokens of the task to cut texts earlier than the checkpoint does"


def with_pipeline_names(call: Callable[..., Any]) -> Callable[..., Any]:
    """A task's `__call__` that understands the pipelines' names too; InputError for a name that neither has."""
    parameters = list(inspect.signature(call).parameters.values())[1:]
    own = [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    takes_more = any(one.kind is one.VAR_KEYWORD for one in parameters)

    @functools.wraps(call)
    def with_names(self: Any, *args: Any, **options: Any) -> Any:
        if not all(name in own for name in options):
            options = own_options(self.name, options, own, takes_more)
        return call(self, *args, **options)

    return with_names


def own_options(task: str, given: Mapping[str, Any], own: list[str], takes_more: bool) -> dict[str, Any]:
    """Options with zoo's names.  own: those of the task.  takes_more: it checks further ones itself."""
    options: dict[str, Any] = {}
    for name, value in given.items():
        to = name
        if name == "generate_kwargs" and isinstance(value, Mapping):
            options |= own_options(task, value, own, takes_more)
            continue
        if name not in own and PIPELINE_NAMES.get(name) in own:
            to = PIPELINE_NAMES[name]
        elif name not in own and name in INPUT_NAMES and own:
            to = own[0]
        elif name not in own and name in NEEDLESS_OPTIONS:
            same, instead = NEEDLESS_OPTIONS[name]
            if same is not None and value not in same:
                raise InputError(f"{name} is {value!r}: {instead}")
            continue
        elif name == "max_length" and name not in own and not takes_more:
            raise InputError(f"max_length is {value!r}: {CUT_LENGTH}")
        elif name not in own and not takes_more:
            guess = nearest(name, [*own, *(old for old, new in PIPELINE_NAMES.items() if new in own)])
            raise InputError(f"{task} has no option {name!r}, expected one of {', '.join(own[1:])}{guess}")
        if to in options or (to != name and to in given):
            raise InputError(f"{name} and {to} are one option of {task}: give one of them")
        if name == "aggregation_strategy":  # a text in any case, a member of an Enum, or None
            value = str(getattr(value, "value", value)).lower()
        options[to] = value
    return options
