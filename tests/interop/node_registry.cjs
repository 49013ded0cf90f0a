// Talks to the registry itself as an agent, with @a2a-js/sdk 1's own resolver and client: one line a finding.
// Arguments: the base URL, a bearer token or `-`, and the binding: `jsonrpc` or `rest`.
'use strict';

const { randomUUID } = require('node:crypto');
const { Role, TaskState, verifyAgentCardSignature } = require('@a2a-js/sdk');
const {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} = require('@a2a-js/sdk/client');
const jose = require('jose');

// The SDK reports every signature that it refuses there.
console.debug = () => {};

function request(text) {
  return {
    tenant: '',
    message: {
      messageId: randomUUID(),
      contextId: '',
      taskId: '',
      role: Role.ROLE_USER,
      parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: 'text/plain' }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: undefined,
    metadata: undefined,
  };
}

function found(artifacts) {
  const parts = artifacts.flatMap((artifact) => artifact.parts);
  const data = parts.find((part) => part.content?.$case === 'data').content.value;
  return data.results.map((result) => result.identifier).join(' ');
}

// Whether the SDK accepts the card's signature by the keys that the registry publishes.
async function isVerified(base, card) {
  const published = await (await fetch(`${base}/.well-known/jwks.json`)).json();
  const find = (kid) => jose.importJWK(published.keys.find((key) => key.kid === kid), 'ES256');
  try {
    await verifyAgentCardSignature(find)(card);
    return true;
  } catch {
    return false;
  }
}

async function refused(name, call) {
  try {
    await call();
    console.log(`${name} nothing`);
  } catch (error) {
    console.log(`${name} ${error.name} ${error.message}`);
  }
}

async function main(base, token, binding) {
  const headers = token === '-' ? {} : { Authorization: `Bearer ${token}` };
  const fetchImpl = (url, init = {}) => {
    const all = new Headers(init.headers);
    Object.entries(headers).forEach(([name, value]) => all.set(name, value));
    return fetch(url, { ...init, headers: all });
  };
  const card = await new DefaultAgentCardResolver({ fetchImpl }).resolve(base);
  console.log(`CARD ${card.name}`);
  console.log(`VERIFIED ${await isVerified(base, card)}`);
  const Transport = binding === 'rest' ? RestTransportFactory : JsonRpcTransportFactory;
  const factory = new ClientFactory({ transports: [new Transport({ fetchImpl })] });
  const client = await factory.createFromAgentCard(card);
  const streamed = [];
  for await (const event of client.sendMessageStream(request('flights'))) {
    streamed.push(event.payload);
  }
  console.log(`STREAM ${streamed.map((event) => event.$case).join(' ')}`);
  const updates = streamed.filter((event) => event.$case === 'artifactUpdate');
  console.log(`STREAMED ${found(updates.map((event) => event.value.artifact))}`);
  const task = await client.sendMessage(request('flights'));
  console.log(`SENT ${TaskState[task.status.state]} ${found(task.artifacts)}`);
  const got = await client.getTask({ tenant: '', id: task.id, historyLength: undefined });
  console.log(`GOT ${JSON.stringify(got) === JSON.stringify(task)}`);
  const listed = await client.listTasks({
    tenant: '',
    contextId: '',
    status: TaskState.TASK_STATE_UNSPECIFIED,
    pageSize: 1,
    pageToken: '',
    historyLength: undefined,
    statusTimestampAfter: undefined,
    includeArtifacts: undefined,
  });
  console.log(`LISTED ${listed.tasks.length} ${listed.totalSize}`);
  const id = task.id;
  await refused('CANCEL', () => client.cancelTask({ tenant: '', id, metadata: undefined }));
  await refused('GET', () => client.getTask({ tenant: '', id: 'no-such-task', historyLength: undefined }));
  await refused('SUBSCRIBE', () => client.resubscribeTask({ tenant: '', id }).next());
  const asked = await client.sendMessage(request(' '));
  console.log(`ASKED ${TaskState[asked.status.state]}`);
  const ended = await client.cancelTask({ tenant: '', id: asked.id, metadata: undefined });
  console.log(`ENDED ${TaskState[ended.status.state]}`);
}

main(...process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
