"""Models at full size in bfloat16, zoo against transformers: eager attention, sdpa, and torch.compile with CUDA graphs.

Both have the same random weights, made on the device.  Time is a user's: from the call to the end of the work.
"""

from __future__ import annotations

import multiprocessing
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from zoo.generate import GenerationConfig, generate
from zoo.nn import leaves, map_leaves
from zoo.ops.on_torch.quantised import dequantise
from zoo.runner import Runner, runner_for

from ..harness import in_turns
from .measure import (
    ROUNDS,
    UNIT,
    Bench,
    BenchRow,
    StageReport,
    called,
    compare,
    judged,
    opened,
    per_second,
    rated,
    reason,
)
from .pairs import LastPair, ModelPair, compile_fixed, warmed

DTYPE = "bfloat16"
LARGE = 6e9  # bytes of a model that does not fit on the card in float32 beside all else
BOTH = ("eager", "sdpa")


COMPILED = r"decode, batch|bert|vit|table"  # rows that have torch.compile


def rows(bench: Bench) -> list[BenchRow]:
    """All comparisons, the most important first; rows that share a model follow each other."""
    held, t = LastPair(bench), bench.tiny
    found: list[BenchRow] = []

    def add(name: str, call: Callable[..., dict[str, Any]], *args: Any) -> None:
        found.append(BenchRow(name, partial(call, held, *args)))

    text, new = (6, 2) if t else (512, 32)
    for model, batches in (("Llama-3-8B", (1,) if t else (1, 8, 32)), ("Llama-3.2-1B", () if t else (1,))):
        for batch in batches:
            add(f"{model} decode, batch {batch}, after {text} tokens", llama_decode, model, batch, text, new)
        for weights in ("int8", "int4"):
            add(f"{model} decode, {weights}, after {text} tokens", llama_packed, model, weights, text, new)
        T = text if t else 2048
        add(f"{model} prefill, {T} tokens", llama_prefill, model, T)
    for batch, T in ((1, 8),) if t else ((1, 128), (64, 512)):
        add(f"bert-base, batch {batch}, {T} tokens", bert, batch, T)
    for batch in (2,) if t else (1, 64):
        add(f"vit-base, batch {batch}", encoder, "vit-base-patch16-224", batch, (30, 30) if t else (224, 224))
    structure, size = "table-transformer-structure-recognition-v1.1-all", (48, 64) if t else (700, 1000)
    add(f"table transformer, structure, {size[1]} x {size[0]}", encoder, structure, 1, size)
    add(f"trocr-base, {2 if t else 8} lines, 4 beams, {new} tokens", trocr, 2 if t else 8, new)
    return found


def compile_ahead(bench: Bench, report: StageReport, wanted: Sequence[str]) -> None:
    """Have torch compile what some rows time, a process for each model: it takes longer than all else."""
    models: dict[str, list[str]] = {}
    for name in wanted:
        models.setdefault(re.split(r" decode|, ", name)[0], []).append(name)
    tasks = [(bench.tiny, bench.folder, names) for names in models.values()]
    with multiprocessing.get_context("spawn").Pool(len(tasks), maxtasksperchild=1) as pool:
        results = pool.imap_unordered(_compile, tasks)
        try:
            for _ in tasks:
                for name, row in results.next(timeout=max(0.0, bench.left())):
                    report.add(name, row)
        except multiprocessing.TimeoutError:
            report.found["not_run"] = sorted({*wanted} - {row["row"] for row in report.found["rows"]})
            report.write()


def _compile(task: tuple[bool, Path, list[str]]) -> list[tuple[str, dict[str, Any]]]:
    tiny, folder, names = task
    done = []
    with opened(tiny, folder) as bench:
        bench.ahead = True
        by_name = {row.name: row for row in rows(bench)}
        for name in names:
            begin = time.monotonic()
            try:
                by_name[name].run()
                done.append((name, {"summary": f"compiled in {time.monotonic() - begin:.0f} s"}))
            except Exception as e:
                done.append((name, {"error": reason(e)}))
    return done


