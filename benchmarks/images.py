"""An image of 1,008 tokens through Qwen2.5-VL's layout, weights of 4 bits: zoo on ONNX Runtime and llama.cpp's mtmd.

    python -m benchmarks.images --llama-cpp PYTHON --clock cpu --threads 1   # writes results/images-<...>.json
    python -m benchmarks.images --llama-cpp PYTHON --size tiny --json out.json   # a look at whether all runs

PYTHON is that of an environment with cyllama, whose wheels hold llama.cpp and mtmd (`pip install cyllama pillow`).
Random weights: the decoder's matrices are those of llama.cpp's Q4_0 everywhere, and the word embeddings, which are its
head too, Q6_K, and int8 in zoo's own form.  The encoder is int8 there, and in llama.cpp's files an mmproj in F16 and
one in Q8_0.  `--size small` has 8 of the 3B model's 36 layers and 8 of its encoder's 32, each as wide as there; `full`
has all.  A process loads the model, reads a small image, and is then timed from the pixels of 784 x 1008 to the first
token, and for each of the tokens after it.  Logits after the image must be alike.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from zoo.weights.files import open_weights

from . import harness
from .checkpoints import once

SPEC = "Qwen2.5-VL-3B-Instruct"
IMAGE = 784, 1008  # width and height: 28 x 36 tokens
SMALL = {"num_hidden_layers": 8}, {"depth": 8, "fullatt_block_indexes": [7]}
_TINY_TEXT = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
_TINY_TEXT |= {"num_key_value_heads": 2, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}
_TINY_VISION = {"depth": 2, "hidden_size": 64, "out_hidden_size": 64, "num_heads": 2, "intermediate_size": 128}
SIZES = {"small": SMALL, "tiny": (_TINY_TEXT, {**_TINY_VISION, "fullatt_block_indexes": [1]}), "full": ({}, {})}
# name -> the side, and the encoder's file
CONTENDERS = {
    "zoo onnx int4": ("zoo", "zoo"),
    "zoo onnx q4_0, mmproj q8_0": ("zoo", "mmproj-q8_0.gguf"),
    "llama.cpp q4_0, mmproj f16": ("llama.cpp", "mmproj-f16.gguf"),
    "llama.cpp q4_0, mmproj q8_0": ("llama.cpp", "mmproj-q8_0.gguf"),
}
TARGETS = {"first": 1.1, "token": 1.0}
LARGEST_DIFFERENCE = (
    0.25  # rms of the differences of logits, relative to theirs: activations are rounded to int8 in other places
)

# `open_model()` gives a function of an image -> the ids before and after it, the logits, and a function of a token.
CHILD = """
import json, sys, time
folder, file, threads, tokens, size, ids, clock = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:8])
now = getattr(time, clock)
from benchmarks.memory import peak
%s
import numpy as np
from PIL import Image
def draw(width, height, seed):
    coarse = np.random.default_rng(seed).integers(0, 256, (height // 28, width // 28, 3), np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.BILINEAR)
read = open_model()
around, *_ = read(draw(112, 112, 1))
if not tokens:
    print(json.dumps(dict(around=around)))
    sys.exit()
began = now()
around, logits, step = read(draw(*size, 0))
first, each, kept = now() - began, [], np.asarray(logits, np.float64).ravel()
for _ in range(tokens):
    token = int(np.argmax(logits))
    a = now()
    logits = step(token)
    each.append(now() - a)
found = dict(first=first, token=float(np.median(each)), peak=peak(), around=around)
print(json.dumps(dict(found, logits=kept[::97].tolist())))
"""
SIDES = {
    "zoo": """
import zoo
from pathlib import Path
from zoo.images import ImageProcessor
def open_model():
    zoo.set_num_threads(threads)
    if file == "zoo":
        model = zoo.load_model(folder + "/zoo", device="onnx", weights="int4")
    else:
        model = zoo.load_model(folder + "/model.gguf", mmproj=folder + "/" + file, device="onnx")
    processor, decoder = ImageProcessor.from_folder(Path(folder, "zoo")), model.runner.decoder(model)
    def read(image):
        pixels = processor(image).pixel_values
        count = model.image_length(model.vision_model.grid(pixels))
        prompt = model.prompt([*ids[0], *[model.config.image_token_id] * count, *ids[1]], [pixels])
        cache = decoder.new_cache(1, len(prompt) + tokens + 1)
        logits = decoder.next_logits(None, None, cache, prompts=[prompt])
        return ids, logits, lambda token: decoder.next_logits(np.array([[token]]), None, cache)
    return read
""",
    "llama.cpp": """
from cyllama.llama import llama_cpp
def open_model():
    llama_cpp.llama_backend_init()
    llama_cpp.ggml_backend_load_all()
    llama_cpp.disable_logging()
    class Network(llama_cpp.LlamaModel):
        n_vocab = property(lambda self: self.get_vocab().n_vocab)  # get_logits asks for it, and cyllama 0.2 lacks it
    setting = llama_cpp.LlamaModelParams()
    setting.n_gpu_layers = 0
    network = Network(folder + "/model.gguf", setting)
    setting = llama_cpp.LlamaContextParams()
    setting.n_ctx, setting.n_batch = 2048, 512
    setting.n_threads = setting.n_threads_batch = threads
    session = llama_cpp.LlamaContext(network, setting)
    setting = llama_cpp.MtmdContextParams(use_gpu=False, print_timings=False, n_threads=threads, warmup=False)
    encoder = llama_cpp.MtmdContext(folder + "/" + file, network, setting)
    text = llama_cpp.get_default_media_marker() + "What"
    def read(image):
        bitmap = llama_cpp.MtmdBitmap.create_image(*image.size, image.tobytes())
        chunks = encoder.tokenize(text, [bitmap], False, True)
        session.kv_cache_clear()
        at = encoder.eval_chunks(session, chunks, 0, 0, 512, True)
        parts = [chunks[i] for i in range(len(chunks))]
        kinds = [part.type == llama_cpp.MtmdInputChunkType.TEXT for part in parts]
        assert kinds == [True, False, True], kinds
        around = [list(parts[i].get_text_tokens()) for i in (0, 2)]
        def step(token):
            nonlocal at
            session.decode(llama_cpp.llama_batch_get_one([token], at))
            at += 1
            return np.asarray(session.get_logits(), np.float32)
        return around, np.asarray(session.get_logits(), np.float32), step
    return read
""",
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = harness.parser("images", __doc__, rounds=2)
    parser.add_argument("--size", choices=sorted(SIZES), default="small")
    parser.add_argument("--tokens", type=int, default=24, help="tokens that are decoded (default 24)")
    parser.add_argument("--llama-cpp", metavar="PYTHON", required=True, help="an interpreter with cyllama and Pillow")
    args = parser.parse_args(argv)
    environment = harness.start(args, torch_too=False)
    folder = once(args.cache / f"images-{args.size}", lambda partial: _write(args.size, args.cache, partial))
    os.environ["HF_ASSETS_CACHE"] = str(args.cache / "graphs")
    clock = json.dumps("process_time" if args.clock == "cpu" else "perf_counter")
    image = IMAGE if args.size != "tiny" else (112, 168)

    def run(name: str, ids: Any, tokens: int) -> dict[str, Any]:
        side, file = CONTENDERS[name]
        given = *map(json.dumps, (environment["threads"], tokens, image, ids)), clock
        python = {"python": args.llama_cpp} if side == "llama.cpp" else {}
        return harness.run_python(CHILD % SIDES[side], str(folder), file, *given, **python)

    ours = [name for name, (side, _) in CONTENDERS.items() if side == "zoo"]
    theirs = [name for name in CONTENDERS if name not in ours]
    around = run(theirs[0], None, 0)["around"]
    for name in ours:  # whose graphs are made by another process, whose memory does not count
        run(name, around, 0)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in CONTENDERS}
    for name in harness.in_turns(list(CONTENDERS), args.rounds):
        found = run(name, around, args.tokens)
        runs[name].append(found)
        print(f"{name}: first token {found['first']:.2f} s, a token {1e3 * found['token']:.1f} ms", flush=True)
    wanted = np.array(runs["zoo onnx int4"][0]["logits"])
    differences = {}
    for name, of in runs.items():
        logits = np.array(of[0]["logits"])
        differences[name] = float(np.sqrt(np.mean((logits - wanted) ** 2) / np.mean(wanted**2)))
        for one in of:
            del one["logits"], one["around"]
    print("logits, differences from zoo's:", differences)
    if max(differences.values()) > LARGEST_DIFFERENCE:
        return 1
    ratios = []
    for one, other in ((a, b) for a in ours for b in theirs):
        for what, target in TARGETS.items():
            ratio = min(run[what] for run in runs[one]) / min(run[what] for run in runs[other])
            ratios.append({"what": what, "ours": one, "theirs": other, "ratio": ratio, "target": target})
            print(f"{what}, {one} / {other}: {ratio:.2f} ({'<=' if ratio <= target else 'MISSES'} {target:.2f})")
    result = {"environment": environment, "size": args.size, "image": image, "tokens": args.tokens}
    harness.finish("images", args, {**result, "differences": differences, "runs": runs, "ratios": ratios})
    return 0


# The files


def _write(size: str, cache: Path, folder: Path) -> Path:
    """The checkpoint for zoo, with the decoder's matrices as Q4_0 has them, and the three GGUF files."""
    import shutil

    base = once(cache / f"images-{size}-random", lambda partial: _write_random(size, partial))
    (folder / "zoo").mkdir()
    for file in ("config.json", "preprocessor_config.json"):
        shutil.copy(base / file, folder / "zoo")
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    names = _write_texts(base, config, folder / "model.gguf")
    for kind in ("F16", "Q8_0"):
        _write_encoder(base, config, folder / f"mmproj-{kind.lower()}.gguf", kind)
    _write_rounded(base, folder / "model.gguf", names, folder / "zoo" / "model.safetensors")
    return folder


def _write_random(size: str, folder: Path) -> Path:
    """Random weights in bfloat16, one tensor in memory at a time."""
    from parity.drawing import draw
    from parity.specs import SPECS, config_of, tensors
    from parity.vocabularies import write_json
    from zoo.weights.safetensors import write_tensors

    text, vision = SIZES[size]
    spec = SPECS[SPEC]
    spec = replace(spec, tiny={**text, "vision_config": {**spec.config["vision_config"], **vision}})
    config = config_of(spec, "tiny")
    roles = {spec.file_name(name): (name, role) for name, role in tensors(spec, config).items()}
    shapes = {name: ("BF16", role.shape) for name, (_, role) in roles.items()}
    write_tensors(folder / "model.safetensors", shapes, lambda name: _to_bfloat16(draw(roles[name][1], name, 0)))
    write_json(folder / "config.json", config)
    write_json(folder / "preprocessor_config.json", spec.processor)
    return folder


def _to_bfloat16(x: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + (0x7FFF + (bits >> 16 & 1))) >> 16).astype(np.uint16)


def _tensors(base: Path) -> Iterator[tuple[str, np.ndarray]]:
    """The names and the arrays of a checkpoint in bfloat16, one after the other."""
    source = open_weights(base)
    for name in source.names():
        raw: Any = source.read(name)
        yield name, (np.asarray(raw.array).astype(np.uint32) << 16).view(np.float32)


def _write_rounded(base: Path, texts: Path, names: dict[str, str], path: Path) -> None:
    """Write the checkpoint, the matrices in `names` as those that the GGUF file has under these names."""
    import gguf

    from zoo.weights.safetensors import write_tensors

    source = open_weights(base)
    packed = {one.name: one for one in gguf.GGUFReader(texts).tensors}

    def array_of(name: str) -> np.ndarray:
        if name not in names:
            raw: Any = source.read(name)
            return raw.array
        one = packed[names[name]]
        return _to_bfloat16(gguf.quants.dequantize(one.data, one.tensor_type))

    write_tensors(path, {name: ("BF16", source.shape(name)) for name in source.names()}, array_of)


def _write_texts(base: Path, config: dict[str, Any], path: Path) -> dict[str, str]:
    """Write the decoder's file -> the names there of its matrices in Q4_0."""
    import gguf

    from zoo.apps.gguf_export.k_blocks import encode

    writer = gguf.GGUFWriter(path, "qwen2vl")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_sections([*config["rope_scaling"]["mrope_section"], 0])
    _add_words(writer, config)
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2VL, config["num_hidden_layers"])
    names: dict[str, str] = {}
    for name, x in _tensors(base):
        if name.startswith("visual."):
            continue
        found = str(table.get_name(name, try_suffixes=(".weight", ".bias")))
        if x.ndim == 1:
            writer.add_tensor(found, x.copy())
        elif "embed_tokens" in name:
            parts = (np.ascontiguousarray(x[i : i + 4096]) for i in range(0, len(x), 4096))
            is_whole = x.shape[1] % 256 == 0
            kind = gguf.GGMLQuantizationType["Q6_K" if is_whole else "Q8_0"]
            rows = [encode(part, "Q6_K") if is_whole else gguf.quants.quantize(part, kind) for part in parts]
            writer.add_tensor(found, np.concatenate(rows), raw_dtype=kind)
        else:
            kind, names[name] = gguf.GGMLQuantizationType.Q4_0, found
            writer.add_tensor(found, gguf.quants.quantize(np.ascontiguousarray(x), kind), raw_dtype=kind)
    _finish(writer)
    return names


