"""Gemma 3, LLaVA and Qwen's models in two GGUF files, as llama.cpp's converters write them."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_gguf import add, finish, gguf, put, tensors_of, write_decoder, write_llama
from PIL import Image
from safetensors.numpy import save_file

import zoo
from tests.image_text_checkpoint import (
    TEMPLATE,
    write_gemma3_checkpoint,
    write_llava_checkpoint,
    write_qwen_vl_checkpoint,
)
from zoo.apps.cli import main
from zoo.errors import ConfigError, InputError, NotFoundError, UnsupportedError, WeightShapeError
from zoo.loading import load_model

IMAGES = ("model.vision_tower.", "model.multi_modal_projector.", "model.visual.", "visual.")


@pytest.fixture(scope="module")
def gemma3(tmp_path_factory) -> Path:
    folder = write_gemma3_checkpoint(tmp_path_factory.mktemp("gemma3") / "model")
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["query_pre_attn_scalar"] = config["text_config"]["head_dim"]  # as all but the largest have it
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def llava(tmp_path_factory) -> Path:
    return write_llava_checkpoint(tmp_path_factory.mktemp("llava") / "model")


@pytest.fixture(scope="module")
def qwen2_vl(tmp_path_factory) -> Path:
    return write_qwen_vl_checkpoint(tmp_path_factory.mktemp("qwen2") / "model")


@pytest.fixture(scope="module")
def qwen2_5_vl(tmp_path_factory) -> Path:
    folder = write_qwen_vl_checkpoint(tmp_path_factory.mktemp("qwen2.5") / "model", "Qwen2.5-VL-3B-Instruct")
    config = json.loads((folder / "config.json").read_text())
    config["vision_config"]["window_size"] = 112  # as all have it
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def write_texts(folder: Path, path: Path, place: str | None = None, json_of_it: bool = True, **more: Any) -> Path:
    """The decoder of a checkpoint.  place: a name for its token of images instead."""
    config = json.loads((folder / "config.json").read_text())
    text, alone = config.get("text_config", config), path.parent / "texts"
    shutil.rmtree(alone, ignore_errors=True)
    alone.mkdir(parents=True)
    theta = {"rope_theta": 1e6 if config["model_type"] == "gemma3" else 1e4, "rms_norm_eps": 1e-6}
    (alone / "config.json").write_text(json.dumps({**theta, **text}))
    words = (folder / "tokenizer.json").read_text()
    if place is not None:
        at = config.get("image_token_index", config.get("image_token_id"))
        token = next(one["content"] for one in json.loads(words)["added_tokens"] if one["id"] == at)
        words = words.replace(json.dumps(token), json.dumps(place))
    (alone / "tokenizer.json").write_text(words)
    tensors = {n.replace("model.language_model.", "model."): x for n, x in tensors_of(folder).items()}
    save_file({n: x for n, x in tensors.items() if not n.startswith(IMAGES)}, alone / "model.safetensors")
    end = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
    given = {"tokenizer__chat_template": TEMPLATE, "tokenizer__ggml__eos_token_id": end, **more}
    if json_of_it:
        given |= {"tokenizer__huggingface__json": words}
    given |= {"tokenizer__ggml__add_bos_token": False}
    if config["model_type"] == "gemma3":
        given["tokenizer__chat_template"] = TEMPLATE.replace("<image>", "<start_of_image>")
        given |= {"gemma3__attention__sliding_window": text["sliding_window"], "gemma3__rope__scaling__type": "linear"}
        given |= {"gemma3__attention__sliding_window_pattern": 3, "gemma3__rope__scaling__factor": 8.0}
        written = write_decoder(alone, path, "gemma3", tokens="bytes", **given)
    elif config["model_type"].startswith("qwen"):
        marks = "<|vision_start|><|image_pad|><|vision_end|>"
        given["tokenizer__chat_template"] = TEMPLATE.replace("<image>", marks)
        given["qwen2vl__rope__dimension_sections"] = [*text["rope_scaling"]["mrope_section"], 0]
        written = write_decoder(alone, path, "qwen2vl", tokens="bytes", **given)
    else:
        written = write_llama(alone, path, tokens="bytes", **given)
    shutil.rmtree(alone)
    return written


def _writer(folder: Path, path: Path, kind: str, epsilon: float) -> tuple[Any, dict[str, Any]]:
    config = json.loads((folder / "config.json").read_text())
    vision, processor = config["vision_config"], json.loads((folder / "preprocessor_config.json").read_text())
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type(kind)
    writer.add_vision_image_size(vision["image_size"])
    writer.add_vision_patch_size(vision["patch_size"])
    writer.add_vision_embedding_length(vision["hidden_size"])
    writer.add_vision_feed_forward_length(vision["intermediate_size"])
    writer.add_vision_head_count(vision["num_attention_heads"])
    writer.add_vision_attention_layernorm_eps(vision.get("layer_norm_eps", epsilon))
    writer.add_vision_image_mean(processor.get("image_mean", [0.5] * 3))
    writer.add_vision_image_std(processor.get("image_std", [0.5] * 3))
    return writer, config


def write_gemma3_images(folder: Path, path: Path, **more: Any) -> Path:
    """As convert_hf_to_gguf.py: the norm before the projection is 1 more, and 4 x 4 patches are the default."""
    writer, config = _writer(folder, path, "gemma3", 1e-6)
    vision = config["vision_config"]
    writer.add_vision_projection_dim(config["text_config"]["hidden_size"])
    writer.add_vision_block_count(vision["num_hidden_layers"])
    writer.add_vision_use_gelu(True)
    side = round(config["mm_tokens_per_image"] ** 0.5)
    writer.add_vision_projector_scale_factor(vision["image_size"] // vision["patch_size"] // side)
    add(writer, more)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, vision["num_hidden_layers"])
    for name, x in tensors_of(folder).items():
        if name.startswith(IMAGES):
            hub = name.removeprefix("model.").replace("vision_tower.", "vision_tower.vision_model.")
            found = names.get_name(hub.replace("_weight", ".weight"), try_suffixes=(".weight", ".bias"))
            put(writer, str(found), x + 1 if "soft_emb_norm" in name else x, "F32")
    return finish(writer, path)


def write_llava_images(folder: Path, path: Path, feature_layer: bool = True, **more: Any) -> Path:
    """As convert_image_encoder_to_gguf.py: without the last layer and norm, and with up and down confused."""
    writer, config = _writer(folder, path, "mlp", 1e-5)
    depth = config["vision_config"]["num_hidden_layers"] - 1
    writer.add_bool("clip.has_text_encoder", False)
    writer.add_bool("clip.has_llava_projector", True)
    writer.add_vision_projection_dim(config["vision_config"]["projection_dim"])
    writer.add_vision_block_count(depth)
    if feature_layer:
        writer.add_array("clip.vision.feature_layer", [depth])
    writer.add_bool("clip.use_gelu", False)
    add(writer, more)
    shorter = {"model.vision_tower.": "v.", "model.multi_modal_projector.linear_1": "mm.0", "encoder.layers": "blk"}
    shorter |= {"model.multi_modal_projector.linear_2": "mm.2", "embeddings.": "", "_proj": "", "self_attn.": "attn_"}
    shorter |= {"layer_norm": "ln", "mlp.fc1": "ffn_down", "mlp.fc2": "ffn_up", "embedding": "embd", "layrnorm": "ln"}
    for name, x in tensors_of(folder).items():
        if name.startswith(IMAGES) and f"layers.{depth}." not in name and "post_layernorm" not in name:
            for old, new in shorter.items():
                name = name.replace(old, new)
            put(writer, name, x, "F32")
    return finish(writer, path)


def write_qwen_images(folder: Path, path: Path, kind: str = "F32", **more: Any) -> Path:
    """As convert_hf_to_gguf.py: queries, keys and values apart, and the frames of the patches' weight."""
    config = json.loads((folder / "config.json").read_text())
    vision, processor = config["vision_config"], json.loads((folder / "preprocessor_config.json").read_text())
    text, windows = config.get("text_config", config), config["model_type"] == "qwen2_5_vl"
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type("qwen2.5vl_merger" if windows else "qwen2vl_merger")
    writer.add_vision_projection_dim(text["hidden_size"])
    writer.add_vision_image_size(560)
    writer.add_vision_patch_size(vision["patch_size"])
    writer.add_vision_embedding_length(vision["hidden_size" if windows else "embed_dim"])
    writer.add_vision_feed_forward_length(vision["intermediate_size" if windows else "hidden_size"])
    writer.add_vision_block_count(vision["depth"])
    writer.add_vision_head_count(vision["num_heads"])
    writer.add_vision_attention_layernorm_eps(1e-6)
    writer.add_vision_image_mean(processor["image_mean"])
    writer.add_vision_image_std(processor["image_std"])
    bounds = {"min": processor["size"]["shortest_edge"], "max": processor["size"]["longest_edge"]}
    for name, count in bounds.items():
        writer.add_uint32(f"clip.vision.image_{name}_pixels", count)
    if windows:
        writer.add_vision_use_silu(True)
        writer.add_vision_n_wa_pattern(vision["fullatt_block_indexes"][0] + 1)
    add(writer, more)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, max(vision["depth"], 3))

    def put_as(name: str, x: np.ndarray) -> None:
        put(writer, str(names.get_name(name, try_suffixes=(".weight", ".bias"))), x, kind)

    for name, x in tensors_of(folder).items():
        hub = name.removeprefix("model.")
        if "patch_embed" in name:
            for i, end in enumerate(("", ".1")):
                writer.add_tensor(f"v.patch_embd.weight{end}", np.ascontiguousarray(x[:, :, i]))
        elif ".qkv." in name:
            for part, letter in zip(np.split(x, 3), "qkv", strict=True):
                put_as(hub.replace("qkv", letter), part)
        elif name.startswith(IMAGES):
            put_as(hub, x)
    return finish(writer, path)


