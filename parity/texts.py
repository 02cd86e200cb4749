"""The texts and tokens that a model is given, and `Batch`, which all inputs come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zoo.inputs import ChoiceModel, TextModel
from zoo.inputs.entities import EntityTextModel
from zoo.text.tokenizer import Tokenizer

from .specs import spec_class

MAX_TOKENS = 512  # tokens of the longest text, where a checkpoint has positions for more
LENGTHS = (37, 5, 20, 12)  # tokens of each row of a random batch
DECODER_TOKENS = 12  # tokens that the decoder of an encoder is given
STATES = 11  # states that a decoder with cross-attention is given, where it has no encoder

TEXTS = (
    "The weather is lovely today, so they walked to the old town by the water.",
    "Où est-ce que l'on mange ici ? Chez Zoë, à côté de la gare, pour 12,50 €.",
    "Сегодня хорошая погода.",
    "今天天气很好。日本語のテキスト、そして 한국어 문장입니다.",
    "مرحبا بالعالم — שלום עולם, नमस्ते दुनिया! 1234567890 #hashtag @user https://example.org/a?b=c&d=e_f",
    "I don't know; we'll  see\tlater...   naïve CAFE\u0301 co-operate (e.g. “x² + y² = z²”)",
    "No",
)
PAIRS = (
    ("Where does she work?", "Dr. Müller works at the hospital in Köln, where she has lived since 1999."),
    ("Wie heißt die Hauptstadt?", "Die Hauptstadt von Frankreich ist Paris."),
    ("how many people live in this city", "水は大切です。"),
)


class Batch(NamedTuple):
    """Arguments for both models.

    mask (rows, T): the tokens among them, over all leading axes of input_ids flattened, or the features of images that
    are compared.
    texts, pairs: the sources of the ids.  images: the sources of pixel_values.
    switches: arguments that are True.
    steps: whether the logits in steps with a cache are compared too.
    pooled: whether outputs without an axis of tokens are compared.  Not if a row begins with padding: models that are
    not causal would make them of that.
    """

    name: str
    arrays: dict[str, np.ndarray]
    mask: np.ndarray | None = None
    texts: Sequence[str] = ()
    pairs: list[str] | None = None
    images: Sequence[Any] = ()
    switches: Sequence[str] = ()
    steps: bool = False
    pooled: bool = True


def batches(model: TextModel, tokenizer: Tokenizer | None, seed: int) -> list[Batch]:
    """Texts and random tokens, with what else the model asks for."""
    limit = min(model.max_positions, MAX_TOKENS)
    found = [] if tokenizer is None else _of_tokenizer(model, tokenizer, limit)
    if not any(batch.name == "longest" for batch in found):
        found += _random_texts(model, limit, seed)
    if isinstance(model, EntityTextModel):
        found = _with_entities(model, found, seed)
    if isinstance(model, ChoiceModel):
        found = [_with_choices(batch, min(2, len(batch.arrays["input_ids"]))) for batch in found]
    config = model.config
    if "encoder_hidden_states" in model.inputs and getattr(config, "add_cross_attention", True):
        rng, width = np.random.default_rng(seed), getattr(config, model.inputs["encoder_hidden_states"])
        for batch in found:
            rows = len(batch.arrays["input_ids"])
            batch.arrays["encoder_hidden_states"] = rng.standard_normal((rows, STATES, width), np.float32)
            if not spec_class(config.model_type).masks_states:
                continue
            batch.arrays["encoder_attention_mask"] = np.arange(STATES) < rng.integers(5, STATES + 1, (rows, 1))
    if "global_attention_mask" in model.options:
        rng = np.random.default_rng(seed)
        for batch in found:
            if not _has_own_global_tokens(model, batch):
                arrays = batch.arrays
                arrays["global_attention_mask"] = (rng.random(arrays["input_ids"].shape) < 0.1).astype(np.int64)
    return [batch._replace(steps=_has_steps(model, batch)) for batch in found]


def _has_own_global_tokens(model: TextModel, batch: Batch) -> bool:
    """True if a batch is given without a global_attention_mask, so that the models' own default is compared."""
    of_pairs = batch.name in ("pairs", "choices", "one choice")
    return of_pairs or (batch.name.endswith("alone") and not model.depends_on_values)


def _has_steps(model: TextModel, batch: Batch) -> bool:
    if "attention_mask" in batch.arrays or batch.arrays["input_ids"].shape[1] < 2:
        return False
    if "logits_to_keep" not in model.options or not model.is_causal:
        return False
    # Of a long text no steps agree with the whole if a cached key was turned for a shorter one, in transformers too.
    return not (model.depends_on_length and batch.name.endswith("longest"))


