"""Loads cards with the installed a2a-sdk, for the tests of conversions.

Usage: load_cards.py VERSION, with the protocol version, 1.0 or 0.3, that the installed SDK speaks.
Every line of standard input is {"name": ..., "card": {...}}. Every line of output has the same name,
with "error" where the SDK refuses the card; otherwise "read" is the card as the SDK has it, written back
to JSON, and "client" the transport its client factory chose, or "no_client" why it chose none.
"""

import json
import sys

import httpx


def loader_1_0(http):
    """Reads with the resolver's own parser into the protocol's messages."""
    from a2a.client import ClientConfig, ClientFactory
    from a2a.client.card_resolver import parse_agent_card
    from google.protobuf.json_format import MessageToDict

    bindings = ["JSONRPC", "HTTP+JSON"]
    factory = ClientFactory(
        ClientConfig(httpx_client=http, supported_protocol_bindings=bindings)
    )
    return parse_agent_card, MessageToDict, factory


def loader_0_3(http):
    """Reads with the models that the resolver validates against."""
    from a2a.client import ClientConfig, ClientFactory
    from a2a.types import AgentCard

    def dump(card):
        return card.model_dump(mode="json", by_alias=True, exclude_none=True)

    transports = ["JSONRPC", "HTTP+JSON"]
    factory = ClientFactory(
        ClientConfig(httpx_client=http, supported_transports=transports)
    )
    return AgentCard.model_validate, dump, factory


def one_line(error):
    """An exception as one line."""
    return " | ".join(f"{type(error).__name__}: {error}".splitlines())


def answer(line, load, dump, factory):
    """What the SDK makes of one card."""
    asked = json.loads(line)
    told = {"name": asked["name"]}
    try:
        card = load(asked["card"])
    except Exception as error:
        return told | {"error": one_line(error)}
    told["read"] = dump(card)
    try:
        # Which transport was chosen is no part of a client's interface.
        told["client"] = type(factory.create(card)._transport).__name__
    except Exception as error:
        told["no_client"] = one_line(error)
    return told


def main():
    loader = {"1.0": loader_1_0, "0.3": loader_0_3}[sys.argv[1]]
    load, dump, factory = loader(httpx.AsyncClient())
    for line in sys.stdin:
        print(json.dumps(answer(line, load, dump, factory)))


main()
