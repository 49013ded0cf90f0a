"""Loads a card with a2a-sdk 0.2's own resolver from a base URL, sends a text, prints the reply."""

import asyncio
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, A2AClient
from a2a.types import Message, MessageSendParams, Part, Role, SendMessageRequest, TextPart
from a2a.utils import get_message_text


async def main(base: str, text: str) -> None:
    async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
        card = await A2ACardResolver(http, base_url=base).get_agent_card()
        print(f'CARD {card.name}')
        message = Message(
            role=Role.user,
            parts=[Part(root=TextPart(text=text))],
            message_id=str(uuid.uuid4()),
        )
        answer = await A2AClient(http, agent_card=card).send_message(
            SendMessageRequest(id=str(uuid.uuid4()), params=MessageSendParams(message=message))
        )
        print(f'ANSWER {get_message_text(answer.root.result)}')


asyncio.run(main(sys.argv[1], sys.argv[2]))