def _of_tokenizer(model: TextModel, tokenizer: Tokenizer, limit: int) -> list[Batch]:
    """The texts as a checkpoint's tokenizer sees them: padded on either side, alone, pairs, filling all positions.

    limit: the most tokens that the model has positions for.  Texts of which the tokenizer makes nothing are left out,
    and so is the longest if it is not long enough.
    """
    limit = min(limit, tokenizer.model_max_length or limit)

    def make_batch(name: str, texts: list[str], pairs: list[str] | None = None, **options: bool) -> Batch:
        rows = tokenizer.encode_batch(texts, pairs, max_length=limit).rows
        batch = _pad_batch(model, tokenizer, name, rows, **options)
        return batch._replace(texts=texts, pairs=pairs)

    last = model.ends_with_cls

    def has_tokens(text: str) -> bool:
        return len(tokenizer.encode_batch([text]).rows[0].ids) > 0

    texts = [text for text in (*TEXTS, f"They said {tokenizer.mask_token or 'nothing'} about it.") if has_tokens(text)]
    pairs = [(a, b) for a, b in PAIRS if has_tokens(a) and has_tokens(b)]
    if len(texts) < 3 or len(pairs) < 2:
        return []
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    longest = make_batch("longest", [" ".join(texts * MAX_TOKENS)[: 8 * MAX_TOKENS]], bare=True)
    more = [longest] * (longest.arrays["input_ids"].shape[1] == limit)
    if isinstance(model, ChoiceModel):
        asked = [*first, *texts]
        return [
            make_batch("choices", [a for a in asked for _ in range(2)], second[:2] * len(asked), left=last),
            make_batch("one choice", first[:1] * 2, second[:2], bare=True),
        ]
    found = [
        make_batch("padded", texts, left=last),
        make_batch("alone", texts[:1], bare=True),
        make_batch("right-padded" if last else "left-padded", texts[:3], left=not last),
    ]
    return [*found, make_batch("pairs", first, second, left=last), *more]


def _pad_batch(
    model: TextModel, tokenizer: Tokenizer, name: str, rows: Sequence[Any], left: bool = False, bare: bool = False
) -> Batch:
    """bare: input_ids alone if they are of one length, so that the models' own defaults are compared as well."""
    lengths = np.array([len(row.ids) for row in rows])[:, None]
    most = int(lengths.max())
    mask = np.arange(most) >= most - lengths if left else np.arange(most) < lengths
    ids, types = np.full(mask.shape, _pad(model, tokenizer)), np.zeros(mask.shape, np.int64)
    ids[mask] = np.concatenate([row.ids for row in rows])
    arrays = {"input_ids": ids}
    if not bare or not mask.all():
        arrays["attention_mask"] = mask.astype(np.int64)
        if tokenizer.is_pair_typed or model.ends_with_cls:  # XLNet's tokenizer has segments, and gives none
            types[mask] = np.concatenate([row.type_ids for row in rows])
        if "token_type_ids" in model.inputs and types.max() < getattr(model.config, model.inputs["token_type_ids"]):
            arrays["token_type_ids"] = types
    return Batch(name, arrays, mask, pooled=left == model.ends_with_cls or model.is_causal)


def _pad(model: TextModel, tokenizer: Tokenizer | None) -> int:
    found = None if tokenizer is None else tokenizer.pad_token_id
    return (getattr(model.config, "pad_token_id", None) or 0) if found is None else found


def _random_texts(model: TextModel, limit: int, seed: int) -> list[Batch]:
    """Random tokens, for a checkpoint without a tokenizer: padded on either side, alone, filling all positions.

    Each text ends with the end token that the config names: some models take their vector from its place.
    """
    rng, size = np.random.default_rng(seed), model.config.vocab_size
    lengths = np.minimum(LENGTHS, limit)[:, None]
    low, most, found, end = min(5, size - 1), int(lengths.max()), [], getattr(model.config, "eos_token_id", None)
    sides = [("left-padded", np.arange(most) >= most - lengths), ("right-padded", np.arange(most) < lengths)]
    for side, mask in sides if model.ends_with_cls else sides[::-1]:
        name = "padded" if mask is sides[not model.ends_with_cls][1] else side
        tokens = rng.integers(low, size, mask.shape)
        if isinstance(end, int) and 0 <= end < size:
            tokens[mask & (mask.cumsum(1) == lengths)] = end
        ids = np.where(mask, tokens, _pad(model, None))
        arrays = {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
        found.append(Batch(f"random, {name}", arrays, mask, pooled=name == "padded" or model.is_causal))
    for name, length in (("alone", min(60, limit)), ("longest", limit)):
        ids = rng.integers(low, size, (1, length))
        found.append(Batch(f"random, {name}", {"input_ids": ids}, np.ones_like(ids, bool)))
    return found


def _with_choices(batch: Batch, choices: int) -> Batch:
    arrays = {name: array.reshape(-1, choices, array.shape[-1]) for name, array in batch.arrays.items()}
    return batch._replace(arrays=arrays)


def _with_entities(model: EntityTextModel, found: list[Batch], seed: int) -> list[Batch]:
    """The batches with entities, after two without them where the model needs none."""
    several = []
    for i, batch in enumerate(found):
        rows, length = batch.arrays["input_ids"].shape
        entities = model.entities_of(rows, length, seed + i, padded="attention_mask" in batch.arrays)
        several.append(batch._replace(arrays={**batch.arrays, **entities}))
    bare = [] if model.least_entities else [batch._replace(name=f"{batch.name}, no entities") for batch in found[:2]]
    return bare + several


def first_rows(batch: Batch, count: int) -> Batch:
    """A batch of texts cut to its first rows; one of images is as small as it is."""
    if batch.mask is None:
        return batch
    arrays = {name: array[:count] for name, array in batch.arrays.items()}
    return batch._replace(arrays=arrays, mask=batch.mask[:count], texts=batch.texts[:count])


def first_tokens(config: Any, tokenizer: Tokenizer | None, seed: int) -> np.ndarray:
    """The first tokens of three texts (3, GIVEN), with random ones where there are not enough."""
    ids = np.random.default_rng(seed).integers(min(5, config.vocab_size - 1), config.vocab_size, (3, DECODER_TOKENS))
    rows = [] if tokenizer is None else tokenizer.encode_batch(list(TEXTS[:3]), truncation=False).rows
    for i, row in enumerate(rows):
        some = row.ids[:DECODER_TOKENS]
        ids[i, : len(some)] = some
    ids[:, 0] = config.decoder_start_token_id or 0
    return ids
