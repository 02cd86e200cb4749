"""CLIP and SigLIP: what only they have, what they refuse, and their tasks against transformers' pipelines."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from zoo.errors import BatchError, ConfigError, InputError, UnsupportedError
from zoo.models.clip import CLIPConfig, CLIPVisionConfig

LABELS = ["a cat", "some water", "the old town by the river"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`folder(spec)`: a checkpoint, made once."""
    made = {}

    def of(spec):
        if spec not in made:
            made[spec] = build(spec, tmp_path_factory.mktemp("dual") / spec)
        return made[spec]

    return of


def test_files_of_2022_say_the_parts_twice():
    config = CLIPConfig.from_dict({"text_config": {"hidden_size": 16}, "text_config_dict": {"hidden_size": 32}})
    assert config.text_config.hidden_size == 32
    with pytest.raises(ConfigError, match="vision_config is 3"):
        CLIPConfig.from_dict({"vision_config": 3})
    with pytest.raises(ConfigError, match="text_config: num_attention_heads = 7 does not divide"):
        CLIPConfig.from_dict({"text_config": {"num_attention_heads": 7}})
    with pytest.raises(ConfigError, match="is not a square"):
        CLIPVisionConfig(image_size=[64, 96])


def test_a_text_ends_where_its_config_says(folder):
    ids = np.array([[3, 7, 4, 9, 4], [4, 8, 8, 8, 8]])
    assert zoo.load_model(folder("clip-text")).eos_positions(ids).tolist() == [2, 0]
    legacy = zoo.load_model(folder("clip-vit-base-patch32")).text_model
    assert legacy.eos_positions(ids).tolist() == [3, 1]


