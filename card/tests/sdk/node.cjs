// Signs and verifies cards with @a2a-js/sdk 1; reads and writes what `py1.py` does.

const fs = require('node:fs');
const { AgentCard, generateAgentCardSignature, verifyAgentCardSignature } = require('@a2a-js/sdk');
const jose = require('jose');

// The SDK reports every failed try there.
console.debug = () => {};

async function work({ card, alg, kid, key, keys }) {
  const read = AgentCard.fromJSON(JSON.parse(card));
  if (key) {
    const privateKey = await jose.importPKCS8(key, alg);
    const signed = await generateAgentCardSignature(privateKey, { alg, kid, typ: 'JOSE' })(read);
    return JSON.stringify(AgentCard.toJSON(signed));
  }
  const found = JSON.parse(keys).keys;
  const find = (wanted) => jose.importJWK(found.find((jwk) => jwk.kid === wanted), alg);
  try {
    await verifyAgentCardSignature(find)(read);
    return true;
  } catch {
    return false;
  }
}

async function main() {
  const results = [];
  for (const job of JSON.parse(fs.readFileSync(0, 'utf8'))) {
    results.push(await work(job));
  }
  console.log(JSON.stringify(results));
}

main();
