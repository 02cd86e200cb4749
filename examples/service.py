"""A service for embeddings that imports a single model: `uvicorn --app-dir examples service:app`.

Needs fastapi and uvicorn.  Nothing of zoo is loaded but one family, its tokenizer and NumPy: there is no torch in the
process.  MODEL in the environment is a name of the Hub or a folder.

    curl localhost:8000/embed -H 'content-type: application/json' -d '{"texts": ["A cat sits on the mat."]}'
"""

from __future__ import annotations

import os

import numpy as np
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

from zoo import ZooError, hub
from zoo.models.bert import BertModel
from zoo.text.tokenizer import Tokenizer

FOLDER = hub.find(os.environ.get("MODEL", "sentence-transformers/all-MiniLM-L6-v2")).folder
model = BertModel.from_pretrained(FOLDER)
tokenizer = Tokenizer.from_folder(FOLDER, model_max_length=model.config.max_position_embeddings)
app = FastAPI(title="embeddings")


class Texts(BaseModel):
    texts: list[str] = Field(min_length=1, max_length=256)


@app.post("/embed")
def embed(request: Texts) -> dict[str, list[list[float]]]:
    """The normalised mean of each text's tokens."""
    try:
        batch = tokenizer(request.texts)
    except ZooError as e:
        raise HTTPException(422, str(e)) from None
    states = model(batch.input_ids, batch.attention_mask).last_hidden_state  # (B, T, D)
    mask = batch.attention_mask[..., None]
    means = (states * mask).sum(1) / mask.sum(1)
    return {"vectors": (means / np.linalg.norm(means, axis=1, keepdims=True)).tolist()}


@app.get("/health")
def health() -> dict[str, str]:
    """The checkpoint that is served."""
    return {"model": str(FOLDER)}
