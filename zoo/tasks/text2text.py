"""Tasks of a model that reads a text and writes another: whatever it was trained for, summaries, translations."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from ..errors import InputError, UnsupportedError, ZooError, nearest
from ..generate import GenerationConfig, generate
from ..inputs.encoder_decoder import EncoderDecoder
from ..pretrained import Pretrained
from ..text.given import check_text
from ..warning import warn
from .arguments import collect_results, map_good, texts_or_errors
from .base import TextTask
from .read import complete
from .results import Texts

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..text.encodings import Encoding
    from ..text.tokenizer import Tokenizer

NEW_TOKENS = 256  # where neither the caller nor the checkpoint says how many
GENERATION = "generation_config.json"


class Text2Text(TextTask):
    """Texts to texts.

    >>> ask = zoo.load("google/flan-t5-base")
    >>> ask("Translate to German: How old are you?")
    'Wie alt sind Sie?'

    `generation` is what generation_config.json says, and what config.json says of the task.
    """

    name = "text2text-generation"
    results = Texts()
    params_prefix: ClassVar[str] = ""  # the beginning of its name in the config's task_specific_params

    def __init__(
        self,
        model: Pretrained,
        tokenizer: Tokenizer,
        checkpoint: Checkpoint | None = None,
        generation: GenerationConfig | None = None,
    ):
        super().__init__(model, tokenizer, checkpoint)
        self.pair = cast(EncoderDecoder, model)
        self.generation = complete(generation or GenerationConfig(), self.pair.decoder.config)
        given = self.config.extra.get("task_specific_params") or {}
        self.params: dict[str, dict[str, Any]] = {
            name: params for name, params in given.items() if self.params_prefix and name.startswith(self.params_prefix)
        }

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        return {**super().parts_of(checkpoint), "generation": GenerationConfig.from_folder(checkpoint.contents)}

    def extra_files(self) -> list[str]:
        has = self.checkpoint is not None and self.checkpoint.contents.has(GENERATION)
        return [GENERATION] if has else []

    def __call__(
        self,
        texts: str | Iterable[str],
        *,
        prefix: str | None = None,
        max_new_tokens: int | None = None,
        num_beams: int | None = None,
        progress: bool | None = None,
        **generation: Any,
    ) -> Any:
        """A text for one text, a list of them for several.

        prefix: what to write before each text, by default what the checkpoint's config says for the task.
        max_new_tokens: by default what the checkpoint says, or 256; a text that is cut there is warned of.
        num_beams: 1 for greedy choice.  generation: other fields of `generate.GenerationConfig`.
        A text of more than `max_tokens` tokens is cut at the end, with a warning.
        """
        return self.write_texts(
            texts, self.params.get(self.params_prefix, {}), prefix, max_new_tokens, num_beams, progress, generation
        )

    def write_texts(
        self,
        texts: str | Iterable[str],
        params: dict[str, Any],
        prefix: str | None,
        max_new_tokens: int | None,
        num_beams: int | None,
        progress: bool | None,
        more: dict[str, Any],
    ) -> Any:
        """The texts that the model writes; params: those of the config for the task."""
        inputs, single = texts_or_errors(texts, "texts")
        before = params.get("prefix", "") if prefix is None else check_text(prefix, "prefix")
        options = {k: v for k, v in params.items() if k not in ("prefix", "max_length")}
        if not any(k in more for k in ("max_length", "max_new_tokens")) and max_new_tokens is None:
            own = params.get("max_length") or self.generation.max_length
            if own is None and self.generation.max_new_tokens is None:
                max_new_tokens = min(NEW_TOKENS, self.pair.max_positions - 1)
            elif own is not None:
                options["max_length"] = own
        given = {"max_new_tokens": max_new_tokens, "num_beams": num_beams}
        config = self.generation.replace(**options | {k: v for k, v in given.items() if v is not None} | more)
        if config.num_return_sequences > 1 or config.stop_strings:
            raise UnsupportedError(f"num_return_sequences and stop_strings are not for {self.name}")
        if not config.skip_special_tokens:
            raise UnsupportedError(f"skip_special_tokens=False is not for {self.name}: its texts have none")

        def compute(batch: Encoding) -> list[Any]:
            mask = None if batch.attention_mask.all() else batch.attention_mask
            record = self.pair.encoder_inputs(batch.input_ids, mask)
            context: dict[str, Any] = {"encoder_hidden_states": self.runner.run(self.pair.encoder_states, record)}
            if mask is not None:
                context["encoder_attention_mask"] = mask
            start = np.full((len(batch.input_ids), 1), config.decoder_start_token_id)
            decoder = self.runner.decoder(self.pair.decoder)
            return [best for (best,) in generate(decoder, start, config, **context)]

        found = self.rows(map_good(lambda text: before + text, inputs), None, compute, progress=progress)
        done = [best for _, _, best in found]
        if cut := sum(not isinstance(best, ZooError) and best.reason == "length" for best in done):
            most = config.new_tokens(1, self.pair.max_positions)
            warn(f"{cut} of {len(done)} answers had more than {most} tokens, and were cut there (max_new_tokens)")
        return collect_results(map_good(lambda best: self.tokenizer.decode(best.ids).strip(), done), single)


class Summarize(Text2Text):
    """Texts to their summaries.

    >>> zoo.load("facebook/bart-large-cnn", task="summarization")(article)
    """

    name = "summarization"
    params_prefix = "summarization"


class Translate(Text2Text):
    """Texts to texts in another language.

    >>> zoo.load("Helsinki-NLP/opus-mt-en-de", task="translation")("How old are you?")
    >>> zoo.load("google-t5/t5-base", task="translation")("How old are you?", source="en", target="de")
    >>> zoo.load("facebook/nllb-200-distilled-600M")("How old are you?", source="eng_Latn", target="deu_Latn")
    """

    name = "translation"
    params_prefix = "translation"
    languages: tuple[str | None, str | None] = (None, None)  # those of a task's name, translation_en_to_de

    def __call__(
        self,
        texts: str | Iterable[str],
        *,
        source: str | None = None,
        target: str | None = None,
        prefix: str | None = None,
        max_new_tokens: int | None = None,
        num_beams: int | None = None,
        progress: bool | None = None,
        **generation: Any,
    ) -> Any:
        """A translation of one text, a list of them for several; the other options are those of `Text2Text`.

        source, target: codes of languages, "en" and "de", for a checkpoint whose config has several pairs of them; by
        default those of task="translation_en_to_de".  For one whose tokenizer has languages, its codes, "eng_Latn" and
        "deu_Latn": `tokenizer.languages`; by default those of its files.
        """
        if self.tokenizer.languages:
            task, generation = self._with_languages(source, target, generation)
            return task.write_texts(texts, {}, prefix, max_new_tokens, num_beams, progress, generation)
        params: dict[str, Any] = {}
        if self.params and source is None and target is None:
            source, target = self.languages
        if prefix is None and (self.params or source is not None or target is not None):
            wanted = f"translation_{source}_to_{target}"
            if wanted not in self.params:
                pairs = [name.removeprefix("translation_").replace("_to_", " to ") for name in self.params]
                known = ", ".join(pairs) or "one pair alone: leave source and target out"
                guess = nearest(wanted, self.params)
                raise InputError(f"source is {source!r} and target {target!r}, and the checkpoint has {known}{guess}")
            params = self.params[wanted]
        return self.write_texts(texts, params, prefix, max_new_tokens, num_beams, progress, generation)

    def _with_languages(
        self, source: str | None, target: str | None, more: dict[str, Any]
    ) -> tuple[Translate, dict[str, Any]]:
        """The task and the options for texts that begin, or end, with the token of their language (mBART, NLLB)."""
        task, tokenizer = self, self.tokenizer
        if target is not None:
            more = {**more, "forced_bos_token_id": tokenizer.language_id(target, "target")}
        elif not (more.get("forced_bos_token_id") or self.generation.forced_bos_token_id):
            raise InputError(f"target is None, expected the language to write: one of {', '.join(tokenizer.languages)}")
        if source is not None:
            task = copy.copy(self)
            task.tokenizer = tokenizer.with_language(source, "source")
        return task, more
