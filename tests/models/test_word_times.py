"""The times of words: Whisper's alignment heads, the path through time and the words, against transformers."""

from __future__ import annotations

import itertools
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.vocabularies import write_json
from zoo.apps.batch.results import columns_of
from zoo.errors import ConfigError, InputError
from zoo.generate.speech import DecodedWindows
from zoo.generate.word_times import filter_median, warp_time, words_of
from zoo.typing import RawTensor
from zoo.weights.safetensors import SafetensorsFile, write_safetensors


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A checkpoint whose cross-attention is sharp, so that no two paths through time cost nearly the same."""
    folder = build("whisper-base", tmp_path_factory.mktemp("whisper"))
    (path,) = folder.glob("*.safetensors")
    file = SafetensorsFile(path)
    scales = {name: 30 if "encoder_attn.q_proj.weight" in name else 1 for name in file.names()}
    write_safetensors(path, {name: RawTensor(scale * file.read(name).array, "F32") for name, scale in scales.items()})
    return folder


@pytest.fixture(scope="module")
def reference(folder):
    pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    return transformers.WhisperForConditionalGeneration.from_pretrained(folder, attn_implementation="eager").eval()


@pytest.fixture(scope="module")
def combine_words(folder):
    """Tokens and a language's name -> transformers' words and the places of their tokens."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    from transformers.models.whisper.tokenization_whisper import _combine_tokens_into_words

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)  # of another class, which knows no words
    decode = lambda ids, **_: tokenizer.decode(ids)
    like_whisper = SimpleNamespace(decode=decode, eos_token_id=438, language=None)

    def combine(tokens, language):
        words, _, places = _combine_tokens_into_words(like_whisper, tokens, language)
        return list(zip(words, places, strict=True))

    return combine


def noise(count, seed=0):
    recording = 0.3 * np.sin(np.arange(count) ** 1.2 / 40) + np.random.default_rng(seed).normal(0, 0.05, count)
    return recording.astype(np.float32)


def ids_of(tokenizer, text):
    """The ids of a text alone."""
    return [token for token in tokenizer([text], truncation=False).input_ids[0].tolist() if 3 < token < 438]


def cheapest(costs):
    """The total of the cheapest path, by trying all."""
    T, M = costs.shape
    if (T, M) == (1, 1):
        return costs[0, 0]
    before = [costs[: T - a, : M - b] for a, b in ((1, 1), (1, 0), (0, 1)) if a < T and b < M]
    return costs[-1, -1] + min(map(cheapest, before))


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 1), (4, 6), (5, 3)])
def test_the_path_is_the_cheapest(shape):
    costs = np.random.default_rng(1).normal(size=shape)
    rows, columns = warp_time(costs)
    steps = {(a, b) for a, b in zip(np.diff(rows), np.diff(columns), strict=True)}
    assert steps <= {(0, 1), (1, 0), (1, 1)}
    assert (rows[0], columns[0], rows[-1], columns[-1]) == (0, 0, shape[0] - 1, shape[1] - 1)
    assert costs[rows, columns].sum() == pytest.approx(cheapest(costs), rel=1e-5)


@pytest.mark.parametrize(("length", "width"), [(3, 7), (4, 7), (30, 7), (9, 1), (12, 3)])
def test_medians(length, width):
    x, half = np.random.default_rng(2).normal(size=(2, length)), width // 2
    mirrored = np.pad(x, ((0, 0), (half, half)), mode="reflect") if length > half else None
    wanted = x if mirrored is None else [[np.median(r[i : i + width]) for i in range(length)] for r in mirrored]
    np.testing.assert_array_equal(filter_median(x, width), wanted)


@pytest.mark.parametrize("states", [50, 31, 2])
def test_tokens_end_where_transformers_hears_their_ends(folder, reference, states):
    import torch
    from transformers.generation.utils import GenerateEncoderDecoderOutput

    transcribe, rng = zoo.load(folder), np.random.default_rng(states)
    features = np.stack([transcribe.features(noise(16000, seed)) for seed in range(2)])
    prompt, heads = [439, 440, 442], transcribe._alignment_heads()
    decoder = transcribe.pair.decoder
    cache = decoder.new_cache(2, 40)
    decoder.next_logits(np.full((2, 1), 439), None, cache, **transcribe.pair.context(features))
    for window, count in itertools.product(range(2), (1, 2, 9, 30)):
        tokens = rng.integers(5, 400, count).tolist()
        written = DecodedWindows([tokens] * 2, [prompt] * 2, dict(cache.cross))
        found = transcribe._token_states(written, window, heads, states)
        ids = torch.tensor([[*prompt, *tokens]])
        with torch.no_grad():
            x = torch.tensor(features[window : window + 1])
            attention = reference(x, decoder_input_ids=ids, output_attentions=True).cross_attentions
        outputs = GenerateEncoderDecoderOutput(sequences=ids, cross_attentions=(attention,))
        wanted = reference._extract_token_timestamps(
            outputs, [list(one) for one in heads], num_frames=2 * states, num_input_ids=len(prompt)
        )
        np.testing.assert_allclose(0.02 * found, wanted[0, len(prompt) : -1], atol=1e-6)


TEXTS = (
    ' And so, my fellow "Americans": ask (not) what your country can do... you!',
    " L'été 1999 -- 'quoted' - 50% naïve… 🙂 done",
    "今日は、いい天気。",
    "Hello",
    "  two  spaces ",
    "",
)


