"""Loads a card with a2a-sdk 1's own resolver from a base URL, sends a text, prints the reply."""

import asyncio
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import get_stream_response_text, new_text_message
from a2a.types import Role, SendMessageRequest


async def main(base: str, text: str) -> None:
    async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
        card = await A2ACardResolver(http, base_url=base).get_agent_card()
        print(f'CARD {card.name}')
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=sys.argv[3:])
        client = ClientFactory(config).create(card)
        request = SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))
        async for event in client.send_message(request):
            print(f'ANSWER {get_stream_response_text(event)}')


asyncio.run(main(sys.argv[1], sys.argv[2]))
