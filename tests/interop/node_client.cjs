// Loads a card with @a2a-js/sdk 1's own resolver from a base URL, sends a text, prints the reply.
'use strict';

const { randomUUID } = require('node:crypto');
const { Role } = require('@a2a-js/sdk');
const { ClientFactory, DefaultAgentCardResolver } = require('@a2a-js/sdk/client');

async function main(base, text) {
  const card = await new DefaultAgentCardResolver().resolve(base);
  console.log(`CARD ${card.name}`);
  const client = await new ClientFactory().createFromAgentCard(card);
  const answer = await client.sendMessage({
    tenant: '',
    message: {
      messageId: randomUUID(),
      contextId: '',
      taskId: '',
      role: Role.ROLE_USER,
      parts: [
        {
          content: { $case: 'text', value: text },
          metadata: undefined,
          filename: '',
          mediaType: 'text/plain',
        },
      ],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: undefined,
    metadata: undefined,
  });
  const said = answer.parts.map((part) => part.content?.value ?? '').join(' ');
  console.log(`ANSWER ${said}`);
}

main(process.argv[2], process.argv[3]).catch((error) => {
  console.error(error);
  process.exit(1);
});