# Encoders


def _encode(
    held: LastPair, key: tuple[Any, ...], ours: Any, theirs: dict[str, Any], pick: Any, batch: int
) -> dict[str, Any]:
    """ours, theirs: the arguments of zoo's model and of transformers'.  pick: the part of both outputs to compare."""
    bench, pair = held.bench, held.get(*key)
    compiled = partial(compile_fixed(bench, pair.twin("sdpa")), **theirs)
    if bench.ahead:
        return {"compiled": warmed(bench, compiled)() is not None}
    calls = {"zoo": partial(pair.runner, pair.ours, *ours)}
    if pair.has_graphs:
        calls["zoo without graphs"] = partial(Runner(), pair.ours, *ours)
    for attention in BOTH if pair.has_sdpa else BOTH[:1]:
        calls[f"transformers {attention}"] = partial(pair.twin(attention), **theirs)
    calls["torch.compile"] = compiled
    wide = {name: x.float() if x.is_floating_point() else x for name, x in theirs.items()}
    exact, first = pair.exact(), {name: warmed(bench, call) for name, call in calls.items()}
    options: dict[str, Any] = {"pick": lambda out: pick(out).clone(), "timed": calls, "wall": True}
    result = compare(bench, first, lambda: pick(exact(**wide)), UNIT[DTYPE], **options)
    return {**result, **per_second(result, "rows_per_second", batch), **pair.facts()}


