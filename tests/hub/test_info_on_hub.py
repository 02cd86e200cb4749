"""`zoo info` of a repository whose weights are not here: headers, and what follows from them."""

from __future__ import annotations

import json

import numpy as np
from hub_samples import fetched
from safetensors.numpy import save

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "max_position_embeddings": 9000,
}


def test_only_headers_of_weights_are_read(hub, worker, repo):
    name, repository = repo
    tensors = {"model.embed_tokens.weight": np.zeros((512, 64), np.float16), "b": np.zeros((1000, 1000), np.float32)}
    parts = [save({key: value}) for key, value in tensors.items()]
    names = [f"model-0000{i + 1}-of-00002.safetensors" for i in range(2)]
    index = {"metadata": {}, "weight_map": dict(zip(tensors, names, strict=True))}
    files = {
        "config.json": json.dumps(CONFIG).encode(),
        "model.safetensors.index.json": json.dumps(index).encode(),
        **dict(zip(names, parts, strict=True)),
    }
    commit = repository.push(files)
    with hub.recorded() as requests:
        found = worker.find(name, info=True, batch=2, length=100)
    assert "error" not in found, found
    ranges = [{key.lower() for key in r.headers} & {"range"} for r in requests if r.method == "GET" and r.on_cdn]
    assert ranges == [{"range"}] * 2
    tried = "model.safetensors"  # which would be the only one
    assert set(fetched(requests, name)) == {"config.json", tried, *names, "model.safetensors.index.json"}
    assert (found["revision"], found["parameters"]) == (commit, 512 * 64 + 1_000_000)
    assert found["stored"]["F16"] == {"tensors": 1, "elements": 512 * 64, "bytes": 512 * 64 * 2}
    of = found["memory"]
    assert of["weights"]["float32"] == 4 * found["parameters"]
    assert of["cache_per_token"] == 2 * 2 * 2 * 8 * 4
    assert of["peak"]["float32"] > of["weights"]["float32"] + 200 * of["cache_per_token"]
    assert "unused" not in found
