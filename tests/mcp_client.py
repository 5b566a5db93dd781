"""A client made of the protocol's official SDK: what a server answers to everything that sessgit has, as JSON.

A process of its own runs it, since only this file imports the SDK.
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"], env=dict(os.environ))
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        started = await session.initialize()
        await session.send_ping()
        tools = await session.list_tools()
        found = await session.call_tool("search", {"words": "lexer"})
        wrong = await session.call_tool("show", {"address": 7})
        prompts = await session.list_prompts()
        recall = await session.get_prompt("recall", {"subject": "the lexer"})
    answers = {"started": started, "tools": tools, "found": found, "wrong": wrong, "prompts": prompts, "recall": recall}
    print(json.dumps({name: answer.model_dump(mode="json", by_alias=True) for name, answer in answers.items()}))


asyncio.run(main())
