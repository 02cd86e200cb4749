"""Images and texts to texts: prompts as transformers' processor makes them, answers, chats, and what is refused."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import zoo
from tests.image_text_checkpoint import (
    OF_PARTS,
    write_gemma3_checkpoint,
    write_glm_ocr_checkpoint,
    write_got_ocr2_checkpoint,
    write_image_text_checkpoint,
    write_internvl_checkpoint,
    write_lighton_ocr_checkpoint,
    write_llava_checkpoint,
    write_mistral3_checkpoint,
    write_paddleocr_vl_checkpoint,
    write_paligemma_checkpoint,
    write_qwen_vl_checkpoint,
)
from zoo.apps.cli import main
from zoo.apps.cli.info import PAGE, describe
from zoo.errors import BatchError, ConfigError, InputError, UnsupportedError, ZooError
from zoo.generate import GenerationConfig, generate
from zoo.inputs.image_prompt import ids_of
from zoo.tasks.image_text import user_messages

WRITERS = [write_image_text_checkpoint, write_llava_checkpoint, write_gemma3_checkpoint, write_paligemma_checkpoint]
WRITERS += [write_qwen_vl_checkpoint, write_internvl_checkpoint, write_got_ocr2_checkpoint]
WRITERS += [
    write_mistral3_checkpoint,
    write_lighton_ocr_checkpoint,
    write_paddleocr_vl_checkpoint,
    write_glm_ocr_checkpoint,
]
TOKENS = {"max_new_tokens": 10}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_image_text_checkpoint(tmp_path_factory.mktemp("image-text"))


@pytest.fixture(scope="module")
def read(folder) -> Any:
    return zoo.load(folder)


def noise(seed: int, height: int = 40, width: int = 70) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


def png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def parts(*items: Any) -> list[dict[str, Any]]:
    found = [
        {"type": "text", "text": one} if isinstance(one, str) else {"type": "image", "image": one} for one in items
    ]
    return [{"role": "user", "content": found}]


CHATS = {
    "one image": parts(noise(0), "What is it?"),
    "several, between words": parts("First ", noise(1, 30, 30), " then ", noise(2, 200, 31), " which is larger?"),
    "turns": [
        *parts(noise(3), "What?"),
        {"role": "assistant", "content": "A picture."},
        *parts("And", noise(4), "this"),
    ],
    "no image": [{"role": "user", "content": "Who?"}],
    "a text that looks like an image": parts(noise(5), "what does <image> mean in <row_1_col_1>?"),
}


@pytest.mark.parametrize("chat", CHATS)
def test_prompts_and_answers_are_those_of_transformers(read, folder, chat):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    import torch

    processor = transformers.AutoProcessor.from_pretrained(folder, backend="pil")
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
    images = [part["image"] for one in CHATS[chat] if isinstance(one["content"], list) for part in one["content"]
              if part["type"] == "image"]  # fmt: skip
    plain = [
        {**one, "content": [{"type": "text", "text": one["content"]}] if isinstance(one["content"], str) else
         [{k: v for k, v in part.items() if k != "image"} for part in one["content"]]}
        for one in CHATS[chat]
    ]  # fmt: skip
    text = processor.apply_chat_template(plain, add_generation_prompt=True)
    ours = read.chat_ids(CHATS[chat], {})[0]
    if "looks like" in chat:  # transformers would take it for an image
        assert text.count("<image>") == 2
        assert read.tokenizer.backend.decode(ids_of(ours), skip_special_tokens=False).endswith(
            "what does <image> mean in <row_1_col_1>?<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>"
        )
        assert isinstance(read.chat(CHATS[chat], **TOKENS), str)
        return
    inputs = processor(text=text, images=images or None, return_tensors="pt")
    assert ids_of(ours).tolist() if images else ours == inputs["input_ids"][0].tolist()
    assert list(ids_of(ours)) == inputs["input_ids"][0].tolist()
    new = model.generate(**inputs, max_new_tokens=10, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    end = read.generation.eos_token_id
    wanted = processor.tokenizer.decode([i for i in new.tolist() if i not in end], skip_special_tokens=False)
    assert read.chat(CHATS[chat], **TOKENS) == wanted


@pytest.mark.parametrize(
    "write",
    [
        write_llava_checkpoint,
        write_gemma3_checkpoint,
        write_lighton_ocr_checkpoint,
        write_paddleocr_vl_checkpoint,
    ],
)
def test_other_families_answer_as_transformers_does(tmp_path, write):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    import torch

    folder = write(tmp_path / "model")
    read: Any = zoo.load(folder)
    processor = transformers.AutoProcessor.from_pretrained(folder, backend="pil")
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
    images = [noise(0), noise(1, 90, 31)]
    plain = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What?"}, {"type": "image"}]}]
    text = processor.apply_chat_template(plain, add_generation_prompt=True)
    # Gemma3Processor does not take these from the file, as its image processor does.
    file = json.loads((folder / "preprocessor_config.json").read_text())
    crops = {name: value for name, value in file.items() if "pan_and_scan" in name}
    inputs = processor(text=text, images=images, return_tensors="pt", **crops)
    chat = parts(images[0], "What?", images[1])
    assert list(ids_of(read.chat_ids(chat, {})[0])) == inputs["input_ids"][0].tolist()
    new = model.generate(**inputs, max_new_tokens=10, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    ids = [i for i in new.tolist() if i not in read.generation.eos_token_id]
    assert read.chat(chat, **TOKENS) == processor.tokenizer.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize(
    "name", ["Qwen2-VL-2B-Instruct", "Qwen2.5-VL-3B-Instruct", "Qwen3-VL-2B-Instruct", "InternVL", "Glm46V"]
)
def test_families_with_videos_answer_as_transformers_does(tmp_path, name):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    import torch

    is_qwen = name.startswith("Qwen")

    class Processor(getattr(transformers, f"{'Qwen2VL' if is_qwen else name}Processor")):
        """Of images alone: that of videos needs torchvision."""

        @classmethod
        def get_attributes(cls) -> list[str]:
            return ["image_processor", "tokenizer"]

    write = {"InternVL": write_internvl_checkpoint, "Glm46V": write_glm_ocr_checkpoint}.get(name)
    folder = write_qwen_vl_checkpoint(tmp_path / "model", name) if write is None else write(tmp_path / "model")
    read: Any = zoo.load(folder)
    images, tokenizer = [noise(0), noise(1, 90, 31)], transformers.AutoTokenizer.from_pretrained(folder)
    pixels = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    more = {"image_seq_length": 16} if name == "InternVL" else {}
    processor = Processor(pixels, tokenizer, chat_template=tokenizer.chat_template, **more)
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
    plain = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What?"}, {"type": "image"}]}]
    text = processor.apply_chat_template(plain, add_generation_prompt=True)
    inputs = processor(text=text, images=images, return_tensors="pt")
    chat = parts(images[0], "What?", images[1])
    assert list(ids_of(read.chat_ids(chat, {})[0])) == inputs["input_ids"][0].tolist()
    new = model.generate(**inputs, max_new_tokens=10, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    ids = [i for i in new.tolist() if i not in read.generation.eos_token_id]
    assert read.chat(chat, **TOKENS) == tokenizer.decode(ids, skip_special_tokens=False)
    with pytest.raises(UnsupportedError, match=r"messages\[0\], part 0, is a video: zoo reads images alone"):
        read.chat([{"role": "user", "content": [{"type": "video", "video": "a.mp4"}]}])


def test_pixels_of_a_part_are_those_of_the_processor(tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    folder = write_qwen_vl_checkpoint(tmp_path / "model")
    read: Any = zoo.load(folder)
    file = json.loads((folder / "preprocessor_config.json").read_text())
    image, least, most = noise(0, 90, 31), 100, 40 * (file["patch_size"] * file["merge_size"]) ** 2
    for own in ({"max_pixels": 2000}, {"min_pixels": most, "max_pixels": 4 * most}, {"min_pixels": least}):
        bounds = {**read.processor.size, **own}
        size = {"shortest_edge": bounds["min_pixels"], "longest_edge": bounds["max_pixels"]}
        theirs = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
        rows, columns = theirs(image, size=size, return_tensors="np")["image_grid_thw"][0][1:].tolist()
        for part in (
            {"type": "image", "image": png(image), **own},
            {
                "type": "image_url",
                "image_url": {"url": f"data:image/png;base64,{base64.b64encode(png(image)).decode()}", **own},
            },
        ):
            ids = ids_of(read.chat_ids([{"role": "user", "content": [part, {"type": "text", "text": "What?"}]}], {})[0])
            assert int((ids == read.config.image_token_id).sum()) == rows * columns // file["merge_size"] ** 2
    for own, problem in (
        ({"max_pixels": 0}, "max_pixels = 0"),
        ({"min_pixels": 9000, "max_pixels": 100}, "min_pixels 9000 is above max_pixels"),
        ({"max_pixels": "many"}, "max_pixels = 'many'"),
        ({"resized_height": 28}, "an image with resized_height = 28, which zoo does not know"),
        ({"maxpixels": 28}, "did you mean 'max_pixels'"),
    ):
        with pytest.raises(InputError, match=problem):
            read.chat([{"role": "user", "content": [{"type": "image", "image": image, **own}]}])


def test_tiles_have_no_number_of_pixels(read):
    part = {"type": "image", "image": noise(0), "max_pixels": 9000}
    with pytest.raises(
        InputError, match="image: max_pixels = 9000, but the Idefics3ImageProcessor makes images of its"
    ):
        read.chat([{"role": "user", "content": [part]}])
    del part["max_pixels"]
    same = read.chat([{"role": "user", "content": [part]}], **TOKENS)
    assert read.chat([{"role": "user", "content": [{**part, "detail": "low"}]}], **TOKENS) == same


def test_paligemma_answers_as_transformers_does(tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    import torch

    folder = write_paligemma_checkpoint(tmp_path / "model")
    read: Any = zoo.load(folder)
    processor = transformers.AutoProcessor.from_pretrained(folder, backend="pil")
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
    for images in ([noise(0)], [noise(0), noise(1, 90, 31)]):
        inputs = processor(text="<image>" * len(images) + "caption en", images=[images], return_tensors="pt")
        inputs.pop("labels")
        ours = read.chat_ids(user_messages(images, "caption en"), {})[0]
        assert list(ids_of(ours)) == inputs["input_ids"][0].tolist()
        new = model.generate(**inputs, max_new_tokens=10, do_sample=False)[0, inputs["input_ids"].shape[1] :]
        ids = [i for i in new.tolist() if i not in read.generation.eos_token_id]
        found = read([images], "caption en", **TOKENS)[0]
        assert found == processor.tokenizer.decode(ids, skip_special_tokens=False)
    with pytest.raises(InputError, match="the prompt has no image"):
        read.chat([{"role": "user", "content": "caption en"}])


def test_got_ocr2_answers_as_transformers_does(tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    import torch

    folder = write_got_ocr2_checkpoint(tmp_path / "model")
    read: Any = zoo.load(folder)
    processor = transformers.AutoProcessor.from_pretrained(folder, backend="pil")
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
    for asked, more in (("OCR: ", {}), ("OCR with format: ", {"format": True})):
        inputs = processor(images=noise(0), return_tensors="pt", num_image_tokens=16, **more)
        ours = read.chat_ids(user_messages([noise(0)], asked), {})[0]
        assert list(ids_of(ours)) == inputs["input_ids"][0].tolist()
        new = model.generate(**inputs, max_new_tokens=10, do_sample=False)[0, inputs["input_ids"].shape[1] :]
        ids = [i for i in new.tolist() if i not in read.generation.eos_token_id]
        assert read(noise(0), asked, **TOKENS) == processor.tokenizer.decode(ids, skip_special_tokens=False)


def test_an_empty_prompt_is_a_message_of_images_alone(tmp_path):
    read: Any = zoo.load(write_lighton_ocr_checkpoint(tmp_path))
    assert read(noise(0), "", **TOKENS) == read.chat(parts(noise(0)), **TOKENS)
    with pytest.raises(InputError, match="image is 1 x 1 patches, which is less than a token"):
        read(noise(0, 3, 3), "", **TOKENS)


def test_lists_give_lists_and_rows_are_those_alone(read):
    images = [noise(0), [noise(1), noise(2)], noise(3)]
    every = read(images, "What?", **TOKENS)
    assert every == [read([one] if isinstance(one, list) else one, "What?", **TOKENS) if not isinstance(one, list)
                     else read([one], "What?", **TOKENS)[0] for one in images]  # fmt: skip
    assert read([noise(0), noise(0)], ["What?", "Who?"], **TOKENS)[0] == every[0]
    with pytest.raises(InputError, match="2 prompts for 3 images"):
        read(images, ["a", "b"])


def test_answers_have_their_tags_and_can_end_at_them(read):
    ends = read.generation.eos_token_id
    found = [read(noise(seed), "Convert.", max_new_tokens=40, details=True) for seed in range(8)]
    tags = read.tokenizer.added_tokens()
    one = next(one for one in found if any(token.token in tags for token in one.tokens if token.token_id not in ends))
    ids = [token.token_id for token in one.tokens if token.token_id not in ends]
    assert one.text == read.tokenizer.decode(ids, skip_special_tokens=False)
    seed, tag = found.index(one), next(token.token for token in one.tokens if token.token in tags)
    assert "".join(read.stream(noise(seed), "Convert.", max_new_tokens=40)) == one.text
    assert read(noise(seed), "Convert.", max_new_tokens=40, stop_strings=[tag]) == one.text[: one.text.index(tag)]
    plain = read(noise(seed), "Convert.", max_new_tokens=40, skip_special_tokens=True)
    assert plain == read.tokenizer.decode(ids)


def test_a_conversation_computes_only_what_is_new(read):
    talk = read.conversation(max_new_tokens=6)
    first = "".join(talk.say("What?", images=[noise(0)]))
    known = talk.known.length
    assert first == read(noise(0), "What?", max_new_tokens=6)
    again = "".join(talk.say("And that?", images=[noise(1)]))
    assert again == read.chat(talk.messages[:-1], max_new_tokens=6)
    assert talk.known.length > known
    with pytest.raises(InputError, match="a chat with images"):
        talk.save_cache("talk.safetensors")


def test_forms_of_parts_are_one(read):
    uri = "data:image/png;base64," + base64.b64encode(png(noise(0))).decode()
    wanted = read(noise(0), "What?", **TOKENS)
    for part in (
        {"type": "image", "image": png(noise(0))},
        {"type": "image", "url": uri},
        {"type": "image", "base64": uri.partition(",")[2]},
        {"type": "image_url", "image_url": {"url": uri}},
        {"type": "image_url", "image_url": uri},
    ):
        assert read.chat([{"role": "user", "content": [part, {"type": "text", "text": "What?"}]}], **TOKENS) == wanted


def test_a_template_of_parts_gets_texts_as_parts(tmp_path):
    read = zoo.load(write_image_text_checkpoint(tmp_path, OF_PARTS))
    chat = [*CHATS["one image"], {"role": "assistant", "content": "A picture."}, {"role": "user", "content": "Sure?"}]
    shown = read.tokenizer.backend.decode(ids_of(read.chat_ids(chat, {})[0]), skip_special_tokens=False)
    assert "A picture.<|end_of_text|>" in shown
    assert "Sure?<|end_of_text|>" in shown


def test_saving_and_loading_keep_the_answer(read, tmp_path):
    read.save(tmp_path / "saved")
    again = zoo.load(tmp_path / "saved")
    assert again(noise(0), "What?", **TOKENS) == read(noise(0), "What?", **TOKENS)


BAD_IMAGES = {
    "an address": ("https://example.org/a.png", "zoo does not download images"),
    "no base64": ("data:image/png;base64,!!!", "is not base64"),
    "no image": ("data:text/plain;base64,AAAA", "a data URI of the type 'text/plain'"),
    "another type": ("data:image/jpeg;base64," + base64.b64encode(png(noise(0))).decode(), "its bytes are image/png"),
    "a text": (b"hello", "not an image in a format"),
    "no file": ("nothing.png", "nothing.png"),
}


@pytest.mark.parametrize("name", BAD_IMAGES)
def test_what_is_no_image_says_so(read, name):
    image, problem = BAD_IMAGES[name]
    with pytest.raises(ZooError) as found:
        read.chat([{"role": "user", "content": [{"type": "image", "image": image}, {"type": "text", "text": "What?"}]}])
    assert problem in str(found.value)
    with pytest.raises(BatchError) as several:
        read([noise(0), image], "What?", **TOKENS)
    assert list(several.value.errors) == [1]
    assert several.value.results[0] == read(noise(0), "What?", **TOKENS)


def test_an_animation_is_no_image(read):
    out = io.BytesIO()
    noise(0).save(out, "GIF", save_all=True, append_images=[noise(1)])
    with pytest.raises(InputError, match="2 pages or frames, expected one image"):
        read(out.getvalue(), "What?")


def test_odd_images_are_read(read):
    upright = noise(0, 30, 60)
    turned = io.BytesIO()
    exif = Image.Exif()
    exif[274] = 6
    upright.transpose(Image.Transpose.ROTATE_90).save(turned, "PNG", exif=exif)
    assert read(turned.getvalue(), "What?", **TOKENS) == read(upright, "What?", **TOKENS)
    clear = Image.new("RGBA", (40, 40), (9, 9, 9, 0))
    assert read(clear, "What?", **TOKENS) == read(Image.new("RGB", (40, 40), "white"), "What?", **TOKENS)
    cmyk = noise(0).convert("CMYK")
    assert read(cmyk, "What?", **TOKENS) == read(cmyk.convert("RGB"), "What?", **TOKENS)
    assert isinstance(read(noise(0, 1, 20000), "What?", **TOKENS), str)


def test_more_than_the_context_says_tiles_tokens_and_limit(read):
    with pytest.raises(InputError) as found:
        read.chat(parts(*[noise(i, 200, 200) for i in range(100)], "What?"))
    assert "the images (15, in 150 tiles) take 600 tokens without 85 further ones" in str(found.value)
    assert "the checkpoint takes 600 tokens: give fewer images, or smaller ones" in str(found.value)


def test_places_and_images_must_be_as_many(read, tmp_path):
    with pytest.raises(InputError, match="1 places of images"):
        list(read.stream_ids(read.prompt_ids("<image> What?"), read.generation))
    with pytest.raises(InputError, match="part 0, is an image and has no image: expected one of image, path, url"):
        read.chat([{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What?"}]}])
    without = "{% for m in messages %}{{ m['content'][-1]['text'] }}{% endfor %}"
    other = zoo.load(write_image_text_checkpoint(tmp_path, without))
    with pytest.raises(InputError, match="0 places for images, and 1 are given"):
        other(noise(0), "What?")


def test_without_a_template_images_come_before_the_text(tmp_path):
    read = zoo.load(write_image_text_checkpoint(tmp_path, None))
    shown = read.tokenizer.backend.decode(
        ids_of(read._chat_prompt(parts(noise(0, 20, 20), "What?"), {})), skip_special_tokens=False
    )
    assert shown.endswith("<fake_token_around_image>What?")
    assert isinstance(read(noise(0), "What?", **TOKENS), str)


def test_a_processor_of_other_tiles_is_refused(tmp_path):
    folder = write_image_text_checkpoint(tmp_path)
    path = folder / "preprocessor_config.json"
    path.write_text(
        path.read_text().replace('"max_image_size": {"longest_edge": 32}', '"max_image_size": {"longest_edge": 64}')
    )
    with pytest.raises(
        ConfigError, match=r"the processor makes tiles of 64 x 64, and the images of config.json are 32 x 32"
    ):
        zoo.load(folder)


def test_an_export_answers_the_same(folder, read, tmp_path):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    zoo.export(folder, tmp_path / "export")
    images = [noise(0), noise(1, 200, 31)]
    assert zoo.load(tmp_path / "export", device="onnx")(images, "What?", **TOKENS) == read(images, "What?", **TOKENS)


def test_an_engine_may_compute_the_steps(read):
    """As CUDA graphs do, of which a GPU is not needed to see that nothing goes past them."""

    class Steps:
        calls = 0

        def __getattr__(self, name: str) -> Any:
            Steps.calls += 1
            return getattr(read.model.language_model, name)

    prompt = read.chat_ids(CHATS["one image"], {})[0]
    config = GenerationConfig(max_new_tokens=8)
    wanted = generate(read.model, [prompt], config)[0][0].ids.tolist()
    assert generate(read.model.with_steps(Steps()), [prompt], config)[0][0].ids.tolist() == wanted
    assert Steps.calls == 1 + 8


def test_info_knows_the_cache_and_the_tokens_of_a_tile(folder, capsys):
    assert main(["info", str(folder), "--json"]) == 0
    of = json.loads(capsys.readouterr().out)["memory"]
    assert (of["image_tokens"], of["length"], of["cache_per_token"]) == (4, 600, 2 * 2 * 8 * 4 * 3)
    assert of["peak"]["float32"] > of["weights"]["float32"] + of["cache"]


@pytest.mark.parametrize("write", WRITERS)
def test_info_knows_the_tokens_of_a_page(tmp_path, write):
    folder = write(tmp_path)
    of, task = describe(str(folder))["memory"], zoo.load(folder)
    tiles, ((grid, each),) = task._process([Image.new("RGB", PAGE[::-1])], [{}])
    count = grid[0] * grid[1] + 1 if grid[0] and not task.places.by_rows else 1
    assert (of["page_tiles"], of["page_tokens"]) == (count, count * each) == (len(tiles[0]), count * each)


def test_onnx_answers_the_same(folder, read):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    other = zoo.load(folder, device="onnx")
    images = [noise(0), noise(1, 200, 31)]
    assert other(images, "What?", **TOKENS) == read(images, "What?", **TOKENS)