def bert(held: LastPair, batch: int, T: int) -> dict[str, Any]:
    """Texts of several lengths, but for a single one."""
    bench = held.bench
    ids = torch.randint(5, 500, (batch, T), device=bench.device, generator=torch.Generator(bench.device).manual_seed(0))
    lengths = torch.linspace(T, T // 2, batch, device=bench.device).long()
    mask = torch.arange(T, device=bench.device) < lengths[:, None]
    theirs = {"input_ids": ids, "attention_mask": mask.long()}
    pick = lambda out: out.last_hidden_state[mask]
    return _encode(held, ("bert-base-uncased", "Model"), (ids, mask), theirs, pick, batch)


def encoder(held: LastPair, spec: str, batch: int, size: tuple[int, int]) -> dict[str, Any]:
    """Images to logits."""
    if spec.startswith("vit"):
        size = (held.get(spec).config.image_size,) * 2
    pixels = held.bench.normal(batch, *size, 3)
    theirs = {"pixel_values": pixels.permute(0, 3, 1, 2).contiguous()}
    return _encode(held, (spec,), (pixels,), theirs, lambda out: getattr(out, "logits", out), batch)


def trocr(held: LastPair, batch: int, new: int) -> dict[str, Any]:
    """From pixel values to `new` tokens by 4 beams; the logits of the first token are compared."""
    bench, pair = held.bench, held.get("trocr-base-handwritten")
    begin, model = pair.config.decoder.decoder_start_token_id or 2, pair.ours
    pixels = bench.normal(batch, *(pair.config.encoder.image_size,) * 2, 3)
    first, start = pixels.permute(0, 3, 1, 2).contiguous(), np.full((batch, 1), begin)
    options = GenerationConfig(max_new_tokens=new, eos_token_id=(), num_beams=4)

    def ours(runner: Any) -> Any:
        states = runner.run(model.encoder_states, model.encoder.pixels(pixels))
        return generate(runner.decoder(model.decoder), start, options, encoder_hidden_states=states)

    def theirs(module: Any) -> Any:
        module.generation_config.eos_token_id = None  # none of them ends early
        same = {"max_new_tokens": new, "do_sample": False, "num_beams": 4, "use_cache": True}
        return module.generate(first, decoder_start_token_id=begin, pad_token_id=1, **same)

    ids = torch.full((batch, 1), begin, device=bench.device)
    modules = {f"transformers {name}": pair.twin(name) for name in BOTH}
    exact = pair.exact()(pixel_values=first.float(), decoder_input_ids=ids).logits
    logits = {name: module(pixel_values=first, decoder_input_ids=ids).logits for name, module in modules.items()}
    found = judged({"zoo": model(pixels, ids).logits, **logits}, exact, UNIT[DTYPE])
    calls = {"zoo": partial(ours, pair.runner), **{name: partial(theirs, m) for name, m in modules.items()}}
    if "wrong" in found:
        return {**found, "times": dict.fromkeys(calls), "ratios": {}}
    result = {**found, **compare(bench, calls, None, UNIT[DTYPE], pick=lambda out: None, wall=True)}
    return {**result, **per_second(result, "tokens_per_second", batch * new), **pair.facts()}


# Llama


class DecodeCalls(NamedTuple):
    """begin: a prompt (B, T) into an empty cache -> logits (B, V) of the next token.  step: ids (B, 1) -> the same."""

    begin: Callable[[Any], Any]
    step: Callable[[Any], Any]


def llama_decode(held: LastPair, spec: str, batch: int, text: int, new: int) -> dict[str, Any]:
    """`new` greedy tokens, one after the other, chosen on the device, after a prompt."""
    bench, pair = held.bench, held.llama(spec)
    ids, room = _prompt(bench, pair, batch, text), text + new + 8
    compiled = _static(bench, pair, room)
    if bench.ahead:
        return {"compiled": warmed(bench, partial(_two_logits, compiled, ids))() is not None}
    decoders = {"zoo": _ours(pair.runner.decoder(pair.ours), batch, room)}
    if pair.has_graphs:
        decoders["zoo without graphs"] = _ours(pair.ours, batch, room)
    decoders |= {f"transformers {name}": _theirs(pair.twin(name)) for name in BOTH}
    decoders["torch.compile"] = compiled
    large = pair.bytes > LARGE  # then sdpa is the reference, and eager attention shows how far two may differ
    wanted = _two_logits(_theirs(pair.twin("sdpa") if large else pair.exact()), ids)
    result = _tokens(bench, decoders, ids, new, wanted, _read(pair))
    reference = "transformers sdpa in bfloat16" if large else "transformers in float32"
    return {**result, **per_second(result, "tokens_per_second", batch), "reference": reference, **pair.facts()}


def llama_packed(held: LastPair, spec: str, weights: str, text: int, new: int) -> dict[str, Any]:
    """Tokens by packed weights, one sequence, beside the same rounded numbers in bfloat16."""
    bench, pair = held.bench, held.llama(spec)
    ids, room = _prompt(bench, pair, 1, text), text + new + 8
    ours = pair.loaded(pair.ours.config, dtype=DTYPE, weights=weights)
    wanted = _two_logits(_ours(_widened(ours, torch.float32), 1, room), ids)
    bench.free()  # the widened model: with the one in bfloat16 there would be no room for it
    models = {"zoo": ours, DTYPE: _widened(ours, torch.bfloat16)}
    decoders = {name: _ours(runner_for(model).decoder(model), 1, room) for name, model in models.items()}
    stored = {id(leaf): leaf.nbytes for _, leaf in leaves(ours)}
    result = _tokens(bench, decoders, ids, new, wanted, sum(stored.values()))
    return {**result, **per_second(result, "tokens_per_second", 1), "reference": "the same numbers in float32"}


def llama_prefill(held: LastPair, spec: str, T: int) -> dict[str, Any]:
    """A prompt into an empty cache, and the logits of its last token."""
    bench, pair = held.bench, held.llama(spec)
    ids = _prompt(bench, pair, 1, T)
    calls: dict[str, Any] = {"zoo": partial(_ours(pair.ours, 1, T).begin, ids)}
    calls |= {f"transformers {name}": partial(_theirs(pair.twin(name)).begin, ids) for name in BOTH}
    large = pair.bytes > LARGE
    reference = calls["transformers sdpa"] if large else partial(_theirs(pair.exact()).begin, ids)
    return compare(bench, calls, reference, UNIT[DTYPE], wall=True)


def _tokens(
    bench: Bench, decoders: Mapping[str, DecodeCalls], ids: Any, new: int, wanted: Any, read: int
) -> dict[str, Any]:
    """The decoders' two logits compared, then the seconds of a token for each, in turns."""
    first = {name: warmed(bench, partial(_two_logits, decoder, ids)) for name, decoder in decoders.items()}
    outputs, refused = called(first, bench)
    found = {"refused": refused, **judged(outputs, wanted, UNIT[DTYPE])}
    times: dict[str, list[float]] = {name: [] for name in outputs}
    outputs.clear()
    if "wrong" in found:
        return {**found, "times": dict.fromkeys(times), "ratios": {}}
    for name in in_turns(list(times), 1 if bench.interpreted else ROUNDS - 2):
        seconds = _seconds_a_token(bench, decoders[name], ids, new)
        times[name] += [] if bench.interpreted else [seconds]
    return {**found, **rated(bench, times, bytes=read)}


def _two_logits(decoder: DecodeCalls, ids: Any) -> Any:
    """Logits after the prompt, and after one token more: the same for all."""
    first = decoder.begin(ids).float().clone()
    return torch.stack([first, decoder.step(ids[:, :1].clone()).float()])


def _seconds_a_token(bench: Bench, decoder: DecodeCalls, ids: Any, new: int) -> float:
    chosen = decoder.begin(ids).argmax(-1, keepdim=True)
    chosen = decoder.step(chosen).argmax(-1, keepdim=True)
    bench.synchronize()
    begin = time.perf_counter()
    for _ in range(new):
        chosen = decoder.step(chosen).argmax(-1, keepdim=True)
    bench.synchronize()
    return (time.perf_counter() - begin) / new


def _prompt(bench: Bench, pair: ModelPair, batch: int, T: int) -> Any:
    generator = torch.Generator(bench.device).manual_seed(0)
    return torch.randint(0, pair.config.vocab_size, (batch, T), device=bench.device, generator=generator)


def _read(pair: ModelPair) -> int:
    """Bytes of weights that a token reads: all, but for embeddings that are not the head."""
    embedding = pair.theirs.get_input_embeddings().weight
    return pair.bytes - (0 if pair.config.tie_word_embeddings else embedding.numel() * embedding.element_size())


def _widened(model: Any, dtype: torch.dtype) -> Any:
    """The model with packed matrices, and all else, in an element type."""
    cast = lambda x: x.to(dtype) if x.is_floating_point() else x
    return map_leaves(
        cast, model, quantised=lambda matrix: torch.cat([dequantise(part, dtype) for part in matrix.parts])
    )


def _ours(model: Any, batch: int, room: int) -> DecodeCalls:
    caches: list[Any] = []

    def begin(ids: Any) -> Any:
        caches.clear()  # whose memory the next one takes
        caches.append(model.new_cache(batch, room))
        return model.next_logits(ids, None, caches[0])

    return DecodeCalls(begin, lambda ids: model.next_logits(ids, None, caches[0]))


def _theirs(module: Any) -> DecodeCalls:
    caches: list[Any] = []

    def begin(ids: Any) -> Any:
        out = module(ids, use_cache=True, logits_to_keep=1)
        caches[:] = [out.past_key_values]
        return out.logits[:, -1]

    def step(ids: Any) -> Any:
        return module(ids, past_key_values=caches[0], use_cache=True, logits_to_keep=1).logits[:, -1]

    return DecodeCalls(begin, step)


def _static(bench: Bench, pair: ModelPair, room: int) -> DecodeCalls:
    """As transformers' own documentation compiles a step: a cache of fixed size, and the prompt not compiled."""
    from transformers import StaticCache

    module = pair.twin("sdpa")
    compiled, cache = compile_fixed(bench, module), StaticCache(config=pair.config, max_cache_len=room)

    def begin(ids: Any) -> Any:
        cache.reset()
        return module(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]

    def step(ids: Any) -> Any:
        return compiled(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]

    return DecodeCalls(begin, step)
