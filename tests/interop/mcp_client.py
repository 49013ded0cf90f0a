"""A client on the Python SDK of MCP: finds an agent, reads it, and prints what it was told as one line of JSON for each mode.

    mcp_client.py MODE,… http URL [TOKEN]
    mcp_client.py MODE,… stdio PROGRAM

MODE is `legacy`, `auto` or a revision. The settings of the program are taken from the environment.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


def server(kind, target, token):
    if kind == "stdio":
        return StdioServerParameters(command=target, args=["mcp"], env=dict(os.environ))
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    client = httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60)
    return streamable_http_client(target, http_client=client)


async def talk(mode, kind, target, token=None):
    async with Client(server(kind, target, token), mode=mode) as client:
        tools = (await client.list_tools()).tools
        # The SDK checks each structured result against the schema of its tool.
        found = await client.call_tool("search_agents", {"text": "gardening"})
        agents = found.structured_content["agents"]
        about = {"agent": agents[0]["id"]} if agents else {"agent": "none"}
        read = [await client.call_tool(tool, about) for tool in ("get_agent", "get_card", "check_agent")]
        facets = await client.call_tool("list_facets", {})
        missing = await client.call_tool("get_agent", {"agent": "none"})
        print(json.dumps({
            "revision": client.protocol_version,
            "tools": [tool.name for tool in tools],
            "agents": [agent["name"] for agent in agents],
            "read": [not result.is_error for result in read],
            "card": read[1].structured_content["card"] if agents else None,
            "total": facets.structured_content["total"],
            "missing": [missing.is_error, missing.content[0].text],
        }))


async def main(modes, *rest):
    for mode in modes.split(","):
        await talk(mode, *rest)


asyncio.run(main(*sys.argv[1:]))