WRITERS = {"gemma3": write_gemma3_images, "llava": write_llava_images}
WRITERS |= dict.fromkeys(("qwen2_vl", "qwen2_5_vl"), write_qwen_images)


@pytest.mark.parametrize("family", WRITERS)
def test_both_files_are_the_checkpoint(family, request, tmp_path, rng):
    folder: Path = request.getfixturevalue(family)
    WRITERS[family](folder, tmp_path / "mmproj-m.gguf")
    ours, theirs = load_model(write_texts(folder, tmp_path / "m.gguf")), load_model(folder)
    given = theirs.example(rows=2)
    np.testing.assert_allclose(ours(**given), theirs(**given), rtol=1e-5, atol=1e-5)
    layers = [getattr(model.config.vision_config, "fullatt_block_indexes", None) for model in (ours, theirs)]
    assert layers[0] == layers[1]
    assert not ours.report.unused
    assert not ours.report.new
    image = rng.integers(0, 256, (60, 60, 3), np.uint8)
    read: Any = zoo.load(tmp_path / "m.gguf")
    wanted: Any = zoo.load(folder)
    np.testing.assert_array_equal(read.processor(image).pixel_values, wanted.processor(image).pixel_values)
    assert read(image, "What?", max_new_tokens=10) == wanted(image, "What?", max_new_tokens=10)
    zoo.save(read, tmp_path / "saved")
    again: Any = zoo.load(tmp_path / "saved")
    assert again(image, "What?", max_new_tokens=10) == wanted(image, "What?", max_new_tokens=10)


