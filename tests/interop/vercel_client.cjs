// Vercel's AI SDK with a2a-ai-provider calls an agent by the URL of its card, and prints the answer as one line of JSON.
//
//     vercel_client.cjs MODULES CARD_URL TEXT
'use strict';

const { join } = require('node:path');
const { pathToFileURL } = require('node:url');

// Both are modules that NODE_PATH does not lead to.
const load = (...path) => import(pathToFileURL(join(...path)).href);

async function main(modules, card, text) {
  globalThis.AI_SDK_LOG_WARNINGS = false;
  const { a2a } = await load(modules, 'a2a-ai-provider', 'dist', 'index.js');
  const { generateText } = await load(modules, 'ai', 'dist', 'index.mjs');
  const answer = await generateText({ model: a2a(card), prompt: text, maxRetries: 0 });
  console.log(JSON.stringify({ answer: answer.text }));
}

main(...process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
