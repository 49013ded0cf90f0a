"""Signs and verifies cards with a2a-sdk 1.

On stdin a list of objects with `card` (text), `alg`, and either `kid` and `key` (PEM) or `keys` (a JWK
Set, text). On stdout the list of what came of each: the signed card as the SDK serves it (text), or whether
the SDK accepts the card.
"""

import json
import logging
import sys

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import AgentCard
from a2a.utils.signing import (
    SignatureVerificationError,
    create_agent_card_signer,
    create_signature_verifier,
)
from google.protobuf.json_format import ParseDict
from jwt import PyJWKSet


def work(card, alg, kid=None, key=None, keys=None):
    card = ParseDict(json.loads(card), AgentCard(), ignore_unknown_fields=True)
    if key:
        header = {'alg': alg, 'kid': kid, 'typ': 'JOSE'}
        signed = create_agent_card_signer(key, header)(card)
        # The text is written as its server's JSON responses are.
        return json.dumps(agent_card_to_dict(signed), ensure_ascii=False, separators=(',', ':'))
    found = {jwk.key_id: jwk for jwk in PyJWKSet.from_json(keys).keys}
    try:
        create_signature_verifier(lambda kid, jku: found[kid], [alg])(card)
    except SignatureVerificationError:
        return False
    return True


# It warns about every empty member that the specification requires.
logging.disable(logging.WARNING)
print(json.dumps([work(**job) for job in json.load(sys.stdin)]))
