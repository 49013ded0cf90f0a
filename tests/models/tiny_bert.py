#!/usr/bin/env python3
"""Writes a tiny sentence encoder of our own, and reference vectors from an independent forward pass.

    python3 tests/models/tiny_bert.py          writes tests/models/tiny/ anew; the same bytes every time

The encoder is a BERT with weights drawn from a seed: its vectors mean nothing, but every step from a text to a vector
is the one that a real model takes. Nothing but the standard library is needed, and nothing is downloaded. The vectors
in reference.json are computed here with Python's 64-bit floats by code that shares nothing with the registry's: its own
WordPiece, attention, GELU and pooling.
"""

import json
import math
import random
import struct
import unicodedata
from pathlib import Path

SEED = 20
HIDDEN = 32
LAYERS = 2
HEADS = 2
INTERMEDIATE = 64
POSITIONS = 128
MAX_LENGTH = 96
EPSILON = 1e-12
LONGEST_WORD = 100

WORDS = """the a an of to for and in on with by from is are it this that what which who how find search book
flight flights hotel hotels travel ticket tickets agent agents weather forecast city translate translation text
language languages invoice invoices pay payment bank money news write code test tests review summary document
documents image images music play order orders customer support help answer question questions data table report
cafe uber resume""".split()
PIECES = """ing ed er est ly s es tion ment able al ic ous ive ness""".split()
SIGNS = list("!\"#$%&'()*+,-./:;<=>?@[]_{}|~")
IDEOGRAPHS = list("東京天気予報日本語")

TEXTS = [
    "find an agent that books flights",
    "Book a flight to the city!",
    "CAFÉ, über-résumé: naïve Ångström",
    "東京の天気予報",
    "translate this document, please; what is the weather?",
    "",
    "unbelievably 4711 documents\tand\u00a0tables \u0000\ufffd \u200bzero",
    "a report of the customer support on invoices and payment " * 40,
    "x" * 300,
]


def vocabulary():
    letters = list("abcdefghijklmnopqrstuvwxyz0123456789")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += SIGNS + letters + IDEOGRAPHS
    tokens += ["##" + letter for letter in letters] + ["##" + piece for piece in PIECES if len(piece) > 1]
    tokens += [word for word in WORDS if len(word) > 1]
    assert len(tokens) == len(set(tokens))
    return {token: index for index, token in enumerate(tokens)}


# --- the weights ------------------------------------------------------------------------------


def single(number):
    """The number rounded to the stored precision of 32 bits."""
    return struct.unpack("<f", struct.pack("<f", number))[0]


def weights(vocabulary_size, seed=SEED, types=2):
    dice = random.Random(seed)

    def matrix(rows, columns, spread):
        return (rows, columns), [single(dice.gauss(0.0, spread)) for _ in range(rows * columns)]

    def vector(length, middle, spread):
        return (length,), [single(dice.gauss(middle, spread)) for _ in range(length)]

    tensors = {}

    def norm(name):
        tensors[f"{name}.weight"] = vector(HIDDEN, 1.0, 0.1)
        tensors[f"{name}.bias"] = vector(HIDDEN, 0.0, 0.1)

    def dense(name, inputs, outputs):
        tensors[f"{name}.weight"] = matrix(outputs, inputs, 1.2 / math.sqrt(inputs))
        tensors[f"{name}.bias"] = vector(outputs, 0.0, 0.1)

    tensors["embeddings.word_embeddings.weight"] = matrix(vocabulary_size, HIDDEN, 1.0)
    tensors["embeddings.position_embeddings.weight"] = matrix(POSITIONS, HIDDEN, 0.3)
    tensors["embeddings.token_type_embeddings.weight"] = matrix(types, HIDDEN, 0.3)
    norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            dense(f"{name}.attention.self.{part}", HIDDEN, HIDDEN)
        dense(f"{name}.attention.output.dense", HIDDEN, HIDDEN)
        norm(f"{name}.attention.output.LayerNorm")
        dense(f"{name}.intermediate.dense", HIDDEN, INTERMEDIATE)
        dense(f"{name}.output.dense", INTERMEDIATE, HIDDEN)
        norm(f"{name}.output.LayerNorm")
    return tensors


def safetensors(tensors):
    header, body = {"__metadata__": {"format": "pt"}}, bytearray()
    for name, (shape, numbers) in tensors.items():
        begin = len(body)
        body += struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, len(body)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(body)


# --- tokenizer --------------------------------------------------------------------------------


def is_space(character):
    return character in " \t\n\r" or unicodedata.category(character) == "Zs"


def is_control(character):
    return character not in "\t\n\r" and unicodedata.category(character) in ("Cc", "Cf", "Cn", "Co")


def is_sign(character):
    code = ord(character)
    ascii_sign = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_sign or unicodedata.category(character).startswith("P")


def is_ideograph(character):
    code = ord(character)
    return 0x4E00 <= code <= 0x9FFF or 0x3400 <= code <= 0x4DBF or 0xF900 <= code <= 0xFAFF


def words(text):
    clean = []
    for character in text:
        if ord(character) in (0, 0xFFFD) or is_control(character):
            continue
        if is_ideograph(character):
            clean.append(f" {character} ")
        else:
            clean.append(" " if is_space(character) else character)
    decomposed = unicodedata.normalize("NFD", "".join(clean))
    plain = "".join(character for character in decomposed if unicodedata.category(character) != "Mn").lower()
    found = []
    for word in plain.split():
        part = ""
        for character in word:
            if is_sign(character):
                found += [part, character] if part else [character]
                part = ""
            else:
                part += character
        found += [part] if part else []
    return found


