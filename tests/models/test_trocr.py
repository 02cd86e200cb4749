"""TrOCR against transformers, on checkpoints that transformers itself wrote."""

from __future__ import annotations

import json

import numpy as np
import pytest
from vision_checkpoints import DEVICES, pixels, rename, torch, transformers

import zoo
from zoo import ops
from zoo.checkpoint.config_file import read_config
from zoo.errors import InputError
from zoo.loading import load_model
from zoo.models.trocr import TrOCRForCausalLM

ENCODER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 24,
    "patch_size": 4,
}
DECODER = {
    "vocab_size": 90,
    "d_model": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 20,
    "cross_attention_hidden_size": 32,
}
SINUSOIDAL = {
    "use_learned_position_embeddings": False,
    "scale_embedding": True,
    "layernorm_embedding": False,
    "activation_function": "relu",
    "tie_word_embeddings": False,
}
KINDS = {
    "base": ("ViT", {"qkv_bias": False}, {}),
    "small": ("DeiT", {}, {"scale_embedding": True, "activation_function": "relu", "tie_word_embeddings": False}),
    "stage1": ("ViT", {"qkv_bias": False}, SINUSOIDAL),
    "beit, projected": ("Beit", {"use_relative_position_bias": True}, {"cross_attention_hidden_size": None}),
    "vit, projected": ("ViT", {}, {**SINUSOIDAL, "cross_attention_hidden_size": None, "tie_word_embeddings": True}),
    "one width": ("ViT", {}, {"d_model": 32, "cross_attention_hidden_size": None, "layernorm_embedding": False}),
}
UNREPORTED = ("vit, projected", "one width")  # no checkpoint of the parity report, which compares the others on NumPy


def disturb(model):
    """Biases and norms away from 0 and 1; the table that version 5 leaves empty, filled."""
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    return model.eval()


def reader(folder, kind="base", **decoder):
    torch.manual_seed(0)
    family, encoder, own = KINDS[kind]
    encoder = getattr(transformers, family + "Config")(**ENCODER, **encoder)
    decoder = transformers.TrOCRConfig(**{**DECODER, **own, **decoder})
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    model = disturb(transformers.VisionEncoderDecoderModel(config))
    model.save_pretrained(folder)
    return model


def decoder_alone(folder, **config):
    torch.manual_seed(0)
    model = disturb(transformers.TrOCRForCausalLM(transformers.TrOCRConfig(**{**DECODER, **config})))
    model.save_pretrained(folder)
    return model


def ids(rng, rows=3, tokens=7):
    """No padding (1) among them."""
    return rng.integers(2, 90, (rows, tokens))


def theirs(model, **arrays):
    tensors = {k: torch.from_numpy(np.array(v)) for k, v in arrays.items()}
    if "pixel_values" in tensors:
        tensors["pixel_values"] = tensors["pixel_values"].permute(0, 3, 1, 2)
    with torch.no_grad():
        return model(**tensors, use_cache=False)


def close(found, wanted):
    """Within float32 rounding of a few layers, whose norms keep values near one."""
    found, wanted = ops.to_numpy(found), wanted.numpy()
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("kind", "device"), [*((kind, "torch:cpu") for kind in KINDS), *((kind, "cpu") for kind in UNREPORTED)]
)
def test_equals_transformers(kind, device, tmp_path, rng):
    model = reader(tmp_path, kind)
    ours = load_model(tmp_path, device=device, strict=True)
    x, given = pixels(rng, batch=3), ids(rng)
    found = ours(x, given)
    wanted = theirs(model, pixel_values=x, decoder_input_ids=given)
    close(found.logits, wanted.logits)
    close(found.encoder_last_hidden_state, wanted.encoder_last_hidden_state)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["base", "stage1"])
def test_padding(kind, device, tmp_path, rng):
    """Sinusoidal positions do not count padding, wherever it is; a mask hides it."""
    model = reader(tmp_path, kind)
    ours = load_model(tmp_path, device=device)
    x, given = pixels(rng, batch=3), ids(rng)
    given[0, 5:] = given[1, 2] = given[2, 3:5] = 1
    close(ours(x, given).logits, theirs(model, pixel_values=x, decoder_input_ids=given).logits)
    mask = given != 1
    found = ops.to_numpy(ours(x, given, mask).logits)
    wanted = theirs(model, pixel_values=x, decoder_input_ids=given, decoder_attention_mask=mask).logits
    close(found[mask], wanted[torch.from_numpy(mask)])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["base", "stage1", "beit, projected"])
def test_step_by_step(kind, device, tmp_path, rng):
    reader(tmp_path, kind)
    ours = load_model(tmp_path, device=device)
    x, given = pixels(rng, batch=3), ids(rng)
    whole = ops.to_numpy(ours(x, given).logits)
    cache, states = ours.new_cache(3, 7), ours.encode(x)
    found = [ours.next_logits(given[:, :3], None, cache, encoder_hidden_states=states)]
    keys = cache.cross[0][0]
    found += [ours.next_logits(given[:, t : t + 1], None, cache) for t in range(3, 7)]
    assert cache.cross[0][0] is keys  # projected once
    for t, logits in enumerate(found):
        np.testing.assert_allclose(ops.to_numpy(logits), whole[:, t + 2], rtol=0, atol=2e-5)
    with pytest.raises(InputError, match="has room for 7 tokens"):
        ours.next_logits(given[:, :1], None, cache)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["base", "stage1"])
