"""Loads a card with a2a-sdk 0.3's own resolver from a base URL, sends a text, prints the reply."""

import asyncio
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.helpers import create_text_message_object
from a2a.types import Message
from a2a.utils import get_message_text


async def main(base: str, text: str) -> None:
    async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
        card = await A2ACardResolver(http, base_url=base).get_agent_card()
        print(f'CARD {card.name}')
        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        async for event in client.send_message(create_text_message_object(content=text)):
            if isinstance(event, Message):
                print(f'ANSWER {get_message_text(event)}')


asyncio.run(main(sys.argv[1], sys.argv[2]))
