// An echo agent on @a2a-js/sdk 1: protocol 1.0 over JSON-RPC, HTTP+JSON and gRPC.
// CommonJS, because only `require` resolves packages through NODE_PATH.
'use strict';

const http = require('node:http');
const { randomUUID } = require('node:crypto');
const express = require('express');
const grpc = require('@grpc/grpc-js');
const { Role, TaskState } = require('@a2a-js/sdk');
const {
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} = require('@a2a-js/sdk/server');
const {
  UserBuilder,
  agentCardHandler,
  jsonRpcHandler,
  restHandler,
} = require('@a2a-js/sdk/server/express');
const { A2AService, grpcService } = require('@a2a-js/sdk/server/grpc');

const part = (text) => ({
  content: { $case: 'text', value: text },
  metadata: undefined,
  filename: '',
  mediaType: 'text/plain',
});

const message = (context, taskId, text) => ({
  messageId: randomUUID(),
  contextId: context.contextId,
  taskId,
  role: Role.ROLE_AGENT,
  parts: [part(text)],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});

// Publishes the events of one task.
class Work {
  constructor(context, bus) {
    this.context = context;
    this.bus = bus;
    this.ids = { taskId: context.taskId, contextId: context.contextId };
  }

  status(state, text) {
    const said = text === undefined ? undefined : message(this.context, this.ids.taskId, text);
    return { state, message: said, timestamp: new Date().toISOString() };
  }

  begin() {
    const data = {
      id: this.ids.taskId,
      contextId: this.ids.contextId,
      status: this.status(TaskState.TASK_STATE_SUBMITTED),
      artifacts: [],
      history: [this.context.userMessage],
      metadata: undefined,
    };
    this.bus.publish({ kind: 'task', data });
  }

  goOn() {
    const status = this.status(TaskState.TASK_STATE_WORKING);
    this.bus.publish({ kind: 'task', data: { ...this.context.task, status } });
  }

  update(state, text) {
    const data = { ...this.ids, status: this.status(state, text), metadata: undefined };
    this.bus.publish({ kind: 'statusUpdate', data });
  }

  artifact(artifactId, name, content, append, lastChunk) {
    const artifact = {
      artifactId,
      name,
      description: '',
      parts: typeof content === 'string' ? [part(content)] : content,
      metadata: undefined,
      extensions: [],
    };
    const data = { ...this.ids, artifact, append, lastChunk, metadata: undefined };
    this.bus.publish({ kind: 'artifactUpdate', data });
  }
}

// Tasks that never end, by their id: what ends them when they are cancelled.
const endless = new Map();

const echo = {
  async execute(context, bus) {
    const isText = (part) => part.content?.$case === 'text';
    const { parts } = context.userMessage;
    const text = parts.filter(isText).map((part) => part.content.value).join(' ');
    console.log(`MESSAGE ${text}`);
    const work = new Work(context, bus);
    const begun = context.task !== undefined;
    if (!begun && !['ask me', 'give it back', 'work for ever', 'work in pieces'].includes(text)) {
      bus.publish({ kind: 'message', data: message(context, '', `node heard ${text}`) });
      bus.finished();
      return;
    }
    // The SDK lets every stream begin with the task, that of a task that goes on too.
    if (begun) work.goOn();
    else work.begin();
    if (text === 'ask me') {
      work.update(TaskState.TASK_STATE_INPUT_REQUIRED, 'which one?');
    } else if (text === 'give it back') {
      work.artifact('received', 'Received', parts.filter((part) => !isText(part)), false, true);
      work.update(TaskState.TASK_STATE_COMPLETED);
    } else if (text === 'work for ever') {
      work.update(TaskState.TASK_STATE_WORKING, 'it takes a while');
      work.artifact('numbers', 'Numbers', 'one\n', false, false);
      await new Promise((resolve) => endless.set(context.taskId, resolve));
      work.update(TaskState.TASK_STATE_CANCELED);
    } else if (text === 'work in pieces') {
      work.update(TaskState.TASK_STATE_WORKING, 'counting');
      ['one, ', 'two, ', 'three'].forEach((piece, nth) => {
        work.artifact('numbers', 'Numbers', piece, nth > 0, nth === 2);
      });
      work.update(TaskState.TASK_STATE_COMPLETED);
    } else {
      work.artifact('answer', 'Answer', `node heard ${text}`, false, true);
      work.update(TaskState.TASK_STATE_COMPLETED);
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

// Both ports are known before the card is built, so the card has the agent's real addresses. The SDK serves over a binding only
// the versions that the card names for it.
const services = new grpc.Server();
const here = '127.0.0.1';
const open = grpc.ServerCredentials.createInsecure();
services.bindAsync(`${here}:0`, open, (error, port) => {
  if (error) throw error;
  server.listen(Number(process.argv[2] ?? 0), here, () => serve(`${here}:${port}`));
});

function serve(grpcAddress) {
  const base = `http://127.0.0.1:${server.address().port}`;
  const card = {
    name: 'Piano tuner',
    description: 'Listens to strings and says which way to turn the pin.',
    version: '1.3.0',
    supportedInterfaces: [
      { url: `${base}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' },
      { url: `${base}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0', tenant: '' },
      { url: grpcAddress, protocolBinding: 'GRPC', protocolVersion: '1.0', tenant: '' },
    ],
    provider: undefined,
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true, extensions: [] },
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
  const requestHandler = new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    echo,
    undefined,
    new InMemoryPushNotificationStore(),
    undefined,
    { ...card, name: 'Piano tuner, extended' },
  );
  const userBuilder = UserBuilder.noAuthentication;
  app.use(
    '/.well-known/agent-card.json',
    agentCardHandler({ agentCardProvider: async () => card }),
  );
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder }));
  app.use('/rest', restHandler({ requestHandler, userBuilder }));
  services.addService(A2AService, grpcService({ requestHandler, userBuilder }));
  console.log(`GRPC ${grpcAddress}`);
  console.log(`READY ${base}`);
}
