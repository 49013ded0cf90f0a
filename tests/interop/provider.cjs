// An identity provider: `oidc-provider` with people, services and keys that a test changes through `/test/…`.
//
//     node provider.cjs PORT FILE
//
// FILE keeps people, services, addresses and keys, so that another process on the same port goes on as the same provider.
'use strict';

const { createHmac, generateKeyPairSync, createPublicKey } = require('node:crypto');
const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const { createServer } = require('node:http');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

const [port, file] = process.argv.slice(2);
const AUDIENCE = 'https://registry.example';

function newKey(kid) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' };
}

const state = existsSync(file)
  ? JSON.parse(readFileSync(file, 'utf8'))
  : { people: {}, services: {}, redirects: [], keys: [newKey('one')] };
const save = () => writeFileSync(file, JSON.stringify(state));

async function main() {
  // Modules in the new form are not looked up in NODE_PATH.
  const load = (name) => import(pathToFileURL(path.join(process.env.NODE_PATH, name)).href);
  const { Provider } = await load('oidc-provider/lib/index.js');
  const { SignJWT, importJWK } = await load('jose/dist/webapi/index.js');
  let issuer;
  let answer;

  function configure() {
    save();
    const provider = new Provider(issuer, {
      jwks: { keys: state.keys },
      clients: [
        { client_id: 'registry', client_secret: 'the-secret-of-the-registry', redirect_uris: state.redirects },
        // A program on a person's machine, which has no secret; its way back may have any port of that machine.
        {
          client_id: 'cli',
          application_type: 'native',
          token_endpoint_auth_method: 'none',
          redirect_uris: ['http://127.0.0.1/callback'],
          grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
          response_types: ['code'],
        },
        ...Object.keys(state.services).map((id) => ({
          client_id: id,
          client_secret: 'the-secret-of-a-service',
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
        })),
      ],
      claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
      conformIdTokenClaims: Boolean(state.tellsApart),
      cookies: { keys: ['a key of the tests'] },
      features: {
        clientCredentials: { enabled: true },
        deviceFlow: { enabled: true },
        devInteractions: { enabled: true },
        resourceIndicators: {
          enabled: true,
          defaultResource: (context, client) => (client.clientId === 'registry' ? undefined : AUDIENCE),
          getResourceServerInfo: (context, audience) => ({
            scope: '',
            audience,
            accessTokenFormat: 'jwt',
            accessTokenTTL: 600,
            jwt: { sign: { alg: 'RS256' } },
          }),
        },
      },
      issueRefreshToken: (context, client) => client.clientId === 'cli',
      extraTokenClaims: (context, token) => state.services[token.clientId],
      findAccount: (context, id) =>
        state.people[id] && { accountId: id, claims: () => ({ sub: id, ...state.people[id] }) },
      // Nobody is asked whether the registry may know who signs in.
      loadExistingGrant: async (context) => {
        const { client, session, provider: own } = context.oidc;
        const known = session.grantIdFor(client.clientId);
        if (known) return own.Grant.find(known);
        const grant = new own.Grant({ clientId: client.clientId, accountId: session.accountId });
        grant.addOIDCScope('openid profile email');
        await grant.save();
        return grant;
      },
    });
    answer = provider.callback();
  }

  // A token of any header and claims: by the first key, by its public half as a shared secret, or by none.
  async function sign({ header, claims, by }) {
    const key = state.keys[0];
    if (by === 'key') {
      const signer = new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: key.kid, ...header });
      return signer.sign(await importJWK(key, 'RS256'));
    }
    const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const signed = `${part(header)}.${part(claims)}`;
    if (by === 'none') return `${signed}.`;
    const shared = createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
    return `${signed}.${createHmac('sha256', shared).update(signed).digest('base64url')}`;
  }

  async function tested(request, response) {
    let body = '';
    for await (const part of request) body += part;
    const wanted = JSON.parse(body);
    let said = '';
    if (request.url === '/test/sign') said = await sign(wanted);
    if (request.url === '/test/set') Object.assign(state, wanted);
    if (request.url === '/test/rotate') state.keys.unshift(newKey(wanted.kid));
    configure();
    response.end(said);
  }

  const server = createServer((request, response) => {
    if (request.url.startsWith('/test/')) tested(request, response);
    else answer(request, response);
  });
  server.listen(Number(port), '127.0.0.1', () => {
    issuer = `http://127.0.0.1:${server.address().port}`;
    configure();
    console.log(`READY ${issuer}`);
  });
}

main();
