"""Reranking by a language model's yes and no, against sentence-transformers' CrossEncoder with a LogitScore."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoo
from tests.chat_checkpoint import write_chat_tokenizer
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.saving import save_model
from zoo.tasks.causal_rerank import QUESTION, CausalRerank

TEMPLATE = """\
{%- for message in messages %}
{%- if message.role == 'system' %}<|start_header_id|>{{ message.content }}<|end_header_id|>
{%- elif message.role == 'query' %}Query: {{ message.content }}
{%- elif message.role == 'document' %}; Document: {{ message.content }}<|eot_id|>
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|start_header_id|>answer: {% endif %}"""
PAIRS = [
    ("where do cats sleep", "on the mat"),
    ("where do cats sleep", "stocks fell by two percent, and everything else rose, as the paper says"),
    ("what is red", ""),
]


def write(folder: Path, template: object = TEMPLATE, positions: int = 256, **modules: Any) -> Path:
    """A small random Qwen3; modules: the content of files of sentence-transformers' by name."""
    from zoo.models.qwen3 import Qwen3Config, Qwen3ForCausalLM

    vocab = write_chat_tokenizer(folder, template)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pad_token": "<|end_of_text|>"}))
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"num_key_value_heads": 2, "head_dim": 8, "vocab_size": vocab, "max_position_embeddings": positions}
    config = Qwen3Config.from_dict({**sizes, "model_type": "qwen3", "initializer_range": 0.4, "pad_token_id": 3})
    save_model(Qwen3ForCausalLM.from_config(config), folder)
    for name, content in modules.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".json").write_text(json.dumps(content))
    return folder


def modules(false: int | None = 40, **settings: Any) -> dict[str, Any]:
    kinds = {"message": {"method": "forward", "method_output_name": "logits", "format": "flat"}}
    kinds["text"] = {"method": "forward", "method_output_name": "logits"}
    asked = {"transformer_task": "text-generation", "modality_config": kinds, "module_output_name": "causal_logits"}
    asked["processing_kwargs"] = {"chat_template": {"add_generation_prompt": True}}
    base, score = "sentence_transformers.base.modules.transformer", "sentence_transformers.cross_encoder.modules"
    of = [("", f"{base}.Transformer"), ("1_LogitScore", f"{score}.logit_score.LogitScore")]
    return {
        "modules": [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (path, kind) in enumerate(of)],
        "sentence_bert_config": {**asked, **settings},
        "config_sentence_transformers": {"model_type": "CrossEncoder", "prompts": {"found": "Is it there?"}},
        "1_LogitScore__config": {"true_token_id": 50, "false_token_id": false},
    }


@pytest.mark.parametrize("device", ["cpu", "onnx"])
@pytest.mark.parametrize("false", [40, None])
def test_scores_are_those_of_sentence_transformers(tmp_path: Path, device: str, false: int | None):
    st: Any = pytest.importorskip("sentence_transformers")
    if device == "onnx":
        pytest.importorskip("onnxruntime")
    folder = write(tmp_path, **modules(false))
    theirs = st.CrossEncoder(str(folder), device="cpu", model_kwargs={"dtype": "float32"})
    rerank: Any = zoo.load(folder, device=device)
    assert isinstance(rerank, CausalRerank)
    for options in ({}, {"prompt": "Judge."}, {"prompt_name": "found"}):
        wanted = theirs.predict(PAIRS, **options)
        assert np.ptp(wanted) > 1e-3
        np.testing.assert_allclose(rerank.predict(PAIRS, **options), wanted, rtol=0, atol=2e-6)
    query, documents = PAIRS[0][0], [document for _, document in PAIRS]
    order = [hit["corpus_id"] for hit in theirs.rank(query, documents)]
    assert [hit.document for hit in rerank(query, documents)] == order