def test_prompts_of_unequal_length(kind, device, tmp_path, rng):
    """Tokens on the right of a row's own have no effect, now or later."""
    reader(tmp_path, kind)
    ours = load_model(tmp_path, device=device)
    x, given, lengths = pixels(rng, batch=3), ids(rng), np.array([4, 1, 7])
    states, cache = ours.encode(x), ours.new_cache(3, 9)
    first = ops.to_numpy(ours.next_logits(given, lengths, cache, encoder_hidden_states=states))
    after = ops.to_numpy(ours.next_logits(np.full((3, 1), 5), None, cache))
    assert cache.counts.tolist() == [5, 2, 8]
    for row, n in enumerate(lengths):
        own = np.append(given[row, :n], 5)[None]
        alone = ops.to_numpy(ours(x[row : row + 1], own).logits)[0]
        np.testing.assert_allclose(first[row], alone[-2], rtol=0, atol=2e-5)
        np.testing.assert_allclose(after[row], alone[-1], rtol=0, atol=2e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_beams_share_an_image(device, tmp_path, rng):
    """Six rows, three of each image, give what six images would; and go on to when some leave."""
    reader(tmp_path)
    ours = load_model(tmp_path, device=device)
    x, given = pixels(rng), ids(rng, rows=6)
    wanted = ops.to_numpy(ours(np.repeat(x, 3, 0), given).logits)
    found = ops.to_numpy(ours(x, given).logits)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5)
    cache = ours.new_cache(6, 8)
    ours.next_logits(given[:, :6], None, cache, encoder_hidden_states=ours.encode(x))
    kept = np.array([4, 3, 5])  # of the second image, in another order
    cache.select(kept)
    found = ops.to_numpy(ours.next_logits(given[kept, 6:], None, cache))
    np.testing.assert_allclose(found, wanted[kept, 6], rtol=0, atol=2e-5)
    with pytest.raises(InputError, match="5 rows, which is not a multiple of the 2 rows in pixel_values"):
        ours(x, given[:5])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("config", [{}, SINUSOIDAL, {"cross_attention_hidden_size": None}])
def test_decoder_alone(config, device, tmp_path, rng):
    model = decoder_alone(tmp_path, **config)
    ours = load_model(tmp_path, device=device, strict=True)
    assert type(ours) is TrOCRForCausalLM
    given = ids(rng)
    close(ours(given), theirs(model, input_ids=given).logits)
    states = rng.standard_normal((3, 5, model.config.cross_attention_hidden_size or 24)).astype(np.float32)
    seen = np.arange(5) < [[5], [2], [3]]
    arrays = {"encoder_hidden_states": states, "encoder_attention_mask": seen}
    close(ours(given, **arrays), theirs(model, input_ids=given, **arrays).logits)


def test_other_image_sizes(tmp_path, rng):
    model = reader(tmp_path, "small")
    ours = load_model(tmp_path)
    x, given = pixels(rng, 36, 20), ids(rng, rows=2)
    with torch.no_grad():
        wanted = model(
            torch.from_numpy(x).permute(0, 3, 1, 2),
            decoder_input_ids=torch.from_numpy(given),
            interpolate_pos_encoding=True,
        )
    close(ours(x, given, interpolate_pos_encoding=True).logits, wanted.logits)
    with pytest.raises(InputError, match="interpolate_pos_encoding=True"):
        ours(x, given)


@pytest.mark.parametrize("kind", KINDS)
def test_names_in_memory(kind, tmp_path, rng):
    """Names of the encoder's parts in memory since version 5 are read; `layers` of the decoder keep their names."""
    model = reader(tmp_path, kind)
    x, given = pixels(rng, batch=3), ids(rng)
    wanted = load_model(tmp_path)(x, given).logits
    from safetensors.torch import save_file

    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}  # tied ones twice
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    np.testing.assert_allclose(load_model(tmp_path, strict=True)(x, given).logits, wanted, rtol=1e-5, atol=1e-6)


def test_tied_by_the_decoder(tmp_path):
    reader(tmp_path, "base")
    assert json.loads((tmp_path / "config.json").read_text())["tie_word_embeddings"] is False
    ours = load_model(tmp_path, strict=True)
    assert ours.decoder.head.weight is ours.decoder.base_model.embeddings.word
    reader(tmp_path, "small")
    ours = load_model(tmp_path, strict=True)
    assert ours.decoder.head.weight is not ours.decoder.base_model.embeddings.word


