"""CLAP: what only it has, what it refuses, and its features and tasks against transformers'."""

from __future__ import annotations

import json
from unittest import mock

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.audio import reader
from zoo.audio.clap import SoundExtractor
from zoo.errors import BatchError, ConfigError, InputError, UnsupportedError
from zoo.files.folder import CheckpointFolder
from zoo.models.clap import ClapAudioConfig, ClapConfig

LABELS = ["a dog", "rain", "the old town by the river"]
RATE = 15936  # of the small checkpoints


def noise(count, seed=0):
    return (np.random.default_rng(seed).standard_normal(count) * 0.1).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`folder(spec)`: a checkpoint, made once."""
    made = {}

    def of(spec):
        if spec not in made:
            made[spec] = build(spec, tmp_path_factory.mktemp("clap") / spec)
        return made[spec]

    return of


@pytest.fixture
def same_parts():
    """transformers takes the parts that zoo does."""
    first, middle = lambda *_: 0, lambda places: places[len(places) // 2]
    with mock.patch("numpy.random.randint", first), mock.patch("numpy.random.choice", middle):
        yield


@pytest.mark.parametrize("padding", ["repeatpad", "repeat", "pad"])
@pytest.mark.parametrize("truncation", ["rand_trunc", "fusion"])
def test_features_are_those_of_transformers(tmp_path, same_parts, truncation, padding):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    raw = {"feature_extractor_type": "ClapFeatureExtractor", "truncation": truncation, "padding": padding}
    raw |= {"sampling_rate": 8000, "max_length_s": 2, "hop_length": 80, "fft_window_size": 256, "frequency_min": 50}
    raw |= {"frequency_max": 3500.5}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(raw))
    ours = SoundExtractor.from_folder(CheckpointFolder(tmp_path))
    theirs = transformers.ClapFeatureExtractor.from_pretrained(tmp_path)
    for count in (1, 129, 5333, 15_999, 16_000, 16_001, 16_079, 16_080, 16_160, 16_240, 31_999, 70_007, 300_000):
        x = noise(count) * np.linspace(0, 1, count, dtype=np.float32)
        wanted = theirs([x], sampling_rate=8000, return_tensors="np")["input_features"][0]
        found, is_whole = ours(reader(x, 8000))
        assert (found.dtype, found.shape) == (np.float32, (4 if truncation == "fusion" else 1, 64, 201))
        assert is_whole == (truncation == "fusion" or count <= 16_000)
        np.testing.assert_allclose(found, np.asarray(wanted).transpose(0, 2, 1), rtol=0, atol=2e-5)


def test_a_long_sound_is_read_in_blocks():
    """The frames of a sound of many windows are the same whatever the blocks it comes in."""
    ours = SoundExtractor(sampling_rate=8000, max_length_s=1, hop_length=100, fft_window_size=256, frequency_max=4000)
    x = noise(123_457)
    whole, _ = ours(lambda: iter([x]))
    for size in (333, 8000, 8001):
        found, _ = ours(lambda size=size: (x[at : at + size] for at in range(0, len(x), size)))
        np.testing.assert_array_equal(found, whole)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"feature_extractor_type": "ASTFeatureExtractor"}, "expected 'ClapFeatureExtractor'"),
        ({"truncation": "middle"}, "truncation = 'middle', expected one of fusion, rand_trunc"),
        ({"padding": 3}, "padding = 3, expected one of repeatpad"),
        ({"hop_length": 0}, "hop_length = 0, expected a whole number"),
        ({"hop_length": 700}, "expected an even window"),
        ({"fft_window_size": 1023}, "expected an even window"),
        ({"frequency_min": 14_000}, "frequencies that rise"),
        ({"frequency_max": "high"}, "frequency_max = 'high', expected a number"),
        ({"max_length_s": 10_000}, "take more than"),
        ({"padding_value": 1.0}, "padding_value = 1.0 is not implemented"),
    ],
)
def test_feature_extractors_that_are_refused(tmp_path, change, says):
    raw = {"feature_extractor_type": "ClapFeatureExtractor", **change}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(raw))
    with pytest.raises((ConfigError, UnsupportedError), match=says):
        SoundExtractor.from_folder(CheckpointFolder(tmp_path))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"num_mel_bins": 60}, "num_mel_bins = 60 does not divide spec_size = 256"),
        ({"enable_fusion": True, "fusion_type": "channel_map"}, "fusion_type = 'channel_map' is not implemented"),
        ({"flatten_patch_embeds": False}, "flatten_patch_embeds = False"),
        ({"patch_embed_input_channels": 2}, "patch_embed_input_channels = 2"),
        ({"hidden_size": 512}, "the last stage has a width of 768"),
        ({"depths": [2, 2]}, "depths = .* differ"),
        ({"num_attention_heads": [5, 8, 16, 32]}, "does not divide patch_embeds_hidden_size"),
        ({"patch_stride": 8}, "smaller than patch_stride"),
        ({"patch_size": 7}, "do not fill it"),
        ({"spec_size": 128}, "less than window_size"),
        ({"window_size": 0}, "window_size = 0"),
        ({"mlp_ratio": 0.0}, "mlp_ratio = 0.0"),
        ({"aff_block_r": 97}, "leave no features"),
    ],
)
def test_configs_that_are_refused(change, says):
    with pytest.raises((ConfigError, UnsupportedError), match=says):
        ClapAudioConfig.from_dict(change)


def test_the_projections_are_those_of_the_whole_config():
    config = ClapConfig.from_dict({"projection_dim": 16, "text_config": {"projection_dim": 32}})
    assert (config.text_config.projection_dim, config.audio_config.projection_dim) == (16, 16)
    with pytest.raises(ConfigError, match="audio_config is 3"):
        ClapConfig.from_dict({"audio_config": 3})


def test_shapes_and_is_longer(folder):
    model = zoo.load_model(folder("clap-htsat-fused"))
    given = model.example(rows=2)
    x, ids = given["input_features"], given["input_ids"]
    fused = model(ids, x).audio_embeds
    np.testing.assert_array_equal(model(ids, x, is_longer=np.ones((2, 1), bool)).audio_embeds, fused)
    mixed = model(ids, x, is_longer=np.array([True, False])).audio_embeds
    np.testing.assert_allclose(mixed[0], fused[0], atol=1e-6)
    assert np.abs(mixed[1] - fused[1]).max() > 1e-4
    with pytest.raises(InputError, match=r"expected views of mel bins and frames, \(sounds, 4, 16, 1 ... 256\)"):
        model(ids, x[:, :1])
    with pytest.raises(InputError, match="frames"):
        model(ids, np.zeros((1, 4, 16, 257), np.float32))
    with pytest.raises(InputError, match="is_longer"):
        model(ids, x, is_longer=np.ones(3, bool))
    with pytest.raises(InputError, match="ClapModel takes no pixel_values"):
        model(ids, x, pixel_values=x)
    with pytest.raises(InputError, match="takes no is_longer"):
        zoo.load_model(folder("clap-htsat-unfused"))(ids, x[:, :1], is_longer=np.ones(2, bool))


@pytest.mark.parametrize("frames", [1, 2, 100, 255, 256])
def test_spectrograms_of_any_length(folder, frames):
    """Up to the longest they are stretched, as in transformers."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    path = folder("clap-audio-projection")
    theirs, x = transformers.ClapAudioModelWithProjection.from_pretrained(path), 30 * noise(2 * 16 * frames)
    x = x.reshape(2, 1, 16, frames)
    with torch.no_grad():
        wanted = theirs.eval()(torch.from_numpy(x).transpose(2, 3))
    found = zoo.load_model(path)(x)
    np.testing.assert_allclose(found.audio_embeds, wanted.audio_embeds, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.last_hidden_state.transpose(0, 3, 1, 2), wanted.last_hidden_state, atol=1e-4)


