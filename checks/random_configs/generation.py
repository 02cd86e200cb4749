"""Tokens that both write with the same options, or the probabilities that they draw them from."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from zoo import ops
from zoo.generate import GenerationConfig, generate
from zoo.generate.sampling import constrain_scores, distribution
from zoo.inputs.encoder_decoder import EncoderDecoder

from .comparing import DIFFERS, EQUAL, Verdict, call_zoo, describe, read
from .folder import NoPairError, Theirs
from .inputs import MAX_TOKENS, Arguments, arguments
from .plan import Plan

NEW = 8  # tokens
PROBABILITY = 2e-3  # the largest difference of two probabilities


def options_of(rng: random.Random, vocab: int) -> dict[str, Any]:
    """Some options of generation, which go together."""
    some = lambda most: [rng.randrange(vocab) for _ in range(rng.randint(1, most))]
    every: dict[str, Any] = {
        "min_new_tokens": rng.randint(1, NEW - 1),
        "min_length": rng.randint(1, 12),
        "repetition_penalty": rng.choice((0.7, 1.3, 3.0)),
        "no_repeat_ngram_size": rng.randint(1, 3),
        "forced_bos_token_id": rng.randrange(vocab),
        "forced_eos_token_id": rng.choice((rng.randrange(vocab), some(3))),
        "suppress_tokens": some(vocab // 2),
        "begin_suppress_tokens": some(vocab // 2),
        "bad_words_ids": [[token] for token in some(vocab // 2)],
        "eos_token_id": rng.choice((rng.randrange(vocab), some(max(vocab // 4, 1)))),
        "pad_token_id": rng.randrange(vocab),
        "bos_token_id": rng.randrange(vocab),
        "prompt_lookup_num_tokens": rng.randint(1, 4),
        "encoder_no_repeat_ngram_size": rng.randint(1, 2),
        "renormalize_logits": rng.random() < 0.5,
        "diversity_penalty": 0.0,
    }
    found = {name: every[name] for name in rng.sample([*every], rng.randint(0, 4))}
    length = {"max_new_tokens": NEW} if rng.random() < 0.7 else {"max_length": rng.randint(6, 30)}
    how = rng.choice(("greedy", "greedy", "beams", "sampling"))
    if how == "beams":
        beams = rng.randint(2, 4)
        more = {
            "length_penalty": rng.choice((-1.0, 0.0, 0.5, 2.0)),
            "early_stopping": rng.choice((True, False, "never")),
        }
        more["num_return_sequences"] = rng.randint(1, beams)
        found |= {"num_beams": beams} | {name: more[name] for name in more if rng.random() < 0.6}
        found.pop("prompt_lookup_num_tokens", None)
    if how == "sampling":
        more = {"temperature": rng.choice((0.3, 0.9, 2.0)), "top_k": rng.choice((0, 1, 5, 50))}
        more |= {"top_p": rng.choice((0.3, 0.9, 1.0)), "min_p": rng.choice((0.05, 0.5))}
        found |= {"do_sample": True} | {name: more[name] for name in more if rng.random() < 0.6}
        found.pop("prompt_lookup_num_tokens", None)
    # Several forced ends score alike: which of them top_p leaves, or a beam ends with, is a matter of torch's sort.
    if (how == "beams" or "top_p" in found) and isinstance(found.get("forced_eos_token_id"), list):
        del found["forced_eos_token_id"]
    return {**found, **length}


def compare_generated(plan: Plan, folder: Path) -> Verdict:
    """Generate with options from generation_config.json, from config.json, or from the call."""
    words = plan.words()
    place = words.choice(("file", "call", "call", "call without a file"))
    if place == "call without a file":
        (folder / "generation_config.json").unlink(missing_ok=True)  # config.json has what there is
    theirs = Theirs(folder, plan.read_as)
    options = options_of(words, _vocabulary(theirs))
    if "max_length" in options:  # zoo ends where a model has no more positions, transformers may go on
        options["max_length"] = min(options["max_length"], _positions(theirs))
    if place == "file":
        _add(folder / "generation_config.json", options)
        theirs = Theirs(folder, plan.read_as)
    in_call = {} if place == "file" else options
    model = call_zoo(plan, lambda: read(plan, folder))
    config = call_zoo(plan, lambda: GenerationConfig.from_folder(folder).replace(**in_call))
    prompt, context = _prompt(model, config, plan.rng(1))
    compare = _other_chances if config.do_sample else _other_tokens
    problem = compare(plan, model, theirs, config, in_call, prompt, context)
    if problem:
        precise = Theirs(folder, plan.read_as, "float64")
        if _is_close(theirs, precise, config.do_sample, in_call, prompt, context):
            said = f"{json.dumps(options)} in the {place}; {describe(context)}"
            return Verdict(DIFFERS, f"{problem}; prompt {prompt}, {said}")
    return Verdict(EQUAL)


def _context(model: Any, given: Arguments) -> dict[str, Any]:
    """What zoo's decoder gets besides its prompt."""
    if not isinstance(model, EncoderDecoder):
        return given.arrays
    return model.context(**given.arrays, **dict.fromkeys(given.switches, True))


def _vocabulary(theirs: Theirs) -> int:
    return theirs.model.config.get_text_config(decoder=True).vocab_size


def _positions(theirs: Theirs) -> int:
    return getattr(theirs.model.config.get_text_config(decoder=True), "max_position_embeddings", None) or MAX_TOKENS


def _add(path: Path, options: Mapping[str, Any]) -> None:
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**before, **options}), encoding="utf-8")


