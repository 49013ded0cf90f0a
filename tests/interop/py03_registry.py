"""Talks to the registry itself as an agent, with a2a-sdk 0.3's own resolver and client: one line a finding.

Arguments: the base URL, and a bearer token or `-`.
"""

import asyncio
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.helpers import create_text_message_object
from a2a.types import DataPart, TaskIdParams, TaskQueryParams
from a2a.utils.signing import SignatureVerificationError, create_signature_verifier
from jwt import PyJWKSet


def found(artifacts):
    parts = (part.root for artifact in artifacts for part in artifact.parts)
    data = next(part.data for part in parts if isinstance(part, DataPart))
    return ' '.join(result['identifier'] for result in data['results'])


async def is_verified(http, base, card):
    """Whether the SDK accepts the card's signature by the keys that the registry publishes."""
    published = await http.get(f'{base}/.well-known/jwks.json')
    keys = {key.key_id: key for key in PyJWKSet.from_dict(published.json()).keys}
    try:
        create_signature_verifier(lambda kid, jku: keys[kid], ['ES256'])(card)
    except SignatureVerificationError:
        return False
    return True


async def refused(name, call):
    try:
        await call
    except Exception as error:
        print(f'{name} {type(error).__name__} {getattr(error, "error", error)!r}')
    else:
        print(f'{name} nothing')


async def first(events):
    async for event in events:
        return event


async def main(base, token):
    headers = {} if token == '-' else {'Authorization': f'Bearer {token}'}
    async with httpx.AsyncClient(timeout=30, trust_env=False, headers=headers) as http:
        card = await A2ACardResolver(http, base_url=base).get_agent_card()
        print(f'CARD {card.name}')
        print('VERIFIED', await is_verified(http, base, card))

        def client(streaming):
            return ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)

        def said(text):
            return create_text_message_object(content=text)

        streamed = [event async for event in client(True).send_message(said('flights'))]
        print('STREAM', *['task' if update is None else update.kind for _, update in streamed])
        print('STREAMED', found(streamed[-1][0].artifacts))
        plain = client(False)
        [(task, _)] = [event async for event in plain.send_message(said('flights'))]
        print('SENT', task.status.state.value, found(task.artifacts))
        got = await plain.get_task(TaskQueryParams(id=task.id))
        print('GOT', got == task)
        await refused('CANCEL', plain.cancel_task(TaskIdParams(id=task.id)))
        await refused('GET', plain.get_task(TaskQueryParams(id='no-such-task')))
        await refused('SUBSCRIBE', first(client(True).resubscribe(TaskIdParams(id=task.id))))
        [(asked, _)] = [event async for event in plain.send_message(said(' '))]
        print('ASKED', asked.status.state.value)
        ended = await plain.cancel_task(TaskIdParams(id=asked.id))
        print('ENDED', ended.status.state.value)


asyncio.run(main(sys.argv[1], sys.argv[2]))