@pytest.mark.parametrize("spec", ["clap-htsat-unfused", "clap-htsat-fused"])
def test_zero_shot_and_vectors_are_those_of_transformers(folder, same_parts, spec):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    path = folder(spec)
    pipe = transformers.pipeline("zero-shot-audio-classification", str(path), device="cpu")
    zero_shot, embed = zoo.load(path), zoo.load(path, task="embed")
    sounds = [noise(40), noise(9000, seed=1), *([noise(40_000)] if spec.endswith("unfused") else [])]
    for sound in sounds:  # transformers fuses 64 mel bins alone
        for template in ("This is a sound of {}.", "{}"):
            wanted = pipe(sound, candidate_labels=LABELS, hypothesis_template=template)
            found = zero_shot({"array": sound, "sampling_rate": RATE}, ",".join(LABELS), hypothesis_template=template)
            assert [one.label for one in found] == [one["label"] for one in wanted]
            np.testing.assert_allclose([one.score for one in found], [one["score"] for one in wanted], rtol=1e-4)
    vectors = embed([*sounds, "rain"])
    assert vectors.shape == (len(sounds) + 1, 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(embed.texts("rain"), vectors[-1], atol=1e-6)
    np.testing.assert_allclose(embed.similarity(sounds, "rain")[:, 0], vectors[:-1] @ vectors[-1], atol=1e-5)
    assert embed.semantic_search("rain", sounds, top_k=1)[0][0].corpus_id == np.argmax(vectors[:-1] @ vectors[-1])
    with pytest.raises(InputError, match="vectors of sounds and texts always have length 1"):
        embed.encode(sounds, normalize_embeddings=False)


def test_sounds_that_cannot_be_used(folder):
    zero_shot = zoo.load(folder("clap-htsat-unfused"))
    with pytest.raises(InputError, match="has 0 samples"):
        zero_shot(np.zeros(0, np.float32), LABELS)
    with pytest.raises(InputError, match="expected finite floats"):
        zero_shot(np.full(100, np.nan, np.float32), LABELS)
    with pytest.raises(InputError, match="sampling_rate 8000, expected 15936"):
        zero_shot({"array": noise(100), "sampling_rate": 8000}, LABELS)
    with pytest.raises(BatchError) as caught:
        zero_shot([noise(500), noise(0), "none.wav", noise(700)], LABELS, batch_size=2)
    assert [isinstance(one, list) for one in caught.value.results] == [True, False, False, True]
    with pytest.warns(UserWarning, match="1 of 2 recordings are longer than 1 s, and were cut there"):
        zero_shot([noise(500), noise(RATE + 1)], LABELS)


@pytest.mark.parametrize(("rate", "layout"), [(8000, "mono"), (96_000, "7.1"), (44_100, "hexadecagonal")])
def test_files_of_any_rate_and_channels(folder, tmp_path, rate, layout):
    av = pytest.importorskip("av", reason="needs PyAV, which reads files")
    path = tmp_path / "sound.wav"
    with av.open(str(path), "w") as file:
        stream = file.add_stream("pcm_s16le", rate=rate, layout=layout)
        channels = stream.codec_context.layout.nb_channels
        samples = np.tile((3000 * noise(rate // 2)).astype(np.int16)[:, None], (1, channels)).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(samples, format="s16", layout=layout)
        frame.sample_rate = rate
        for one in (frame, None):
            file.mux(stream.encode(one))
    embed = zoo.load(folder("clap-htsat-unfused"), task="embed")
    assert np.isfinite(embed([str(path), path.read_bytes(), "a dog"])).all()


def test_saved_and_read_again(folder, tmp_path):
    embed = zoo.load(folder("clap-htsat-fused"), task="embed")
    again = zoo.load(zoo.save(embed, tmp_path / "saved"), task="embed")
    np.testing.assert_array_equal(again([noise(700), "rain"]), embed([noise(700), "rain"]))
    changed = zoo.load_model(folder("clap-htsat-unfused"))
    with pytest.raises(ConfigError, match="4 views of 16 bins x 250 frames, and the model reads 1 of 16"):
        type(again)(changed, again.features, again.tokenizer)


def test_one_side_alone(folder):
    texts = zoo.load(folder("clap-text-projection"))
    assert texts(["the old town", "rain"]).shape == (2, 32)
    both = zoo.load_model(folder("clap-htsat-unfused"))
    ids, x = np.array([[0, 9, 8, 2]]), both.example(rows=1)["input_features"]
    states = both.audio_model(x)
    assert states.last_hidden_state.shape == (1, 2, 32, 32)
    np.testing.assert_allclose(states.last_hidden_state.mean((1, 2)), states.pooler_output, atol=1e-5)
    assert both.text_model(ids).pooler_output.shape == (1, 48)
