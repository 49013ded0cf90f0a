// An echo agent on @a2a-js/sdk 0.3: protocol 0.3 over JSON-RPC, HTTP+JSON and gRPC.
// CommonJS, because only `require` resolves packages through NODE_PATH.
'use strict';

const http = require('node:http');
const { randomUUID } = require('node:crypto');
const express = require('express');
const grpc = require('@grpc/grpc-js');
const {
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} = require('a2a-js-sdk-0.3/server');
const {
  UserBuilder,
  agentCardHandler,
  jsonRpcHandler,
  restHandler,
} = require('a2a-js-sdk-0.3/server/express');
const { A2AService, grpcService } = require('a2a-js-sdk-0.3/server/grpc');

const part = (text) => ({ kind: 'text', text });

const message = (ids, text) => ({
  kind: 'message',
  messageId: randomUUID(),
  role: 'agent',
  parts: [part(text)],
  ...ids,
});

// Publishes the events of one task.
class Work {
  constructor(context, bus) {
    this.bus = bus;
    this.userMessage = context.userMessage;
    this.ids = { taskId: context.taskId, contextId: context.contextId };
  }

  status(state, text) {
    const said = text === undefined ? undefined : message(this.ids, text);
    return { state, message: said, timestamp: new Date().toISOString() };
  }

  begin() {
    this.bus.publish({
      kind: 'task',
      id: this.ids.taskId,
      contextId: this.ids.contextId,
      status: this.status('submitted'),
      artifacts: [],
      history: [this.userMessage],
    });
  }

  update(state, text) {
    const final = state !== 'working';
    this.bus.publish({ kind: 'status-update', ...this.ids, status: this.status(state, text), final });
  }

  artifact(artifactId, name, content, append, lastChunk) {
    const parts = typeof content === 'string' ? [part(content)] : content;
    const artifact = { artifactId, name, parts };
    this.bus.publish({ kind: 'artifact-update', ...this.ids, artifact, append, lastChunk });
  }
}

// Tasks that never end, by their id: what ends them when they are cancelled.
const endless = new Map();

const echo = {
  async execute(context, bus) {
    const { parts } = context.userMessage;
    const isText = (part) => part.kind === 'text';
    const text = parts.filter(isText).map((part) => part.text).join(' ');
    console.log(`MESSAGE ${text}`);
    const work = new Work(context, bus);
    const begun = context.task !== undefined;
    if (!begun && !['ask me', 'give it back', 'work for ever', 'work in pieces'].includes(text)) {
      bus.publish(message({ contextId: context.contextId }, `node03 heard ${text}`));
      bus.finished();
      return;
    }
    if (!begun) work.begin();
    if (text === 'ask me') {
      work.update('input-required', 'which one?');
    } else if (text === 'give it back') {
      work.artifact('received', 'Received', parts.filter((part) => !isText(part)), false, true);
      work.update('completed');
    } else if (text === 'work for ever') {
      work.update('working', 'it takes a while');
      work.artifact('numbers', 'Numbers', 'one\n', false, false);
      await new Promise((resolve) => endless.set(context.taskId, resolve));
      work.update('canceled');
    } else if (text === 'work in pieces') {
      work.update('working', 'counting');
      ['one, ', 'two, ', 'three'].forEach((piece, nth) => {
        work.artifact('numbers', 'Numbers', piece, nth > 0, nth === 2);
      });
      work.update('completed');
    } else {
      work.artifact('answer', 'Answer', `node03 heard ${text}`, false, true);
      work.update('completed');
    }
    bus.finished();
  },
  async cancelTask(taskId) {
    endless.get(taskId)?.();
    endless.delete(taskId);
  },
};

const app = express();
require('./cors.cjs')(app);
const server = http.createServer(app);
const services = new grpc.Server();
const here = '127.0.0.1';
const open = grpc.ServerCredentials.createInsecure();
services.bindAsync(`${here}:0`, open, (error, port) => {
  if (error) throw error;
  server.listen(Number(process.argv[2] ?? 0), here, () => serve(`${here}:${port}`));
});

function serve(grpcAddress) {
  const base = `http://${here}:${server.address().port}`;
  const card = {
    protocolVersion: '0.3.0',
    name: 'Organ builder',
    description: 'Knows every pipe by its name.',
    version: '0.3.14',
    url: `${base}/rpc`,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [
      { url: `${base}/rpc`, transport: 'JSONRPC' },
      { url: `${base}/rest`, transport: 'HTTP+JSON' },
      { url: grpcAddress, transport: 'GRPC' },
    ],
    capabilities: { streaming: true, pushNotifications: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [
      {
        id: 'build-organs',
        name: 'Build organs',
        description: 'From the smallest pipe to the largest.',
        tags: ['music'],
        examples: ['hello'],
      },
    ],
  };
  const requestHandler = new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    echo,
    undefined,
    new InMemoryPushNotificationStore(),
  );
  const userBuilder = UserBuilder.noAuthentication;
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder }));
  app.use('/rest', restHandler({ requestHandler, userBuilder }));
  services.addService(A2AService, grpcService({ requestHandler, userBuilder }));
  console.log(`GRPC ${grpcAddress}`);
  console.log(`READY ${base}`);
}