def pieces(word, known):
    if len(word) > LONGEST_WORD:
        return ["[UNK]"]
    found, begin = [], 0
    while begin < len(word):
        end = len(word)
        while end > begin:
            piece = ("##" if begin else "") + word[begin:end]
            if piece in known:
                break
            end -= 1
        if end == begin:
            return ["[UNK]"]
        found.append(piece)
        begin = end
    return found


def tokens(text, known, longest):
    inner = [known[piece] for word in words(text) for piece in pieces(word, known)]
    return [known["[CLS]"]] + inner[: longest - 2] + [known["[SEP]"]]


# --- forward pass -----------------------------------------------------------------------------


class Encoder:
    def __init__(self, tensors):
        self.tensors = tensors

    def row(self, name, index):
        (_, columns), numbers = self.tensors[name]
        return numbers[index * columns : (index + 1) * columns]

    def dense(self, name, rows):
        (outputs, inputs), numbers = self.tensors[f"{name}.weight"]
        bias = self.tensors[f"{name}.bias"][1]
        matrix = [numbers[index * inputs : (index + 1) * inputs] for index in range(outputs)]
        return [
            [math.fsum(w * x for w, x in zip(weights, row)) + b for weights, b in zip(matrix, bias)] for row in rows
        ]

    def norm(self, name, rows):
        scale, shift = self.tensors[f"{name}.weight"][1], self.tensors[f"{name}.bias"][1]
        normed = []
        for row in rows:
            mean = math.fsum(row) / len(row)
            variance = math.fsum((x - mean) ** 2 for x in row) / len(row)
            deviation = math.sqrt(variance + EPSILON)
            normed.append([(x - mean) / deviation * s + b for x, s, b in zip(row, scale, shift)])
        return normed

    def attention(self, name, rows):
        query, key, value = (self.dense(f"{name}.{part}", rows) for part in ("query", "key", "value"))
        width = HIDDEN // HEADS
        mixed = [[] for _ in rows]
        for head in range(HEADS):
            part = slice(head * width, (head + 1) * width)
            for index, asking in enumerate(query):
                scores = [
                    math.fsum(q * k for q, k in zip(asking[part], asked[part])) / math.sqrt(width) for asked in key
                ]
                highest = max(scores)
                shares = [math.exp(score - highest) for score in scores]
                total = math.fsum(shares)
                for column in range(width):
                    mixed[index].append(
                        math.fsum(share * given[part][column] for share, given in zip(shares, value)) / total
                    )
        return mixed

    def encode(self, ids, positions=None):
        def plus(left, right):
            return [[a + b for a, b in zip(x, y)] for x, y in zip(left, right)]

        rows = []
        for position, token in zip(positions or range(len(ids)), ids):
            parts = (
                self.row("embeddings.word_embeddings.weight", token),
                self.row("embeddings.position_embeddings.weight", position),
                self.row("embeddings.token_type_embeddings.weight", 0),
            )
            rows.append([sum(numbers) for numbers in zip(*parts)])
        rows = self.norm("embeddings.LayerNorm", rows)
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            mixed = self.attention(f"{name}.attention.self", rows)
            mixed = self.dense(f"{name}.attention.output.dense", mixed)
            rows = self.norm(f"{name}.attention.output.LayerNorm", plus(mixed, rows))
            wide = self.dense(f"{name}.intermediate.dense", rows)
            wide = [[0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0))) for x in row] for row in wide]
            rows = self.norm(f"{name}.output.LayerNorm", plus(self.dense(f"{name}.output.dense", wide), rows))
        mean = [math.fsum(column) / len(rows) for column in zip(*rows)]
        length = math.sqrt(math.fsum(x * x for x in mean))
        return [x / length for x in mean]


# --- the files --------------------------------------------------------------------------------


def tokenizer(known):
    def special(token):
        return {
            "id": known[token],
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }

    def named(token):
        return {"id": token, "ids": [known[token]], "tokens": [token]}

    def piece(token):
        return {"SpecialToken": {"id": token, "type_id": 0}}

    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special(token) for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [piece("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, piece("[SEP]")],
            "pair": [
                piece("[CLS]"),
                {"Sequence": {"id": "A", "type_id": 0}},
                piece("[SEP]"),
                {"Sequence": {"id": "B", "type_id": 1}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 1}},
            ],
            "special_tokens": {token: named(token) for token in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": LONGEST_WORD,
            "vocab": known,
        },
    }


def pooling():
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
    return {"word_embedding_dimension": HIDDEN} | {
        f"pooling_mode_{mode}": mode == "mean_tokens" for mode in modes
    }


def main():
    folder = Path(__file__).resolve().parent / "tiny"
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    known = vocabulary()
    tensors = weights(len(known))
    config = {
        "_name_or_path": "tiny-bert-of-the-tests",
        "architectures": ["BertModel"],
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "layer_norm_eps": EPSILON,
        "max_position_embeddings": POSITIONS,
        "model_type": "bert",
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
        "type_vocab_size": 2,
        "vocab_size": len(known),
    }
    types = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (path, kind) in enumerate(types)
    ]
    encoder = Encoder(tensors)
    reference = []
    for text in TEXTS:
        ids = tokens(text, known, MAX_LENGTH)
        reference.append({"text": text, "tokens": ids, "vector": encoder.encode(ids)})

    def write(name, value, indent=1):
        text = json.dumps(value, indent=indent, ensure_ascii=False) + "\n"
        (folder / name).write_text(text, encoding="utf-8")

    write("config.json", config)
    write("modules.json", modules)
    write("1_Pooling/config.json", pooling())
    write("sentence_bert_config.json", {"max_seq_length": MAX_LENGTH, "do_lower_case": False})
    write("tokenizer.json", tokenizer(known), indent=None)
    write("reference.json", reference, indent=None)
    (folder / "model.safetensors").write_bytes(safetensors(tensors))


if __name__ == "__main__":
    main()