@pytest.mark.parametrize("kind", KINDS)
def test_strays_are_known(kind, tmp_path):
    reader(tmp_path, kind)
    from safetensors.numpy import load_file, save_file

    path = tmp_path / "model.safetensors"
    strays = {"decoder.base_model.decoder.embed_positions._float_tensor": np.zeros(1, np.float32)}
    save_file({**load_file(path), **strays}, path, {"format": "pt"})
    report = load_model(tmp_path, strict=True).report
    assert set(strays) <= set(report.ignored)
    assert {name.split(".")[1] for name in set(report.ignored) - set(strays)} <= {"pooler"}


@pytest.mark.parametrize(
    ("kind", "said", "told"),
    [
        ("small", "vit", r"position_embeddings has 38 = 6 x 6 \+ 2 rows: a DeiT encoder, and the config says vit"),
        ("base", "deit", r"position_embeddings has 37 = 6 x 6 \+ 1 rows: a ViT encoder, and the config says deit"),
        ("base", "beit", r"position_embeddings has 37 = 6 x 6 \+ 1 rows: a ViT encoder, and the config says beit"),
        ("beit, projected", "vit", r"a BEiT encoder\? \(the config says vit\)"),
    ],
)
def test_a_wrong_encoder_is_told(kind, said, told, tmp_path):
    reader(tmp_path, kind)
    change(tmp_path, encoder={"model_type": said})
    with pytest.raises(zoo.ZooError, match=told):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"encoder": {"model_type": "resnet"}}, "the encoder is of the model_type 'resnet', expected vit or"),
        ({"decoder": {"model_type": "gpt2"}}, "the decoder is of the model_type 'gpt2', expected trocr"),
        ({"decoder": {"cross_attention_hidden_size": 33}}, "= 33, but encoder.hidden_size = 32"),
        ({"decoder": {"d_model": 25}}, "decoder: decoder_attention_heads = 4 does not divide d_model = 25"),
        ({"decoder": {"decoder_layers": 10**6}}, "decoder: decoder_layers = 1000000 is out of range"),
        ({"decoder": {"activation_function": "gleu"}}, "'gleu' is not implemented; did you mean"),
        ({"decoder": {"vocab_size": 91}}, r"\(90, 24\), expected \(91, 24\) \(by decoder.vocab_size = 91"),
        ({"decoder": {"max_position_embeddings": 21}}, r"embed_positions.weight' has shape \(22, 24\), expected"),
        ({"decoder": {"tie_word_embeddings": False}}, "no tensor 'decoder.output_projection.weight'"),
        ({"decoder": {"use_learned_position_embeddings": False, "pad_token_id": None}}, "pad_token_id = None"),
        ({"decoder": None}, "decoder is None, expected the object"),
        ({"encoder": []}, r"encoder is \[\], expected the object"),
    ],
)
def test_bad_configs(changes, told, tmp_path):
    reader(tmp_path)
    change(tmp_path, **changes)
    with pytest.raises(zoo.ZooError, match=told):
        load_model(tmp_path)


def test_missing_projection(tmp_path):
    reader(tmp_path, "vit, projected")
    rename(tmp_path, lambda name: name.replace("enc_to_dec_proj", "projection"))
    with pytest.raises(zoo.ZooError, match=r"no tensor 'enc_to_dec_proj.weight'; did you mean .*'projection.weight'"):
        load_model(tmp_path)


def test_bad_inputs(tmp_path, rng):
    reader(tmp_path)
    ours = load_model(tmp_path)
    x, given = pixels(rng, batch=1), ids(rng, rows=1, tokens=21)
    with pytest.raises(InputError, match="21 tokens, but the checkpoint has positions for 20"):
        ours(x, given)
    with pytest.raises(InputError, match=r"input_ids must be in \[0, 90\), found 90 to 90"):
        ours(x, [[90]])
    with pytest.raises(InputError, match="needs encoder_hidden_states"):
        ours.next_logits([[2]], None, ours.new_cache(1, 3))
    with pytest.raises(InputError, match=r"encoder_hidden_states has shape \(1, 5, 31\)"):
        ours.decoder([[2]], encoder_hidden_states=np.zeros((1, 5, 31), np.float32))


def test_what_a_config_says_is_kept(tmp_path):
    reader(tmp_path, "small")
    raw = json.loads((tmp_path / "config.json").read_text())
    raw["encoder"]["max_length"] = raw["decoder"]["max_length"] = raw["max_length"] = 20
    (tmp_path / "config.json").write_text(json.dumps(raw))
    saved = read_config(tmp_path).to_dict()
    for part, written in ((raw, saved), (raw["encoder"], saved["encoder"]), (raw["decoder"], saved["decoder"])):
        assert {k: v for k, v in part.items() if k not in ("encoder", "decoder", "architectures")}.items() <= {
            k: v for k, v in written.items() if k not in ("encoder", "decoder")
        }.items()


def change(folder, **parts):
    path = folder / "config.json"
    raw = json.loads(path.read_text())
    for part, fields in parts.items():
        raw[part] = {**raw[part], **fields} if isinstance(fields, dict) else fields
    path.write_text(json.dumps(raw))