def test_without_messages_a_pair_is_one_text_after_the_other(tmp_path: Path):
    st: Any = pytest.importorskip("sentence_transformers")
    settings = modules(modality_config={"text": {"method": "forward", "method_output_name": "logits"}})
    folder = write(tmp_path, **settings)
    theirs = st.CrossEncoder(str(folder), device="cpu", model_kwargs={"dtype": "float32"})
    rerank: Any = zoo.load(folder)
    wanted = theirs.predict(PAIRS, prompt="Judge. ")
    np.testing.assert_allclose(rerank.predict(PAIRS, prompt="Judge. "), wanted, rtol=0, atol=2e-6)


def test_a_long_document_is_cut_before_the_end_of_the_question(tmp_path: Path):
    st: Any = pytest.importorskip("sentence_transformers")
    folder = write(tmp_path, **modules(max_seq_length=60))
    theirs = st.CrossEncoder(str(folder), device="cpu", model_kwargs={"dtype": "float32"})
    rerank: Any = zoo.load(folder)
    long = [("where do cats sleep", "on the mat " * 50)]
    with pytest.warns(UserWarning, match="1 of 1 documents made more than 60 tokens"):
        found = rerank.predict(long)
    np.testing.assert_allclose(found, theirs.predict(long), rtol=0, atol=2e-6)
    with pytest.raises(InputError, match="the model takes 60"):
        rerank.pair_ids(*map(list, zip(*long, strict=True)), cut=False)


def test_it_is_saved_whole(tmp_path: Path):
    folder = write(tmp_path / "from", **modules())
    rerank: Any = zoo.load(folder)
    again: Any = zoo.load(rerank.save(tmp_path / "to"))
    np.testing.assert_array_equal(again.predict(PAIRS), rerank.predict(PAIRS))


def test_the_first_files_of_qwen3_reranker_are_asked_as_their_model_card_asks(tmp_path: Path):
    """Their template is one for chats, and no file says that they rerank."""
    from tokenizers import AddedToken, Tokenizer

    chat = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
    folder = write(tmp_path, chat, positions=1024)
    path = folder / "tokenizer.json"
    with pytest.raises(ConfigError, match=r"the answers yes, no are the tokens \[None, None\]"):
        zoo.load(folder, task="rerank")
    made = Tokenizer.from_file(str(path))
    made.add_tokens([AddedToken("yes", normalized=False), AddedToken("no", normalized=False)])
    json_text = made.to_str()
    data = json.loads(json_text)
    for token, i in (("yes", 60), ("no", 61)):  # in the place of two letters
        data["model"]["vocab"] = {t: n for t, n in data["model"]["vocab"].items() if n != i} | {token: i}
    data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] not in ("yes", "no")]
    path.write_text(json.dumps(data))
    rerank: Any = zoo.load(folder, task="rerank")
    text = rerank.tokenizer.decode(rerank._ids("where?", "here", "Find it."))
    assert "<Instruct>: Find it.\n<Query>: where?\n<Document>: here<|im_end|>\n" in text
    assert "<Instruct>: Given a web search query" in rerank.tokenizer.decode(rerank._ids("a", "b", None))
    model: Any = zoo.load_model(folder)
    logits = model(np.array([rerank._ids("where?", "here", None)]))[0, -1]
    wanted = 1 / (1 + np.exp(logits[61] - logits[60]))
    np.testing.assert_allclose(rerank.predict([("where?", "here")]), [wanted], rtol=1e-5)
    assert QUESTION.endswith("</think>\n\n")


def test_what_cannot_be_asked_is_refused(tmp_path: Path):
    chat = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
    with pytest.raises(UnsupportedError, match="no place for a query and a document"):
        zoo.load(write(tmp_path / "a", chat, **modules()))
    with pytest.raises(UnsupportedError, match="processing_kwargs"):
        zoo.load(write(tmp_path / "b", **modules(processing_kwargs={"text": {"padding": True}})))
    with pytest.raises(ConfigError, match="99999"):
        zoo.load(write(tmp_path / "c", **modules(false=99999)))
    folder = write(tmp_path / "d", **modules())
    with pytest.raises(UnsupportedError, match="task='rerank'"):
        zoo.load(folder, task="embed")
    rerank: Any = zoo.load(folder)
    with pytest.raises(InputError, match="prompt_name is 'qery', and the checkpoint's are: 'found'"):
        rerank("a", ["b"], prompt_name="qery")
