"""Agents of frameworks call an agent of a registry, and print what came of it as one line of JSON.

    frameworks.py adk CARD_URL TEXT         Google's ADK, given the URL of a card
    frameworks.py adk-object BASE TEXT      the same, given the card that a resolver loads
    frameworks.py agent-framework BASE TEXT Microsoft's agent-framework, given the card that a resolver loads
    frameworks.py strands BASE TEXT         Strands, given the base URL of a resolver
"""

import asyncio
import json
import sys


async def loaded(base):
    import httpx
    from a2a.client import A2ACardResolver

    async with httpx.AsyncClient(trust_env=False) as http:
        return await A2ACardResolver(http, base_url=base).get_agent_card()


async def adk(card, text):
    from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    runner = InMemoryRunner(agent=RemoteA2aAgent(name="remote", agent_card=card), app_name="test")
    session = await runner.session_service.create_session(app_name="test", user_id="test")
    message = types.Content(role="user", parts=[types.Part(text=text)])
    said = []
    async for event in runner.run_async(user_id="test", session_id=session.id, new_message=message):
        if event.error_message:
            return {"error": event.error_message}
        said += [part.text for part in event.content.parts]
    return {"answer": "".join(said)}


async def agent_framework(card, text):
    from agent_framework.a2a import A2AAgent

    async with A2AAgent(name="remote", agent_card=card) as agent:
        return {"answer": (await agent.run(text)).text}


async def strands(base, text):
    from strands.agent.a2a_agent import A2AAgent

    answer = await A2AAgent(endpoint=base).invoke_async(text)
    return {"answer": "".join(part["text"] for part in answer.message["content"])}


async def main(framework, address, text):
    match framework:
        case "adk":
            told = await adk(address, text)
        case "adk-object":
            told = await adk(await loaded(address), text)
        case "agent-framework":
            told = await agent_framework(await loaded(address), text)
        case "strands":
            told = await strands(address, text)
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
