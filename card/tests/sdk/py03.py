"""Signs and verifies cards with a2a-sdk 0.3; reads and writes what `py1.py` does."""

import json
import sys

from a2a.types import AgentCard
from a2a.utils.signing import (
    SignatureVerificationError,
    create_agent_card_signer,
    create_signature_verifier,
)
from jwt import PyJWKSet


def work(card, alg, kid=None, key=None, keys=None):
    card = AgentCard.model_validate_json(card)
    if key:
        header = {'alg': alg, 'kid': kid, 'typ': 'JOSE'}
        signed = create_agent_card_signer(key, header)(card)
        served = signed.model_dump(exclude_none=True, by_alias=True)
        # The text is written as its server's JSON responses are.
        return json.dumps(served, ensure_ascii=False, separators=(',', ':'))
    found = {jwk.key_id: jwk for jwk in PyJWKSet.from_json(keys).keys}
    try:
        create_signature_verifier(lambda kid, jku: found[kid], [alg])(card)
    except SignatureVerificationError:
        return False
    return True


print(json.dumps([work(**job) for job in json.load(sys.stdin)]))
