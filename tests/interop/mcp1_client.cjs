// A client on the JavaScript SDK of MCP in its first major version: finds an agent and reads it, and prints what it was told as
// one line of JSON.
//
//     mcp1_client.cjs http URL
//     mcp1_client.cjs stdio PROGRAM
//
// The settings of the program are taken from the environment.
'use strict';

const { Client } = require('mcp-sdk-1/client/index.js');
const { StdioClientTransport } = require('mcp-sdk-1/client/stdio.js');
const { StreamableHTTPClientTransport } = require('mcp-sdk-1/client/streamableHttp.js');

async function main(kind, target) {
  const transport = kind === 'stdio'
    ? new StdioClientTransport({ command: target, args: ['mcp'], env: process.env })
    : new StreamableHTTPClientTransport(new URL(target));
  let revision;
  transport.setProtocolVersion = ((set) => (version) => {
    revision = version;
    set?.call(transport, version);
  })(transport.setProtocolVersion);
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  const { tools } = await client.listTools();
  // The SDK checks each structured result against the schema of its tool.
  const found = await client.callTool({
    name: 'search_agents',
    arguments: { text: 'gardening', lifecycle: 'approved', page_size: '5' },
  });
  const missing = await client.callTool({ name: 'get_agent', arguments: { agent: 'none' } });
  console.log(JSON.stringify({
    revision,
    tools: tools.map((tool) => tool.name),
    structured: tools.every((tool) => tool.outputSchema) && Boolean(found.structuredContent),
    found: [Boolean(found.isError), found.content[0].text],
    missing: [Boolean(missing.isError), missing.content[0].text],
  }));
  await client.close();
}

main(process.argv[2], process.argv[3]).catch((error) => {
  console.error(error);
  process.exit(1);
});