def test_the_layer_that_is_read_is_the_last_of_the_file(llava, tmp_path):
    write_llava_images(llava, tmp_path / "mmproj-m.gguf", feature_layer=False)
    ours, theirs = load_model(write_texts(llava, tmp_path / "m.gguf")), load_model(llava)
    given = theirs.example(rows=1)
    np.testing.assert_allclose(ours(**given), theirs(**given), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("family", "spare"), [("gemma3", "<unused7>"), ("llava", "<unk>")])
def test_a_spare_token_stands_for_images(family, spare, request, tmp_path, rng):
    folder: Path = request.getfixturevalue(family)
    WRITERS[family](folder, tmp_path / "mmproj-m.gguf")
    read: Any = zoo.load(write_texts(folder, tmp_path / "m.gguf", place=spare, json_of_it=False))
    shutil.copy(tmp_path / "mmproj-m.gguf", tmp_path / "mmproj-own.gguf")
    wanted: Any = zoo.load(write_texts(folder, tmp_path / "own.gguf", json_of_it=False))
    image = rng.integers(0, 256, (60, 60, 3), np.uint8)
    assert read(image, "What?", max_new_tokens=10) == wanted(image, "What?", max_new_tokens=10)
    with pytest.raises(ConfigError, match="which stands for an image"):
        load_model(write_texts(folder, tmp_path / "m.gguf", place="<other>", json_of_it=False))


