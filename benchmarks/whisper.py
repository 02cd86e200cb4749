"""A minute of speech through Whisper base on the CPU: zoo on ONNX Runtime, faster-whisper and transformers.

    python -m benchmarks.whisper --python VENV/bin/python    # writes results/whisper-<processor>-<date>.json
    python -m benchmarks.whisper --rounds 1 --json out.json

--python: the interpreter of an environment with faster-whisper (and transformers and torch, which convert the
checkpoint for it); by default this one.  The speech is espeak-ng's.  Weights are random, in whisper-base's layout, so
that no side can be faster by hearing less: each of the two windows is given 100 tokens, without times and with greedy
choice.  How many words came out is recorded; which ones is not compared, as the libraries scale a spectrogram by the
loudest frame of different parts.  Each contender is timed in a process of its own, from a sound file to the text, after
a first run; loading is not counted.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import harness
from .checkpoints import of_spec, once

TARGETS = {"faster-whisper": 1.2, "transformers": 0.6}
SECONDS, TOKENS = 60, 100
LANGUAGES = 99
CHILD = """
import json, sys, time
folder, sound, threads, seconds, tokens = sys.argv[1:3] + list(map(int, sys.argv[3:]))
%s
read()
wall, cpu = time.perf_counter(), time.process_time()
text = read()
found = dict(wall=time.perf_counter() - wall, cpu=time.process_time() - cpu, text=text)
import resource
found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps(found))
"""
# No token of the end, so that each writes as many.
CONTENDERS = {
    "zoo": """
import zoo
zoo.set_num_threads(threads)
transcribe = zoo.load(folder, device="onnx")
transcribe.generation = transcribe.generation.replace(max_new_tokens=tokens)
transcribe.rules = type(transcribe.rules)(transcribe.generation, transcribe.begin, transcribe.config.eos_token_id)
options = dict(temperature=0, compression_ratio_threshold=None, logprob_threshold=None, no_speech_threshold=None)
def read():
    return transcribe(sound, language="en", timestamps=False, **options).text
""",
    "faster-whisper": """
from faster_whisper import WhisperModel
model = WhisperModel(folder + "/ct2", device="cpu", compute_type="float32", cpu_threads=threads)
options = dict(compression_ratio_threshold=None, log_prob_threshold=None, no_speech_threshold=None, beam_size=1)
ends = model.hf_tokenizer.get_vocab_size() - 1608
def read():
    found, _ = model.transcribe(
        sound, language="en", without_timestamps=True, condition_on_previous_text=False, temperature=0,
        # CTranslate2 writes at most half of what prompt and new tokens may have together.
        suppress_tokens=list(range(ends, ends + 1608)), suppress_blank=False, max_new_tokens=2 * tokens - 2, **options,
    )
    return "".join(one.text for one in found).strip()
""",
    "transformers": """
import torch
from transformers import pipeline
torch.set_num_threads(threads)
pipe = pipeline("automatic-speech-recognition", folder, device="cpu", dtype=torch.float32)
options = dict(language="en", task="transcribe", max_new_tokens=tokens)
import av, numpy as np
def samples():
    with av.open(sound) as file:
        frames = [f.to_ndarray() for g in [av.AudioResampler("flt", "mono", 16000)] for one in file.decode(audio=0)
                  for f in g.resample(one)]
    return np.concatenate(frames, 1)[0]
def read():
    return pipe(samples(), chunk_length_s=30, stride_length_s=0, generate_kwargs=options)["text"].strip()