@pytest.mark.parametrize("spec", ["clip-vit-base-patch32", "siglip-base-patch16-224"])
def test_zero_shot_and_vectors_are_those_of_transformers(folder, spec):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    images, path = [draw(40, 60), draw(60, 30, seed=1)], folder(spec)
    model = transformers.AutoModel.from_pretrained(path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    processor = transformers.AutoImageProcessor.from_pretrained(path, backend="pil")
    zero_shot, embed = zoo.load(path), zoo.load(path, task="embed")
    texts = [f"This is a photo of {label}." for label in LABELS]
    padded = {"padding": "max_length", "max_length": 40} if "siglip" in spec else {"padding": True}
    given = tokenizer(texts, return_tensors="pt", return_token_type_ids=False, **padded)
    if "siglip" in spec:
        given.pop("attention_mask")  # which its own tokenizer does not return
    with torch.no_grad():
        wanted = model(**given, pixel_values=processor(images, return_tensors="pt")["pixel_values"])
    logits = wanted.logits_per_image
    scores = (logits.sigmoid() if "siglip" in spec else logits.softmax(-1)).numpy()
    for found, row in zip(zero_shot(images, LABELS), scores, strict=True):
        order = np.argsort(-row)
        assert [one.label for one in found] == [LABELS[i] for i in order]
        np.testing.assert_allclose([one.score for one in found], row[order], rtol=1e-4)
    np.testing.assert_allclose(embed(images), wanted.image_embeds, atol=1e-5)
    np.testing.assert_allclose(embed.texts(texts), wanted.text_embeds, atol=1e-5)
    cosines = embed.similarity(images, embed.texts(texts))
    np.testing.assert_allclose(cosines, (wanted.image_embeds @ wanted.text_embeds.T), atol=1e-5)


def test_one_side_alone(folder):
    texts = zoo.load(folder("clip-text-projection"))
    assert texts(["the old town", "water"]).shape == (2, 32)
    own = texts.model(texts.tokenizer("the old town").input_ids).text_embeds[0]
    np.testing.assert_allclose(texts("the old town"), own / np.linalg.norm(own), atol=1e-6)
    padded = zoo.load(folder("siglip-text"))
    np.testing.assert_allclose(padded(["a", "the old town by the water"])[0], padded("a"), atol=1e-6)
    assert zoo.load(folder("clip-vision-projection"))(draw(30, 30)).shape == (32,)
    bare = zoo.load(folder("siglip-vision"))
    assert np.allclose(bare(draw(30, 30)), bare(draw(30, 30), pooling="mean"))  # neither pooler nor class token
    with pytest.raises(InputError, match="no class token"):
        bare(draw(30, 30), pooling="cls")


def test_saved_and_loaded(folder, tmp_path):
    zero_shot = zoo.load(folder("clip-vit-base-patch32"))
    zoo.save(zero_shot, tmp_path)
    assert zoo.load(tmp_path)(draw(30, 40), "a cat, the water") == zero_shot(draw(30, 40), ["a cat", "the water"])


@pytest.mark.parametrize(
    ("labels", "options", "says"),
    [
        ([], {}, "candidate_labels is empty"),
        (["a", "b", "a"], {}, "'a' twice"),
        (["a", 3], {}, r"candidate_labels\[1\] is of type int"),
        (["a"], {"hypothesis_template": "a photo"}, "expected a text with {}"),
    ],
)
def test_labels_that_are_none(folder, labels, options, says):
    with pytest.raises(InputError, match=says):
        zoo.load(folder("clip-vit-base-patch32"))(draw(30, 40), labels, **options)


def test_calls_that_do_not_fit(folder):
    model = zoo.load_model(folder("clip-vit-base-patch32"))
    pixels = np.zeros((1, 24, 24, 3), np.float32)
    with pytest.raises(InputError, match=r"takes no input_id, only .*did you mean 'input_ids'"):
        model(np.ones((1, 3), int), pixels, input_id=None)
    with pytest.raises(UnsupportedError, match="its tasks are embed, classify, zero-shot-image-classification"):
        zoo.load(folder("clip-vit-base-patch32"), task="segment")


def test_many_texts_are_tokenized_in_blocks(folder, monkeypatch):
    embed, texts = zoo.load(folder("clip-vit-base-patch32"), task="embed"), [f"{i} cats" for i in range(7)]
    wanted, seen, encode = embed.texts(texts), [], type(embed.tokenizer).encode_batch
    monkeypatch.setattr("zoo.tasks.base.TEXTS_AT_ONCE", 3)
    monkeypatch.setattr(
        type(embed.tokenizer), "encode_batch", lambda self, some, **o: seen.append(len(some)) or encode(self, some, **o)
    )
    np.testing.assert_allclose(embed.texts(texts), wanted, atol=1e-6)
    assert seen == [3, 3, 1]


def test_images_and_texts_in_one_call(folder, tmp_path, monkeypatch):
    embed = zoo.load(folder("clip-vit-base-patch32"), task="embed")
    monkeypatch.chdir(tmp_path)
    draw(30, 40).save("a.png")
    draw(40, 30, seed=1).save("without_a_suffix", format="PNG")
    given = ["a.png", "the old town", "without_a_suffix", draw(50, 30)]
    found = embed(given)
    np.testing.assert_allclose(found[1], embed.texts("the old town"), atol=1e-6)
    for i in (0, 2, 3):
        np.testing.assert_allclose(found[i], embed(given[i]), atol=1e-6)
    np.testing.assert_array_equal(embed.encode(given, batch_size=8, convert_to_numpy=True), found)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    with pytest.raises(BatchError, match=r"inputs\[1\]: gone.png: no such file") as caught:
        embed(["a text", "gone.png", "a.png"])
    np.testing.assert_allclose(caught.value.results[0], embed("a text"), atol=1e-6)
    assert caught.value.results[1] is None


def test_images_by_words(folder):
    embed, images = zoo.load(folder("clip-vit-base-patch32"), task="embed"), [draw(30, 40, seed=i) for i in range(4)]
    vectors = embed(images)
    cosines = (embed.texts(LABELS) @ vectors.T).astype(np.float64)
    np.testing.assert_allclose(embed.similarity(LABELS, images), cosines, atol=1e-5)
    np.testing.assert_allclose(embed.similarity(vectors[0], LABELS), cosines[:, :1].T, atol=1e-5)
    for corpus in (images, vectors):
        found = embed.semantic_search(LABELS, corpus, top_k=2)
        for hits, row in zip(found, cosines, strict=True):
            np.testing.assert_allclose([hit.score for hit in hits], np.sort(row)[::-1][:2], atol=1e-5)
            np.testing.assert_allclose([row[hit.corpus_id] for hit in hits], np.sort(row)[::-1][:2], atol=1e-5)
    with pytest.raises(InputError, match="normalize_embeddings is False"):
        embed.encode("a cat", normalize_embeddings=False)