@pytest.mark.parametrize(("language", "name"), [("en", "english"), ("ja", "japanese"), (None, None)])
def test_words_are_those_of_transformers(folder, combine_words, language, name):
    tokenizer = zoo.load(folder).tokenizer
    for text in TEXTS:
        ids = ids_of(tokenizer, text)
        assert [tuple(one) for one in words_of(ids, tokenizer.decode, language)] == combine_words(ids, name)


def test_no_token_is_lost_where_a_character_is_broken(folder):
    tokenizer = zoo.load(folder).tokenizer
    broken = ids_of(tokenizer, " a 🙂")[:-1]
    found = words_of(broken, tokenizer.decode, "en")
    assert [i for one in found for i in one.at] == list(range(len(broken)))
    assert found[0].text == " a"


def test_words_and_their_times_are_those_of_generate(folder, reference, combine_words):
    import torch
    from transformers import WhisperFeatureExtractor

    transcribe, extractor = zoo.load(folder), WhisperFeatureExtractor.from_pretrained(folder)
    for seed in range(3):
        recording = noise(16000, seed)
        found = transcribe(recording, language="de", temperature=0, timestamps="word")
        assert found == transcribe(recording, language="de", temperature=0, word_timestamps=True)
        assert found[:3] == transcribe(recording, language="de", temperature=0)[:3]
        x = extractor(recording, sampling_rate=16000, return_tensors="pt", return_attention_mask=True)
        options = {"language": "de", "task": "transcribe", "return_timestamps": True, "return_segments": True}
        with torch.no_grad():
            segments = reference.generate(**x, **options, temperature=0.0, return_token_timestamps=True)["segments"][0]
        tokens = [token for one in segments for token in one["tokens"].tolist()]
        ends, wanted, at = [time for one in segments for time in one["token_timestamps"].tolist()], [], 0
        for one in segments:
            places = [i for i in range(at, at + len(one["tokens"])) if tokens[i] < 438]
            at += len(one["tokens"])
            for word, its in combine_words([tokens[i] for i in places], "german"):
                wanted.append((ends[places[its[0]] - 1], ends[places[its[-1]]], word))
        assert [one.text for one in found.words] == [word for *_, word in wanted]
        times = [(one.start, one.end) for one in found.words]
        np.testing.assert_allclose(times, [one[:2] for one in wanted], atol=1e-3)


@pytest.mark.parametrize("device", ["torch", "onnx"])
def test_words_on_other_engines(folder, device):
    pytest.importorskip(device.replace("onnx", "onnxruntime"), reason=f"needs {device}")
    recordings = [noise(16000, 4), noise(40000, 5), noise(900)]
    options = {"language": "en", "temperature": 0, "word_timestamps": True}
    wanted = zoo.load(folder)(recordings, **options)
    assert zoo.load(folder, device=device)(recordings, **options) == wanted
    assert wanted[1].words[-1].end > 1.1  # of a later window


@pytest.mark.parametrize(
    ("heads", "error", "says"),
    [
        (None, InputError, "need alignment_heads in generation_config.json, which has none"),
        ([], ConfigError, r"alignment_heads is \[\], expected pairs of a layer and a head, \[0, 0\] ... \[1, 3\]"),
        ("all", ConfigError, "alignment_heads is 'all'"),
        ([[0, 1], [2, 0]], ConfigError, "alignment_heads is"),
        ([[0, 1, 1]], ConfigError, "alignment_heads is"),
        ([[0, True]], ConfigError, "alignment_heads is"),
        ([[0, -1]], ConfigError, "alignment_heads is"),
        ([[0, 1], 3], ConfigError, "alignment_heads is"),
    ],
)
def test_heads_that_are_none(folder, tmp_path, heads, error, says):
    shutil.copytree(folder, tmp_path / "copy")
    file = tmp_path / "copy" / "generation_config.json"
    raw = json.loads(file.read_text())
    write_json(file, {name: value for name, value in {**raw, "alignment_heads": heads}.items() if value is not None})
    transcribe = zoo.load(tmp_path / "copy")
    assert transcribe(noise(900), temperature=0).words is None
    with pytest.raises(error, match=says):
        transcribe(noise(900), timestamps="word")


def test_a_filter_of_even_width_is_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    config = json.loads((folder / "config.json").read_text())
    write_json(tmp_path / "copy" / "config.json", {**config, "median_filter_width": 4})
    with pytest.raises(ConfigError, match="median_filter_width = 4, expected an odd number"):
        zoo.load(tmp_path / "copy")(noise(900), word_timestamps=True)


def test_results_have_words_where_they_are_asked_for(folder):
    transcribe = zoo.load(folder)
    plain, timed = (transcribe(noise(16000), temperature=0, word_timestamps=asked) for asked in (False, True))
    results = transcribe.results
    assert "words" not in results.json(plain)
    assert "words" not in results.row(plain)
    assert results.row(timed)["words"] == [one._asdict() for one in timed.words]
    assert [text for _, text in results.lines(timed)] == [one.text.strip() for one in timed.words]
    assert len(results.lines(plain)) == len(plain.segments)
    for options in ({"word_timestamps": True}, {"timestamps": "word"}):
        assert [*columns_of(results, options)] == ["text", "language", "segments", "duration", "words", "error"]
    assert [*columns_of(results, {"timestamps": True})] == ["text", "language", "segments", "duration", "error"]
    assert "<td>" in timed._repr_html_()
