/** Security of connections to an xDS source: TLS, tokens, and limits. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServerCredentials } from '@grpc/grpc-js';
import { afterEach, expect, test } from 'vitest';
import { createAuthority } from '../../../../test/certs/authority.ts';
import {
  ConfigSourceServer,
  type ConfigSourceServerOptions,
  entrySpec,
} from '../../../../test/harness/config-source-server.ts';
import { ControlPlane, stopControlPlanes } from '../../../../test/harness/control-plane.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { linesOf } from '../../../../test/harness/logged-line.ts';

const cleanups: (() => void)[] = [];
afterEach(async () => {
  await stopControlPlanes();
  for (const cleanup of cleanups.splice(0)) cleanup();
});

const authority = createAuthority();
const unknownAuthority = createAuthority('another authority');

async function startServer(options: ConfigSourceServerOptions): Promise<ConfigSourceServer> {
  const server = await ConfigSourceServer.start({ protocol: 'sotw', ...options });
  cleanups.push(() => server.stop());
  server.put('ServiceEntry', 'shop/web', entrySpec('web.example.com'));
  return server;
}

function serverCredentials({ host = '127.0.0.1', clients = false } = {}): ServerCredentials {
  const { certificate, privateKey } = authority.issue([host]);
  const pair = { cert_chain: Buffer.from(certificate), private_key: Buffer.from(privateKey) };
  return ServerCredentials.createSsl(Buffer.from(authority.certificate), [pair], clients);
}

function folder(files: Record<string, string>): (name: string) => string {
  const root = mkdtempSync(join(tmpdir(), 'chartpilot-source-'));
  cleanups.push(() => rmSync(root, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, name), text);
  return (name) => join(root, name);
}

const createPlane = (
  server: ConfigSourceServer,
  tls: object | undefined,
  env: NodeJS.ProcessEnv = {},
): ControlPlane => {
  const sources = [{ address: server.address, ...(tls && { tlsSettings: tls }) }];
  return new ControlPlane(
    {},
    {},
    ({ root }) => writeFileSync(join(root, 'mesh'), JSON.stringify({ configSources: sources })),
    env,
  );
};

const reasonOf = async (plane: ControlPlane): Promise<string> =>
  ((await plane.get('/debug/configsourcez')).json() as { reason: string }[])[0]?.reason ?? '';

test('an xDS source verifies the server with CA certificates from text or a file, and sends its own client certificate', async () => {
  const at = folder({ 'root.pem': authority.certificate });
  const simple = createPlane(await startServer({ credentials: serverCredentials() }), {
    mode: 'SIMPLE',
    caCertificates: authority.certificate,
  });
  await simple.ready();
  const { certificate, privateKey } = authority.issue(['client']);
  const pair = folder({ 'cert.pem': certificate, 'key.pem': privateKey });
  const mutual = createPlane(await startServer({ credentials: serverCredentials({ clients: true }) }), {
    ...{ mode: 'MUTUAL', caCertificates: at('root.pem') },
    ...{ clientCertificate: pair('cert.pem'), privateKey: pair('key.pem') },
  });
  await mutual.ready();
  expect((await mutual.subscribe()).clusters).toContain('outbound|80||web.example.com');
});

test.each<[string, object, RegExp]>([
  [
    'its certificate is from another CA',
    { mode: 'SIMPLE', caCertificates: unknownAuthority.certificate },
    /unable to verify|certificate/,
  ],
  [
    'its certificate has another name',
    { mode: 'SIMPLE', caCertificates: authority.certificate, subjectAltNames: ['config.example.com'] },
    /altnames|Host:/,
  ],
  [
    'a certificate file is missing',
    { mode: 'SIMPLE', caCertificates: '/no/such/root.pem' },
    /tlsSettings\.caCertificates.*\/no\/such\/root\.pem/,
  ],
  ['ISTIO_MUTUAL is configured without a CA', { mode: 'ISTIO_MUTUAL' }, /tlsSettings\.mode.*ISTIO_MUTUAL needs/],
])('an xDS source does not read a server if %s', async (_, tls, reason) => {
  const server = await startServer({ credentials: serverCredentials() });
  const plane = createPlane(server, tls);
  await eventually('the reason is shown', async () => reason.test(await reasonOf(plane)));
  expect((await plane.get('/ready')).status).toBe(503);
  expect(server.requests).toEqual([]);
});

test('settings that do not verify the server are rejected, and the error names the field', async () => {
  const plane = createPlane(await startServer({}), { mode: 'MUTUAL', clientCertificate: '/a', privateKey: '/b' });
  await eventually(
    'it is reported',
    () =>
      linesOf(plane.lines, 'object.rejected', { reason: /configSources\[0\]\.tlsSettings\.caCertificates/ }).length > 0,
  );
});

test('a token is read again for each connection, and never sent in plaintext', async () => {
  const at = folder({ token: 'first' });
  let expected = 'first';
  const env = { PILOT_XDS_SOURCE_TOKEN_FILE: at('token') };
  const server = await startServer({ credentials: serverCredentials(), token: () => expected });
  const plane = createPlane(server, { mode: 'SIMPLE', caCertificates: authority.certificate }, env);
  await plane.ready();
  expected = 'second';
  server.close();
  await eventually('it is refused', async () => /UNAUTHENTICATED|no valid token/.test(await reasonOf(plane)));
  writeFileSync(at('token'), 'second\n');
  await eventually('it is connected', async () =>
    (await plane.get('/debug/configsourcez')).text.includes('"connected"'),
  );
  const plaintext = createPlane(await startServer({ token: () => 'second' }), undefined, env);
  await eventually('it is refused', async () => (await reasonOf(plaintext)).includes('no valid token: undefined'));
});

test('a server that sends invalid or too much data is disconnected, and deletes no objects', async () => {
  const server = await startServer({});
  const plane = createPlane(server, undefined, {
    PILOT_XDS_SOURCE_MAX_MESSAGE_BYTES: '20000',
    PILOT_XDS_SOURCE_MAX_OBJECTS: '5',
  });
  await plane.ready();
  const clusters = async () => (await plane.subscribe()).clusters;
  server.writeRaw(Buffer.from('ffffffffff', 'hex'));
  await eventually('it connects again', () => server.streams >= 2);
  expect(await clusters()).toContain('outbound|80||web.example.com');
  const names = Array.from({ length: 10 }, (_, index) => `shop/e${index}`);
  for (const name of names)
    server.put('ServiceEntry', name, entrySpec(`${name.slice(5)}.example.com`), { push: false });
  server.push('ServiceEntry');
  await eventually('too many objects are rejected', () =>
    server.nacks.some(({ error }) => /has more than 5 objects/.test(error)),
  );
  server.delete('ServiceEntry', ...names);
  server.writeRaw(Buffer.alloc(30_000));
  await eventually('a message that is too long ends the stream', async () =>
    (await reasonOf(plane)).includes('exceeds the limit of 20000 bytes'),
  );
  await eventually('it is connected again', async () =>
    (await plane.get('/debug/configsourcez')).text.includes('"connected"'),
  );
  expect(await clusters()).toContain('outbound|80||web.example.com');
});

test('a server that sends continuously is read at a limited rate', async () => {
  const server = await startServer({});
  const plane = createPlane(server, undefined, { PILOT_XDS_SOURCE_MAX_RESPONSES: '10' });
  await plane.ready();
  const acknowledgedCount = (): number => server.requests.filter(({ nonce }) => nonce !== '').length;
  const previous = acknowledgedCount();
  for (let index = 0; index < 300; index++) server.push('ServiceEntry');
  server.put('ServiceEntry', 'shop/last', entrySpec('last.example.com'));
  const startedMs = performance.now();
  await eventually('some are read', () => acknowledgedCount() > previous + 45);
  const seconds = (performance.now() - startedMs) / 1_000;
  // A burst of 50 responses, then 10 per second.
  expect(acknowledgedCount() - previous).toBeLessThan(50 + 10 * (seconds + 1) + 30);
});