def _add_words(writer: Any, config: dict[str, Any]) -> None:
    """A vocabulary of bytes and made-up words, with Qwen's marks around images in their places."""
    from tokenizers.pre_tokenizers import ByteLevel

    letters, count = sorted(ByteLevel.alphabet()), config["vocab_size"]
    tokens, kinds = [*letters, *(f"madeupword{i}" for i in range(count - len(letters)))], [1] * count
    marks = {"image_token_id": "<|image_pad|>", "vision_start_token_id": "<|vision_start|>"}
    marks |= {"vision_end_token_id": "<|vision_end|>", "bos_token_id": "<|endoftext|>", "eos_token_id": "<|im_end|>"}
    for field, text in marks.items():
        tokens[config[field]], kinds[config[field]] = text, 3
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([f"{letters[0]} {letters[1]}"])
    writer.add_eos_token_id(config["eos_token_id"])


def _write_encoder(base: Path, config: dict[str, Any], path: Path, kind: str) -> None:
    import gguf

    vision = config["vision_config"]
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type("qwen2.5vl_merger")
    writer.add_vision_use_silu(True)
    writer.add_vision_n_wa_pattern(vision["fullatt_block_indexes"][0] + 1)
    writer.add_vision_projection_dim(config["hidden_size"])
    writer.add_vision_image_size(560)
    writer.add_vision_patch_size(vision["patch_size"])
    writer.add_vision_embedding_length(vision["hidden_size"])
    writer.add_vision_feed_forward_length(vision["intermediate_size"])
    writer.add_vision_block_count(vision["depth"])
    writer.add_vision_head_count(vision["num_heads"])
    writer.add_vision_attention_layernorm_eps(1e-6)
    writer.add_vision_image_mean([0.48145466, 0.4578275, 0.40821073])
    writer.add_vision_image_std([0.26862954, 0.26130258, 0.27577711])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, max(vision["depth"], 3))  # mm.2

    def put(name: str, x: np.ndarray) -> None:
        found = str(names.get_name(name, try_suffixes=(".weight", ".bias")))
        own = gguf.GGMLQuantizationType[kind if x.shape[-1] % 32 == 0 else "F16"]
        if x.ndim == 1:
            writer.add_tensor(found, x.copy())
        else:
            writer.add_tensor(found, gguf.quants.quantize(np.ascontiguousarray(x), own), raw_dtype=own)

    for name, x in _tensors(base):
        if "patch_embed" in name:
            for i, end in enumerate((".weight", ".weight.1")):  # the two frames
                writer.add_tensor(f"v.patch_embd{end}", x[:, :, i].astype(np.float16))
        elif ".qkv." in name:
            for part, letter in zip(np.split(x, 3), "qkv", strict=True):
                put(name.replace("qkv", letter), part)
        elif name.startswith("visual."):
            put(name, x)
    _finish(writer)


def _finish(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    raise SystemExit(main())
