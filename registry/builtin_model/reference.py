#!/usr/bin/env python3
"""Writes reference.json: texts, and their vectors by the original weights in 32 bits, for the tests.

    python3 registry/builtin_model/reference.py FOLDER

FOLDER holds the original, as for quantize.py. The vectors are computed in 64 bits by code that shares nothing with the
registry's: its own WordPiece, for words of plain letters only, and its own network.
"""

import json
import math
import re
import sys
from pathlib import Path

import numpy as np

from quantize import CONFIG, read_originals

TEXTS = [
    "find an agent that books flights",
    "someone who brings cash along when I travel abroad",
    "Converts currencies at the rates of the day and delivers foreign bank notes to the airport.",
    "weather forecast",
    "Reviews pull requests: finds bugs, security holes and missing tests, and suggests changes.",
    "translate a contract from German to Japanese, keeping its layout",
    "x",
    "Plans trips with trains, hotels and museums, within a budget. " * 12,
]
HEADS = CONFIG["num_attention_heads"]
WIDTH = CONFIG["hidden_size"]
error_function = np.vectorize(math.erf)


def tokenize(text, vocabulary):
    tokens = ["[CLS]"]
    for word in re.findall(r"[a-z]+|[.,:]", text.lower()):
        begin = 0
        while begin < len(word):
            prefix = "##" if begin else ""
            ends = range(len(word), begin, -1)
            end = next(end for end in ends if prefix + word[begin:end] in vocabulary)
            tokens.append(prefix + word[begin:end])
            begin = end
    return [vocabulary[token] for token in tokens + ["[SEP]"]]


def encode(tokens, weights):
    def dense(rows, name):
        return rows @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(rows, name):
        off = rows - rows.mean(axis=-1, keepdims=True)
        variance = (off**2).mean(axis=-1, keepdims=True)
        off /= np.sqrt(variance + CONFIG["layer_norm_eps"])
        return off * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]

    def split(rows):
        return rows.reshape(len(tokens), HEADS, WIDTH // HEADS).transpose(1, 0, 2)

    rows = weights["embeddings.word_embeddings.weight"][tokens]
    rows = rows + weights["embeddings.position_embeddings.weight"][: len(tokens)]
    rows = norm(rows + weights["embeddings.token_type_embeddings.weight"][0], "embeddings")
    for index in range(CONFIG["num_hidden_layers"]):
        layer = f"encoder.layer.{index}"
        parts = ("query", "key", "value")
        queries, keys, values = (split(dense(rows, f"{layer}.attention.self.{part}")) for part in parts)
        scores = np.exp(queries @ keys.transpose(0, 2, 1) / math.sqrt(WIDTH // HEADS))
        scores /= scores.sum(axis=-1, keepdims=True)
        attended = (scores @ values).transpose(1, 0, 2).reshape(len(tokens), WIDTH)
        rows = norm(dense(attended, f"{layer}.attention.output.dense") + rows, f"{layer}.attention.output")
        wide = dense(rows, f"{layer}.intermediate.dense")
        wide *= 0.5 * (1 + error_function(wide / math.sqrt(2)))
        rows = norm(dense(wide, f"{layer}.output.dense") + rows, f"{layer}.output")
    mean = rows.mean(axis=0)
    return mean / np.linalg.norm(mean)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tensors, tokenizer = read_originals(Path(sys.argv[1]))
    weights = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    vocabulary = json.loads(tokenizer)["model"]["vocab"]
    references = []
    for text in TEXTS:
        tokens = tokenize(text, vocabulary)
        vector = [round(number, 6) for number in encode(tokens, weights).tolist()]
        references.append(json.dumps({"text": text, "tokens": tokens, "vector": vector}))
    (Path(__file__).parent / "reference.json").write_text("[" + ",\n".join(references) + "]\n")


if __name__ == "__main__":
    main()