""",
}


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    environment = harness.start(args, torch_too=False)
    threads = environment["threads"]
    folder = once(args.cache / "whisper-base-spoken", lambda partial: _checkpoint(partial, args.cache, args.python))
    if args.prepare:
        return 0
    sound = _spoken(args.cache / "speech.wav")
    runs: dict[str, list[Any]] = {name: [] for name in CONTENDERS}
    for name in harness.in_turns(list(CONTENDERS), args.rounds):
        python = args.python if name == "faster-whisper" else sys.executable
        given = (str(folder), str(sound), *map(str, (threads, SECONDS, TOKENS)))
        runs[name].append(harness.run_python(CHILD % CONTENDERS[name], *given, python=python))
        print(f"{name}: {runs[name][-1]['wall']:.2f} s, {runs[name][-1]['cpu']:.2f} s of the CPU", flush=True)
    row: dict[str, Any] = {"row": f"whisper-base, {SECONDS} s of speech, {2 * TOKENS} tokens"}
    texts = {name: of[0].pop("text").split() for name, of in runs.items()}
    row["words"] = {name: len(words) for name, words in texts.items()}
    row |= harness.compare({name: [run[args.clock] for run in of] for name, of in runs.items()}, TARGETS)
    print(f"words: {row['words']}")
    harness.print_rows([row], args.rounds)
    harness.finish("whisper", args, {"environment": environment, "rounds": args.rounds, "rows": [row], "runs": runs})
    return 0


def _spoken(path: Path) -> Path:
    """A minute of espeak-ng's speech, written on first use."""
    import wave

    if path.is_file():
        return path
    text = (Path(__file__).parent.parent / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    whole = path.with_suffix(".whole")
    subprocess.run(["espeak-ng", "-s", "150", "-w", str(whole), text], check=True)
    with wave.open(str(whole)) as file, wave.open(str(path.with_suffix(".part")), "wb") as out:
        out.setparams(file.getparams())
        out.writeframes(file.readframes(SECONDS * file.getframerate()))
    whole.unlink()
    path.with_suffix(".part").rename(path)
    return path


def _checkpoint(partial: Path, cache: Path, python: str) -> Path:
    """whisper-base with the names of its special tokens at their places, and its conversion for CTranslate2."""
    import json

    shutil.copytree(of_spec("whisper-base", cache, "full"), partial, dirs_exist_ok=True)
    (partial / "tokenizer.json").unlink(missing_ok=True)
    config = json.loads((partial / "config.json").read_text())
    end = config["eos_token_id"]
    names = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", *(f"<|x{i:02}|>" for i in range(1, LANGUAGES))]
    names += ["<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
    names += [f"<|{i * 0.02:.2f}|>" for i in range(1501)]
    _write_tokenizer(partial, end, names)
    ids = {name: end + i for i, name in enumerate(names)}
    generation = json.loads((partial / "generation_config.json").read_text())
    generation |= {"lang_to_id": {"<|en|>": ids["<|en|>"], "<|x01|>": ids["<|x01|>"]}, "is_multilingual": True}
    generation |= {"task_to_id": {name: ids[f"<|{name}|>"] for name in ("transcribe", "translate")}}
    generation |= {"no_timestamps_token_id": ids["<|notimestamps|>"], "begin_suppress_tokens": []}
    generation |= {"suppress_tokens": list(range(end, config["vocab_size"])), "return_timestamps": False}
    (partial / "generation_config.json").write_text(json.dumps(generation))
    convert = (
        "import sys; from ctranslate2.converters import TransformersConverter as C; "
        "C(sys.argv[1], copy_files=['tokenizer.json', 'preprocessor_config.json']).convert(sys.argv[1] + '/ct2')"
    )
    subprocess.run([python, "-c", convert, str(partial)], check=True)
    return partial


def _write_tokenizer(folder: Path, words: int, names: list[str]) -> None:
    """A vocabulary of letters and words, with special tokens after them."""
    import json

    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: i for i, token in enumerate([*letters, *(f"Ġw{i}" for i in range(words - len(letters)))])}
    made = Tokenizer(models.BPE(vocab, []))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(False), decoders.ByteLevel()
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    made.save(str(folder / "tokenizer.json"))
    stated = {
        "tokenizer_class": "WhisperTokenizer",
        "eos_token": names[0],
        "bos_token": names[0],
        "unk_token": names[0],
    }
    (folder / "tokenizer_config.json").write_text(json.dumps({**stated, "pad_token": names[0]}))
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "merges.txt").write_text("#version: 0.2\n")


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("whisper", __doc__, rounds=3)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has faster-whisper")
    parser.add_argument("--prepare", action="store_true", help="write the checkpoints, and time nothing")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
