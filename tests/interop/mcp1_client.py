"""A client on the Python SDK of MCP from before it had structured results: finds an agent and reads it, and prints what it was
told as one line of JSON.

    mcp1_client.py http URL
    mcp1_client.py stdio PROGRAM

The settings of the program are taken from the environment.
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


def server(kind, target):
    if kind == "stdio":
        return stdio_client(StdioServerParameters(command=target, args=["mcp"], env=dict(os.environ)))
    return streamablehttp_client(target)


async def main(kind, target):
    async with server(kind, target) as streams, ClientSession(*streams[:2]) as session:
        begun = await session.initialize()
        tools = (await session.list_tools()).tools
        found = await session.call_tool("search_agents", {"text": "gardening", "lifecycle": "approved", "page_size": "5"})
        missing = await session.call_tool("get_agent", {"agent": "none"})
        told = [tool.model_dump() for tool in tools] + [found.model_dump(), missing.model_dump()]
        print(json.dumps({
            "revision": begun.protocolVersion,
            "tools": [tool.name for tool in tools],
            "structured": any(one.get(name) is not None for one in told for name in ("outputSchema", "structuredContent")),
            "found": [found.isError, found.content[0].text],
            "missing": [missing.isError, missing.content[0].text],
        }))


asyncio.run(main(*sys.argv[1:]))
