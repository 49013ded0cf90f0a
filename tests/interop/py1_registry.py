"""Talks to the registry itself as an agent, with a2a-sdk 1's own resolver and client: one line a finding.

Arguments: the base URL, a bearer token or `-`, and the bindings in the order of preference.
"""

import asyncio
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import new_text_message
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.signing import SignatureVerificationError, create_signature_verifier
from google.protobuf.json_format import MessageToDict
from jwt import PyJWKSet


def found(artifacts):
    parts = (part for artifact in artifacts for part in artifact.parts)
    data = next(MessageToDict(part.data) for part in parts if part.HasField('data'))
    return ' '.join(result['identifier'] for result in data['results'])


def request(text):
    return SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))


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
        print(f'{name} {type(error).__name__}')
    else:
        print(f'{name} nothing')


async def first(events):
    async for event in events:
        return event


async def main(base, token, bindings):
    headers = {} if token == '-' else {'Authorization': f'Bearer {token}'}
    async with httpx.AsyncClient(timeout=30, trust_env=False, headers=headers) as http:
        card = await A2ACardResolver(http, base_url=base).get_agent_card()
        print(f'CARD {card.name}')
        print('VERIFIED', await is_verified(http, base, card))

        def client(streaming):
            config = ClientConfig(
                httpx_client=http, supported_protocol_bindings=bindings, streaming=streaming
            )
            return ClientFactory(config).create(card)

        streamed = [event async for event in client(True).send_message(request('flights'))]
        print('STREAM', *[event.WhichOneof('payload') for event in streamed])
        print('STREAMED', found([event.artifact_update.artifact for event in streamed if event.HasField('artifact_update')]))
        plain = client(False)
        [sent] = [event async for event in plain.send_message(request('flights'))]
        task = sent.task
        print('SENT', TaskState.Name(task.status.state), found(task.artifacts))
        got = await plain.get_task(GetTaskRequest(id=task.id))
        print('GOT', got == task)
        listed = await plain.list_tasks(ListTasksRequest(page_size=1))
        print('LISTED', len(listed.tasks), listed.total_size)
        await refused('CANCEL', plain.cancel_task(CancelTaskRequest(id=task.id)))
        await refused('GET', plain.get_task(GetTaskRequest(id='no-such-task')))
        await refused('SUBSCRIBE', first(client(True).subscribe(SubscribeToTaskRequest(id=task.id))))
        [asked] = [event async for event in plain.send_message(request(' '))]
        print('ASKED', TaskState.Name(asked.task.status.state))
        ended = await plain.cancel_task(CancelTaskRequest(id=asked.task.id))
        print('ENDED', TaskState.Name(ended.status.state))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
