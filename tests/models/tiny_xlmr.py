#!/usr/bin/env python3
"""Writes a tiny multilingual sentence encoder of our own, and reference vectors from an independent forward pass.

    python3 tests/models/tiny_xlmr.py          writes tests/models/tiny_xlmr/ anew; the same bytes every time

The encoder is an XLM-RoBERTa with weights drawn from a seed, and a tokenizer of type Unigram as sentencepiece makes it.
The vectors in reference.json are computed with Python's 64-bit floats; the Unigram tokenizer here shares nothing with
the registry's. Each text has a second vector, for which positions are counted from 0: that of a BERT with the same
tokenizer, as multilingual MiniLM is.
"""

import json
import random
import unicodedata
from pathlib import Path

import tiny_bert
from tiny_bert import EPSILON, HEADS, HIDDEN, INTERMEDIATE, LAYERS, MAX_LENGTH, POSITIONS, Encoder

SEED = 21
MARK = "\u2581"
BEGIN, PADDING, END, UNKNOWN = range(4)
UNKNOWN_PENALTY = 10.0

LETTERS = "abcdefghijklmnopqrstuvwxyzäöüßéèñçãõ0123456789.,!?-'" + "абвгдежзийклмнопрстуфхцчшщыьэюя" + "ابتجحدرسعفقكلمنهوي"
IDEOGRAPHS = "東京天気予報発票快递おかせくてるを날씨예보"
WORDS = """find book flight hotel weather agent rechnung prüfen rechnungen billet train réserver multa tráfico nota
fiscal погода перевод документ ترجم طبيب""".split()
PIECES = """ing en er es ung tion ción ção ого ами ة ات 天気 予報 快递 날씨""".split()

TEXTS = [
    "find an agent that books flights",
    "Rechnungen prüfen",
    "réserver un billet de train",
    "東京の天気予報",
    "快递 날씨 예보",
    "перевод документов",
    "ترجمة الوثيقة",
    "",
    "ﬁnd  ＨＯＴＥＬ \u00a0 4711 ☃☃☃ !?",
    "a <pad> within",
    "rechnungen und billets " * 60,
]


def vocabulary():
    """Pieces with their scores; a piece's number is its place."""
    dice = random.Random(SEED)
    marked = [MARK + word for word in WORDS]
    pieces = [MARK] + list(LETTERS + IDEOGRAPHS) + PIECES + marked + [word for word in WORDS if word.isascii()]
    assert len(pieces) == len(set(pieces)), sorted(piece for piece in pieces if pieces.count(piece) > 1)
    scored = [[piece, -dice.uniform(6.0, 12.0) + 1.5 * (len(piece) - 1)] for piece in pieces]
    return [["<s>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]] + scored + [["<mask>", 0.0]]


def segmented(word, scores):
    """The numbers of the pieces of a word whose scores have the greatest sum."""
    lowest = min(score for _, score in scores.values())
    best = [(0.0, None, None)] + [None] * len(word)
    for begin in range(len(word)):
        reached = best[begin][0]
        for end in range(begin + 1, len(word) + 1):
            number, score = scores.get(word[begin:end], (None, None))
            if number is None and end == begin + 1:
                number, score = UNKNOWN, lowest - UNKNOWN_PENALTY
            if number is not None and (best[end] is None or reached + score > best[end][0]):
                best[end] = (reached + score, begin, number)
    numbers, end = [], len(word)
    while end:
        _, begin, number = best[end]
        # Unknown characters beside each other are one token.
        if not (number == UNKNOWN and numbers and numbers[-1] == UNKNOWN):
            numbers.append(number)
        end = begin
    return numbers[::-1]


def tokens(text, scores, longest):
    inner = []
    for number, part in enumerate(text.split("<pad>")):
        inner += [PADDING] if number else []
        for word in unicodedata.normalize("NFKC", part).split():
            inner += segmented(MARK + word, scores)
    return [BEGIN] + inner[: longest - 2] + [END]


def positions(ids):
    """Counted from the number behind the padding token's; a padding token has its own."""
    counted, found = 0, []
    for token in ids:
        counted += token != PADDING
        found.append(PADDING if token == PADDING else PADDING + counted)
    return found


def tokenizer(pieces):
    specials = [(BEGIN, "<s>"), (PADDING, "<pad>"), (END, "</s>"), (UNKNOWN, "<unk>"), (len(pieces) - 1, "<mask>")]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}

    def piece(token):
        return {"SpecialToken": {"id": token, "type_id": 0}}

    sequence = {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": number, "content": content} | flags for number, content in specials],
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "WhitespaceSplit"},
                {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True},
            ],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [piece("<s>"), sequence, piece("</s>")],
            "pair": [piece("<s>"), sequence, piece("</s>"), piece("</s>"), sequence | {}, piece("</s>")],
            "special_tokens": {
                token: {"id": token, "ids": [number], "tokens": [token]}
                for token, number in (("<s>", BEGIN), ("</s>", END))
            },
        },
        "decoder": {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True},
        "model": {"type": "Unigram", "unk_id": UNKNOWN, "vocab": pieces, "byte_fallback": False},
    }


def main():
    folder = Path(__file__).resolve().parent / "tiny_xlmr"
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    pieces = vocabulary()
    scores = {piece: (number, score) for number, (piece, score) in enumerate(pieces) if 3 < number < len(pieces) - 1}
    tensors = tiny_bert.weights(len(pieces), SEED, types=1)
    config = {
        "_name_or_path": "tiny-xlm-roberta-of-the-tests",
        "architectures": ["XLMRobertaModel"],
        "bos_token_id": BEGIN,
        "eos_token_id": END,
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "layer_norm_eps": EPSILON,
        "max_position_embeddings": POSITIONS,
        "model_type": "xlm-roberta",
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "pad_token_id": PADDING,
        "position_embedding_type": "absolute",
        "type_vocab_size": 1,
        "vocab_size": len(pieces),
    }
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling")])
    ]
    encoder = Encoder(tensors)
    reference = []
    for text in TEXTS:
        ids = tokens(text, scores, MAX_LENGTH)
        vectors = {"vector": encoder.encode(ids, positions(ids)), "as_bert": encoder.encode(ids)}
        reference.append({"text": text, "tokens": ids} | vectors)

    def write(name, value, indent=1):
        text = json.dumps(value, indent=indent, ensure_ascii=False) + "\n"
        (folder / name).write_text(text, encoding="utf-8")

    write("config.json", config)
    write("modules.json", modules)
    write("1_Pooling/config.json", tiny_bert.pooling())
    write("sentence_bert_config.json", {"max_seq_length": MAX_LENGTH, "do_lower_case": False})
    write("tokenizer.json", tokenizer(pieces), indent=None)
    write("reference.json", reference, indent=None)
    (folder / "model.safetensors").write_bytes(tiny_bert.safetensors(tensors))


if __name__ == "__main__":
    main()
