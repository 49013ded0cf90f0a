"""Talks to the registry itself as an agent, with a2a-sdk 0.2's own resolver and client: one line a finding.

Arguments: the base URL, and a bearer token or `-`.
"""

import asyncio
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, A2AClient
from a2a.types import DataPart, Message, MessageSendParams, Part, Role, SendMessageRequest, TextPart


async def main(base: str, token: str) -> None:
    headers = {} if token == '-' else {'Authorization': f'Bearer {token}'}
    async with httpx.AsyncClient(timeout=30, trust_env=False, headers=headers) as http:
        card = await A2ACardResolver(http, base_url=base).get_agent_card()
        print(f'CARD {card.name}')
        message = Message(
            role=Role.user,
            parts=[Part(root=TextPart(text='flights'))],
            message_id=str(uuid.uuid4()),
        )
        request = SendMessageRequest(id=str(uuid.uuid4()), params=MessageSendParams(message=message))
        answer = await A2AClient(http, agent_card=card).send_message(request)
        task = answer.root.result
        parts = (part.root for artifact in task.artifacts for part in artifact.parts)
        data = next(part.data for part in parts if isinstance(part, DataPart))
        print('SENT', task.status.state.value, *[result['identifier'] for result in data['results']])


asyncio.run(main(sys.argv[1], sys.argv[2]))
