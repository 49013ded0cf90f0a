// An echo agent on @a2a-js/sdk 1: protocol 1.0 over JSON-RPC and HTTP+JSON.
// CommonJS, because only `require` resolves packages through NODE_PATH.
'use strict';

const http = require('node:http');
const { randomUUID } = require('node:crypto');
const express = require('express');
const { Role } = require('@a2a-js/sdk');
const { DefaultRequestHandler, InMemoryTaskStore } = require('@a2a-js/sdk/server');
const {
  UserBuilder,
  agentCardHandler,
  jsonRpcHandler,
  restHandler,
} = require('@a2a-js/sdk/server/express');

const echo = {
  async execute(context, bus) {
    const text = context.userMessage.parts.map((part) => part.content?.value ?? '').join(' ');
    bus.publish({
      kind: 'message',
      data: {
        messageId: randomUUID(),
        contextId: context.contextId,
        taskId: '',
        role: Role.ROLE_AGENT,
        parts: [
          {
            content: { $case: 'text', value: `node heard ${text}` },
            metadata: undefined,
            filename: '',
            mediaType: 'text/plain',
          },
        ],
        metadata: undefined,
        extensions: [],
        referenceTaskIds: [],
      },
    });
    bus.finished();
  },
  async cancelTask() {},
};

const app = express();
const server = http.createServer(app);

// The port is known before the card is built, so the card has the agent's real address.
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  const base = `http://127.0.0.1:${server.address().port}`;
  const card = {
    name: 'Piano tuner',
    description: 'Listens to strings and says which way to turn the pin.',
    version: '1.3.0',
    supportedInterfaces: [
      { url: `${base}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' },
      { url: `${base}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0', tenant: '' },
    ],
    provider: undefined,
    capabilities: { streaming: false, pushNotifications: false, extensions: [] },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [
      {
        id: 'tune-pianos',
        name: 'Tune pianos',
        description: 'Equal temperament, or any other.',
        tags: ['music'],
        examples: ['hello'],
        inputModes: [],
        outputModes: [],
        securityRequirements: [],
      },
    ],
    signatures: [],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), echo);
  const userBuilder = UserBuilder.noAuthentication;
  app.use(
    '/.well-known/agent-card.json',
    agentCardHandler({ agentCardProvider: async () => card }),
  );
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder }));
  app.use('/rest', restHandler({ requestHandler, userBuilder }));
  console.log(`READY ${base}`);
});