def _prompt(model: Any, config: GenerationConfig, rng: np.random.Generator) -> tuple[list[int], Arguments]:
    """A prompt, and what else the model reads: one row.  An encoder's begins as `generate` of transformers has it."""
    given = arguments(model, rng)
    decoder = getattr(model, "decoder", model)
    starts = config.decoder_start_token_id, config.bos_token_id, getattr(decoder.config, "decoder_start_token_id", 0)
    start = next((token for token in starts if token is not None), 0)
    names = [n for n in given.arrays if n in ("input_ids", "attention_mask", "pixel_values", "input_features")]
    if isinstance(model, EncoderDecoder):
        arrays = {name: given.arrays[name][:1] for name in names}
        if "attention_mask" in arrays:
            arrays["attention_mask"][:, 0] = 1
        more = rng.integers(0, decoder.config.vocab_size, int(rng.choice([0, 0, 1, 3]))).tolist()
        return [start, *more], Arguments(arrays, given.switches)
    most = max(min(model.max_positions - NEW - 1, 24), 1)
    ids = rng.integers(0, model.config.vocab_size, int(rng.integers(1, most + 1)))
    names = [n for n in given.arrays if n.startswith("encoder_")]
    return ids.tolist(), Arguments({name: given.arrays[name][:1] for name in names})


def _generate(theirs: Theirs, options: Mapping[str, Any], prompt: list[int], context: Arguments, **more: Any) -> Any:
    """transformers' result."""
    torch = theirs.torch
    given = {**theirs.arguments(context.arrays), **dict.fromkeys(context.switches, True)}
    # A decoder alone loses the states that it is given where transformers makes a cache for it.
    given["use_cache"] = "encoder_hidden_states" not in context.arrays
    ids = torch.tensor([prompt])
    if theirs.model.config.is_encoder_decoder:
        given["decoder_input_ids"] = ids
    else:
        given |= {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    try:
        with torch.no_grad():
            torch.manual_seed(0)
            return theirs.model.generate(**given, **options, **{"return_dict_in_generate": False, **more})
    except Exception as e:
        raise NoPairError(f"{type(e).__name__}: {e}") from e


def _new_tokens(theirs: Theirs, options: Mapping[str, Any], prompt: list[int], context: Arguments) -> list[list[int]]:
    return _generate(theirs, options, prompt, context)[:, len(prompt) :].tolist()


def _is_close(
    theirs: Theirs,
    precise: Theirs,
    samples: bool,
    options: Mapping[str, Any],
    prompt: list[int],
    context: Arguments,
) -> bool:
    """True if transformers makes the same in float64: no choice was one between equals."""
    if not samples:
        return _new_tokens(theirs, options, prompt, context) == _new_tokens(precise, options, prompt, context)
    a, b = (_chances(one, options, prompt, context) for one in (theirs, precise))
    return a[0] != b[0] or all(np.abs(x - y).max() < PROBABILITY for x, y in zip(a[1], b[1], strict=True))


def _other_tokens(
    plan: Plan,
    model: Any,
    theirs: Theirs,
    config: GenerationConfig,
    options: Mapping[str, Any],
    prompt: list[int],
    context: Arguments,
) -> str:
    """The first row with other tokens, "" if there is none.  transformers fills rows that ended with padding."""
    wanted = _new_tokens(theirs, options, prompt, context)
    given = _context(model, context)
    found = call_zoo(plan, lambda: [row.ids.tolist() for row in generate(model, [prompt], config, **given)[0]])
    if len(found) != len(wanted):
        return f"{len(found)} continuations, expected {len(wanted)}"
    for ours, row in zip(found, wanted, strict=True):
        rest, ended = row[len(ours) :], bool(ours) and ours[-1] in config.eos_token_id
        if ours != row[: len(ours)] or len(set(rest)) > 1 or (rest and not ended):
            return f"tokens {ours}, expected {row}"
    return ""


def _chances(
    theirs: Theirs, options: Mapping[str, Any], prompt: list[int], context: Arguments
) -> tuple[list[int], list[np.ndarray]]:
    """The tokens that transformers has drawn, and at each step the probabilities of all."""
    out = _generate(theirs, options, prompt, context, output_scores=True, return_dict_in_generate=True)
    chances = [theirs.torch.softmax(scores[0].double(), -1).numpy() for scores in out.scores]
    if not all(np.isfinite(p).all() for p in chances):
        raise NoPairError("transformers computes no probabilities")
    return out.sequences[0, len(prompt) :].tolist(), chances


def _other_chances(
    plan: Plan,
    model: Any,
    theirs: Theirs,
    config: GenerationConfig,
    options: Mapping[str, Any],
    prompt: list[int],
    context: Arguments,
) -> str:
    """The first step at which zoo would draw a token with another probability; "" if there is none."""
    new, chances = _chances(theirs, options, prompt, context)
    given = _context(model, context)
    limit = call_zoo(plan, lambda: config.new_tokens(len(prompt), model.max_positions))
    fewest = config.min_tokens(len(prompt))
    call_zoo(plan, config.check)
    for n, wanted in enumerate(chances):
        ids = np.array([*prompt, *new[:n]])

        def our_distribution(ids: np.ndarray = ids, n: int = n) -> np.ndarray:
            logits = ops.to_numpy(model.next_logits(ids[None], None, model.new_cache(1, len(ids)), **given))
            row = constrain_scores(np.asarray(logits, np.float32), [ids], [n], [fewest], config, [limit])[0]
            found = np.zeros(len(row))
            at, p = distribution(row, config)
            found[at] = p
            return found

        found = call_zoo(plan, our_distribution)
        if np.abs(found - wanted).max() > PROBABILITY:
            worst = int(np.abs(found - wanted).argmax())
            return f"step {n}: token {worst} has probability {found[worst]:.4f}, expected {wanted[worst]:.4f}"
    return ""