@pytest.mark.parametrize("family", WRITERS)
def test_an_mmproj_of_another_name(family, request, tmp_path, rng):
    folder: Path = request.getfixturevalue(family)
    texts = write_texts(folder, tmp_path / "m.gguf")
    (tmp_path / "elsewhere").mkdir()
    path = WRITERS[family](folder, tmp_path / "elsewhere" / "projector.gguf")
    assert zoo.load(texts).name == "generate"
    read: Any = zoo.load(texts, mmproj=path)
    image = rng.integers(0, 256, (60, 60, 3), np.uint8)
    wanted: Any = zoo.load(folder)
    assert read(image, "What?", max_new_tokens=10) == wanted(image, "What?", max_new_tokens=10)


def test_commands_take_an_mmproj(llava, tmp_path, rng, capsys, monkeypatch):
    texts, path = write_texts(llava, tmp_path / "m.gguf"), write_llava_images(llava, tmp_path / "projector.gguf")
    image = tmp_path / "a.png"
    Image.fromarray(rng.integers(0, 256, (60, 60, 3), np.uint8)).save(image)
    wanted: Any = zoo.load(llava)
    common = [str(texts), "--mmproj", str(path), "--device", "cpu", "--max-new-tokens", "6"]
    main(["run", *common, "--json", str(image), "What?"])
    answer = wanted(image, "What?", max_new_tokens=6)
    assert json.loads(capsys.readouterr().out) == answer
    monkeypatch.setattr("sys.stdin", io.StringIO("What?\n"))
    main(["chat", *common, "--image", str(image)])
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in answer)
    assert capsys.readouterr().out.startswith(shown)
    reading = ["read", str(image), "--model", str(texts), "--device", "cpu", "--prompt", "What?"]
    assert main([*reading, "--mmproj", str(path), "--max-new-tokens", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert main(reading) == 1
    assert "named by --mmproj FILE" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["serve", str(texts), "stories260k", "--mmproj", str(path)])
    assert "--mmproj is for one NAME, and there are 2" in capsys.readouterr().err


def test_blocks_of_parts_are_joined(qwen2_vl, tmp_path):
    write_qwen_images(qwen2_vl, tmp_path / "mmproj-m.gguf", "Q8_0")
    packed, plain = load_model(write_texts(qwen2_vl, tmp_path / "m.gguf")), load_model(qwen2_vl)
    given = plain.example(rows=1)
    difference = np.abs(packed(**given) - plain(**given)).max()
    assert 1e-6 < difference < 0.3 * np.abs(plain(**given)).max()


def test_parts_that_make_no_tensor_are_said(qwen2_vl, tmp_path, monkeypatch):
    def put_wrong(writer: Any, name: str, x: np.ndarray, kind: str, right: Any = put) -> None:
        right(writer, name, x[:, :-8] if name == "v.blk.0.attn_k.weight" else x, kind)

    monkeypatch.setitem(globals(), "put", put_wrong)
    path = write_qwen_images(qwen2_vl, tmp_path / "p.gguf")
    with pytest.raises(WeightShapeError, match="these parts do not make one tensor"):
        load_model(write_texts(qwen2_vl, tmp_path / "m.gguf"), mmproj=path)


def test_texts_alone_are_a_qwen2(qwen2_vl, tmp_path):
    texts, whole = load_model(write_texts(qwen2_vl, tmp_path / "m.gguf")), load_model(qwen2_vl)
    assert texts.architecture == "Qwen2ForCausalLM"
    given = texts.example(rows=2)
    given["input_ids"] %= whole.config.image_token_id
    np.testing.assert_allclose(texts(**given), whole(**given), rtol=1e-5, atol=1e-5)


def test_a_server_takes_an_mmproj(llava, tmp_path):
    for package in ("starlette", "msgspec", "prometheus_client"):
        pytest.importorskip(package, reason=f"needs {package}, of the extra serve")
    from zoo.apps.serve.models import Models

    texts, path = write_texts(llava, tmp_path / "m.gguf"), write_llava_images(llava, tmp_path / "projector.gguf")
    models = Models([str(texts)], mmproj=str(path))
    models.load()
    assert [(one.kind, one.error) for one in models.all.values()] == [("image-text-to-text", None)]
    models.stop()


def test_without_an_mmproj_images_are_refused(llava, tmp_path, capsys, monkeypatch):
    texts, image = write_texts(llava, tmp_path / "m.gguf"), tmp_path / "a.png"
    Image.new("RGB", (60, 60)).save(image)
    hint = "beside it as mmproj-NAME.gguf or named by --mmproj FILE"
    with pytest.raises(UnsupportedError, match=hint):
        zoo.load(texts, task="image-text-to-text")
    assert main(["run", str(texts), str(image), "What?", "--device", "cpu"]) == 1
    assert "a.png is an image" in (said := capsys.readouterr().err)
    assert hint in said
    monkeypatch.setattr("sys.stdin", io.StringIO("What?\n"))
    assert main(["chat", str(texts), "--image", str(image), "--device", "cpu"]) == 1
    assert hint in capsys.readouterr().err


def test_an_mmproj_that_does_not_fit_is_an_error(gemma3, llava, tmp_path):
    texts = write_texts(llava, tmp_path / "m.gguf")
    other = write_gemma3_images(gemma3, tmp_path / "gemma.gguf")
    with pytest.raises(
        UnsupportedError, match="of gemma3 beside a llama is not implemented, only beside a gemma3_text"
    ):
        zoo.load(texts, mmproj=other)
    with pytest.raises(UnsupportedError, match=r"is no mmproj: general\.architecture is 'llama'"):
        zoo.load(texts, mmproj=texts)
    with pytest.raises(NotFoundError, match="there is no file"):
        zoo.load(texts, mmproj=tmp_path / "nothing.gguf")
    with pytest.raises(InputError, match="mmproj is for a GGUF file"):
        zoo.load(llava, mmproj=other)
    with pytest.raises(InputError, match="a lock names no mmproj"):
        zoo.load(texts, mmproj=other, lock=tmp_path / "zoo.lock")


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "no squares of patches": ("gemma3", {"clip__vision__projector__scale_factor": 99}, "scale_factor = 99"),
    "another activation": ("gemma3", {"clip__use_gelu": False}, "use_gelu = False is not implemented for gemma3"),
    "several layers": (
        "llava",
        {"clip__vision__feature_layer": [1, 2]},
        r"feature_layer = \[1, 2\] is not implemented",
    ),
    "an epsilon": ("qwen2_5_vl", {"clip__vision__attention__layer_norm_epsilon": 1e-5}, "only 1e-06 is"),
    "no windows": ("qwen2_5_vl", {"clip__vision__n_wa_pattern": 0}, "n_wa_pattern = 0 is not implemented"),
    "another gate": ("qwen2_5_vl", {"clip__use_silu": False}, "use_silu = False is not implemented for qwen2_5_vl"),
    "tiles": ("llava", {"clip__vision__image_grid_pinpoints": [32, 64]}, "image_grid_pinpoints is not implemented"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_not_implemented_is_said(case, request, tmp_path):
    family, more, problem = WRONG[case]
    folder: Path = request.getfixturevalue(family)
    path = WRITERS[family](folder, tmp_path / "p.gguf", **more)
    with pytest.raises((ConfigError, UnsupportedError), match=problem):
        zoo.load(write_texts(folder, tmp_path / "m.gguf"), mmproj=path)
