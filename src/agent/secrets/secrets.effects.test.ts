/** Tests a workload's secrets from files, as received by Envoy over a real socket. */
import { spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer as createHttp2 } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { eventually, eventuallyHolds } from '../../../test/harness/eventually.ts';
import {
  givenSecrets,
  type StartedSecrets,
  secretsOf,
  startSecrets,
  stopSecrets,
} from '../../../test/harness/given-secrets.ts';
import { SecretClient, type SecretResponse } from '../../../test/harness/secret-client.ts';
import { defaultProxyConfig } from '../../model/mesh/proxy-config.ts';
import { GrpcConnection, onCallEnd } from '../../runtime/grpc/grpc-client.ts';
import { frameOf } from '../../runtime/grpc/grpc-frames.ts';
import { OptionErrors } from '../../runtime/option-errors.ts';
import { type IdentityOptions, identityOptions } from '../options/identity-options.ts';

const authority = createAuthority();
let directory: string;
const cleanups: (() => unknown)[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sds-'));
});

afterEach(async () => {
  for (const end of cleanups.splice(0).reverse()) end();
  await stopSecrets();
  rmSync(directory, { recursive: true });
});

const emptyResponse: SecretResponse = { version: '', nonce: '', name: '', chain: '', key: '', roots: '', crl: '' };
const socket = (): string => join(directory, 'uds/socket');
const mounted = () => ({
  certificate: join(directory, 'certs/cert-chain.pem'),
  key: join(directory, 'certs/key.pem'),
  roots: join(directory, 'certs/root-cert.pem'),
});

function write(file: string, content: string): void {
  mkdirSync(join(directory, file, '..'), { recursive: true });
  writeFileSync(join(directory, `${file}.new`), content);
  renameSync(join(directory, `${file}.new`), join(directory, file));
}

function issue(name = 'spiffe://cluster.local/ns/shop/sa/cart') {
  const { certificate, privateKey } = authority.issue([name]);
  write('certs/cert-chain.pem', certificate);
  write('certs/key.pem', privateKey);
  return { certificate, privateKey };
}

async function start(change: Partial<IdentityOptions['settings']> = {}, outputDirectory = ''): Promise<StartedSecrets> {
  return givenSecrets(settingsWith(change, outputDirectory));
}

function settingsWith(change: Partial<IdentityOptions['settings']> = {}, outputDirectory = '') {
  const settings = {
    source: 'files' as const,
    reason: 'mounted',
    socket: socket(),
    certificateDirectory: join(directory, 'certs'),
    rootDirectory: join(directory, 'certs'),
    grace: { ratio: 0.5, jitter: 0 },
    writesOutput: outputDirectory !== '',
    ...change,
  };
  return { identity: { ...secretsOf({ env: {} }).identity, settings, mounted: mounted(), outputDirectory }, env: {} };
}

async function client(method?: string): Promise<SecretClient> {
  const client = await SecretClient.open(socket(), method);
  cleanups.push(() => client.close());
  return client;
}

test('sends certificate, key and roots to Envoy and again after each change, but not in response to an acknowledgement', async () => {
  const first = issue();
  write('certs/root-cert.pem', authority.certificate);
  const secrets = await start();
  expect(statSync(socket()).mode & 0o777).toBe(0o600);
  const [leaf, roots] = [await client(), await client()];
  leaf.request('default');
  roots.request('ROOTCA');
  const response = await leaf.next();
  expect(response).toMatchObject({ name: 'default', chain: first.certificate, key: first.privateKey });
  expect((await roots.next()).roots).toBe(authority.certificate);
  leaf.acknowledge(response, 'default');
  await eventually('it is taken', () => secrets.events('sds.acknowledged').length === 1);
  const secondCertificate = issue();
  expect(await leaf.next(2)).toMatchObject({
    name: 'default',
    chain: secondCertificate.certificate,
    key: secondCertificate.privateKey,
  });
  leaf.acknowledge(leaf.responses[1]!, 'default');
  await eventually('it is taken', () => secrets.events('sds.acknowledged').length === 2);
  expect(leaf.responses).toHaveLength(2);
  expect(roots.responses).toHaveLength(1);
});

test('serves each of three versions of a switched link, never with the key of another certificate', async () => {
  const volume = (name: string, key = authority.issue(['a'])): string => {
    write(`certs/${name}/cert-chain.pem`, key.certificate);
    write(`certs/${name}/key.pem`, key.privateKey);
    write(`certs/${name}/root-cert.pem`, authority.certificate);
    symlinkSync(name, join(directory, 'certs/..data_tmp'));
    renameSync(join(directory, 'certs/..data_tmp'), join(directory, 'certs/..data'));
    return key.certificate;
  };
  const previous = volume('..0');
  for (const file of ['cert-chain.pem', 'key.pem', 'root-cert.pem']) {
    symlinkSync(`..data/${file}`, join(directory, 'certs', file));
  }
  const secrets = await start();
  const envoy = await client();
  envoy.request('default');
  expect((await envoy.next()).chain).toBe(previous);
  for (const change of [1, 2, 3]) {
    envoy.acknowledge(envoy.responses.at(-1)!, 'default');
    const certificate = volume(`..${change}`);
    expect((await envoy.next(change + 1)).chain).toBe(certificate);
  }
  volume('..4', { ...authority.issue(['a']), privateKey: authority.issue(['b']).privateKey });
  await eventually('it is reported', () => secrets.events('secret.unavailable').length > 0);
  expect(secrets.events('secret.unavailable')[0]).toMatchObject({
    name: 'default',
    code: 'PRIVATE_KEY_MISMATCH',
  });
  const lateClient = await client();
  lateClient.request('default');
  expect((await lateClient.next()).chain).toBe(envoy.responses.at(-1)!.chain);
  expect(envoy.responses).toHaveLength(4);
});

test('sends other secrets without waiting for a missing one, and sends that secret when its files appear', async () => {
  const secrets = await start();
  const [leaf, roots, other] = [await client(), await client(), await client()];
  leaf.request('default');
  const file = join(directory, 'more/ca.pem');
  other.request(`file-root:${file}`);
  roots.request('ROOTCA');
  write('certs/root-cert.pem', authority.certificate);
  expect((await roots.next()).roots).toBe(authority.certificate);
  write('more/ca.pem', authority.certificate);
  expect(await other.next()).toMatchObject({ name: `file-root:${file}`, roots: authority.certificate });
  issue();
  await leaf.next();
  // No subscriber remains.
  other.close();
  await eventually('it is let go', () =>
    secrets.events('sds.unsubscribed').some(({ name }) => name === `file-root:${file}`),
  );
});

test('serves file secrets of services, but no certificate, to a workload without an identity', async () => {
  write('certs/root-cert.pem', authority.certificate);
  const tlsSettings = { mode: 'SIMPLE', caCertificates: mounted().roots };
  const config = { ...defaultProxyConfig, controlPlaneAuthPolicy: 'NONE' as const, tracing: { tlsSettings } };
  const identity = identityOptions({ config, env: {} }, new OptionErrors());
  expect(identity.settings.source).toBe('files of services');
  const settings = { ...identity.settings, socket: socket() };
  const secrets = await givenSecrets({ identity: { ...identity, settings }, env: {} });
  const envoy = await secrets.client();
  envoy.request('default', `file-root:${mounted().roots}`);
  expect(await envoy.next()).toMatchObject({ name: `file-root:${mounted().roots}`, roots: authority.certificate });
  expect(envoy.responses).toHaveLength(1);
});

test('serves a key pair and the roots of the operating system from their files', async () => {
  await start();
  const { certificate, privateKey } = issue();
  const envoy = await client();
  const name = `file-cert:${mounted().certificate}~${mounted().key}`;
  envoy.request(name, 'file-root:system');
  const responses = [await envoy.next(1), await envoy.next(2)];
  expect(responses.find((one) => one.name === name)).toMatchObject({ chain: certificate, key: privateKey });
  expect(responses.find((one) => one.name === 'file-root:system')?.roots).toContain('BEGIN CERTIFICATE');
});

test.each(['nonsense', 'file-cert:a', 'file-cert:a~b~c', 'file-root:', '', '__proto__', `x${'y'.repeat(3_000)}`])(
  'ends only a stream that requests nothing but the unknown name %j',
  async (name) => {
    write('certs/root-cert.pem', authority.certificate);
    await start();
    const [singleClient, with_] = [await client(), await client()];
    singleClient.request(name);
    await eventually('the end', () => singleClient.ended);
    expect(singleClient.ended).toContain('NOT_FOUND');
    with_.request(name, 'ROOTCA');
    expect((await with_.next()).name).toBe('ROOTCA');
    expect(with_.ended).toBeUndefined();
  },
);

test('ends each stream that requests an unavailable file secret, until the secret is available', async () => {
  write('certs/root-cert.pem', authority.certificate);
  const secrets = await start();
  const [otherServer, otherClient] = [await client(), await client()];
  otherServer.request('ROOTCA', ...Array.from({ length: 99 }, (_, i) => `file-root:/nowhere/${i}`));
  otherClient.request('ROOTCA', ...Array.from({ length: 99 }, (_, i) => `file-root:/nowhere/else/${i}`));
  await otherServer.next();
  await otherClient.next();
  const name = `file-root:${mounted().roots}`;
  const first = await client();
  first.request('ROOTCA', name);
  await eventually('it is refused', () => secrets.events('sds.reject').length > 0);
  const singleClient = await client();
  singleClient.request(name);
  await eventually('the end', () => singleClient.ended);
  expect(singleClient.ended).toContain('limit of 200 secrets reached');
  otherServer.close();
  await eventually('there is room', () => secrets.events('sds.unsubscribed').length >= 99);
  const lateClient = await client();
  lateClient.request(name);
  expect((await lateClient.next()).name).toBe(name);
  expect((await first.next(2)).name).toBe(name);
});

test('sends another secret if a client adds its name when it repeats an acknowledgement with the same nonce', async () => {
  issue();
  write('certs/root-cert.pem', authority.certificate);
  const secrets = await start();
  const one = await client();
  one.request('default');
  const response = await one.next();
  one.acknowledge(response, 'default');
  one.acknowledge(response, 'default', 'ROOTCA');
  expect((await one.next(2)).name).toBe('ROOTCA');
  // A repeated acknowledgement is ignored, and an unsubscribed secret is not sent.
  one.acknowledge(one.responses[1]!, 'ROOTCA');
  one.acknowledge(one.responses[1]!, 'ROOTCA');
  await eventually('it has left', () => secrets.events('sds.unsubscribed').length > 0);
  expect(one.responses).toHaveLength(2);
  expect(one.ended).toBeUndefined();
});

test('ignores a nonce of another stream, and sends the secrets of the first request', async () => {
  write('certs/root-cert.pem', authority.certificate);
  await start();
  const one = await client();
  one.acknowledge({ ...emptyResponse, version: 'one', nonce: '7' }, 'ROOTCA');
  expect((await one.next()).name).toBe('ROOTCA');
});

test("reports a secret that Envoy rejects with Envoy's message, and sends no response until the next version of the secret", async () => {
  issue();
  const secrets = await start();
  const envoy = await client();
  envoy.request('default');
  envoy.reject(await envoy.next(), 'Failed to load certificate chain', 'default');
  await eventually('it is reported', () => secrets.events('sds.rejected').length > 0);
  expect(secrets.events('sds.rejected')).toEqual([
    {
      type: 'sds.rejected',
      name: 'default',
      version: envoy.responses[0]!.version,
      reason: 'Failed to load certificate chain',
    },
  ]);
  const { certificate } = issue();
  expect((await envoy.next(2)).chain).toBe(certificate);
  expect(envoy.responses).toHaveLength(2);
});

test.each<[string, (envoy: SecretClient) => void, string]>([
  ['invalid protobuf', (envoy) => envoy.write(frameOf(Buffer.from([0xff, 0xff, 0xff]))), 'INVALID_ARGUMENT'],
  ['a compressed message', (envoy) => envoy.write(Buffer.from([1, 0, 0, 0, 0])), 'INTERNAL'],
  ['two megabytes', (envoy) => envoy.write(Buffer.from([0, 0, 0x20, 0, 0])), 'RESOURCE_EXHAUSTED'],
  [
    'a hundred and one names',
    (envoy) => envoy.request(...Array.from({ length: 101 }, (_, i) => `file-root:/${i}`)),
    'INVALID',
  ],
  ['a name of 5,000 characters', (envoy) => envoy.request('y'.repeat(5_000)), 'INVALID_ARGUMENT'],
])('disconnects a client that sends %s, and serves the next client', async (_, send, code) => {
  write('certs/root-cert.pem', authority.certificate);
  await start();
  const hostile = await client();
  send(hostile);
  await eventually('the end', () => hostile.ended);
  expect(hostile.ended).toContain(code);
  const envoy = await client();
  envoy.request('ROOTCA');
  await envoy.next();
});

test('limits the number of file secrets, and still serves existing ones', async () => {
  write('certs/root-cert.pem', authority.certificate);
  const secrets = await start();
  // An Envoy with two streams of many names, and streams of one name each.
  for (const [index, names] of [99, 99, 1, 1, 1].entries()) {
    const one = await client();
    one.request(...Array.from({ length: names }, (_, i) => `file-root:/nowhere/${index}/${i}`));
  }
  const refusals = () => secrets.events('sds.reject');
  await eventually('some are refused', () => refusals().length === 3);
  expect(refusals()[0]!.reason).toBe('limit of 200 secrets reached');
  const envoy = await client();
  envoy.request('ROOTCA');
  await envoy.next();
});

test('disconnects a client that keeps changing its subscriptions, without delaying other clients', async () => {
  write('certs/root-cert.pem', authority.certificate);
  const secrets = await start();
  const [envoy, hostile] = [await client(), await client()];
  envoy.request('ROOTCA');
  await envoy.next();
  // Requests in one chunk are handled without a pause.
  for (let i = 0; i < 5_000; i++) hostile.request(`file-root:/nowhere/${i % 2}`);
  await eventually('it is let go', () => hostile.ended);
  expect(hostile.ended).toContain('RESOURCE_EXHAUSTED: subscriptions change too often');
  expect(secrets.events('sds.subscribed').length).toBeLessThan(300);
  await eventually('what it wanted is let go', () => secrets.events('sds.unsubscribed').length > 0);
  write('certs/root-cert.pem', createAuthority().certificate);
  await envoy.next(2);
});

test('counts names in a first request against the same limit as later ones', async () => {
  write('certs/root-cert.pem', authority.certificate);
  const secrets = await start();
  const hostile = [await client(), await client(), await client(), await client()];
  for (const [index, one] of hostile.entries()) {
    one.request(...Array.from({ length: 99 }, (_, i) => `file-root:/nowhere/${index}/${i}`));
  }
  await eventually('two are let go', () => hostile.filter(({ ended }) => ended !== undefined).length >= 2);
  expect(hostile.filter(({ ended }) => ended?.includes('subscriptions change too often') === true)).toHaveLength(2);
  expect(secrets.events('sds.subscribed')).toHaveLength(2 * 99);
  const envoy = await client();
  envoy.request('ROOTCA');
  await envoy.next();
});

test('limits the number of streams per client', async () => {
  write('certs/root-cert.pem', authority.certificate);
  await start();
  const connection = await GrpcConnection.open({ address: { path: socket() } });
  cleanups.push(() => connection.close());
  let isRefused = false;
  const callUntilRefused = async (): Promise<void> => {
    while (!isRefused) {
      const stream = connection.start('/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets', {});
      const response = await new Promise<string>((resolve) => {
        onCallEnd(stream, connection, (status) => resolve(status?.message ?? 'OK'));
        stream.resume();
        stream.end();
      });
      isRefused ||= response.includes('RESOURCE_EXHAUSTED: too many calls per second');
    }
  };
  // Fifty calls run concurrently, because sequential calls of a slow machine would not reach the limit.
  await Promise.all(Array.from({ length: 50 }, callUntilRefused));
  expect(isRefused).toBe(true);
});

test('implements no SDS method except StreamSecrets', async () => {
  await start();
  for (const method of ['DeltaSecrets', 'FetchSecrets']) {
    const one = await client(`/envoy.service.secret.v3.SecretDiscoveryService/${method}`);
    one.request('default');
    await eventually('the end', () => one.ended);
    expect(one.ended).toContain('UNIMPLEMENTED');
  }
});

test('detects an agent at the socket, and leaves another kind of server alone', async () => {
  await start();
  const secondSecrets = await start();
  expect(secondSecrets.events('secrets.failed')).toMatchObject([{ reason: expect.stringContaining('another agent') }]);
  await stopSecrets();

  const otherServer = createHttp2((_, response) => response.writeHead(404).end()).listen(socket());
  cleanups.push(() => otherServer.close());
  await eventually('it listens', () => otherServer.listening);
  const third = await start();
  expect(third.events('secrets.ready')).toMatchObject([{ by: 'another' }]);
});

test('replaces a stale socket, but no other kind of file', async () => {
  mkdirSync(join(directory, 'uds'));
  const abandonedSocket = spawnSync(process.execPath, [
    '-e',
    `require('net').createServer().listen(${JSON.stringify(socket())}, () => process.kill(process.pid, 'SIGKILL'))`,
  ]);
  expect(abandonedSocket.signal).toBe('SIGKILL');
  expect(statSync(socket()).isSocket()).toBe(true);
  expect((await start()).events('secrets.ready')).toMatchObject([{ by: 'us' }]);
  await stopSecrets();
  rmSync(socket(), { force: true });
  write('uds/socket', 'somebody needs this');
  const refusedSecrets = startSecrets(settingsWith());
  await eventually('it is reported', () => refusedSecrets.events('sds.failed').length > 0);
  expect(refusedSecrets.events('sds.failed')[0]!.reason).toContain('exists and is not a socket');
  expect(readFileSync(socket(), 'utf8')).toBe('somebody needs this');
});

test('trusts roots of the control plane in addition to mounted roots, and reports when each Envoy trusts them', async () => {
  write('certs/root-cert.pem', authority.certificate);
  const other = createAuthority('another');
  const secrets = await start();
  const envoy = await client();
  envoy.request('ROOTCA');
  envoy.acknowledge(await envoy.next(), 'ROOTCA');
  secrets.sendRoots('one', [other.certificate, authority.certificate]);
  const bothRoots = await envoy.next(2);
  expect(bothRoots.roots.match(/BEGIN/g)).toHaveLength(2);
  expect(bothRoots.roots).toContain(other.certificate);
  expect(secrets.events('trust-bundle.served')).toEqual([]);
  envoy.acknowledge(bothRoots, 'ROOTCA');
  await eventually('it is reported', () => secrets.events('trust-bundle.served').length > 0);
  // The same set in another order is not sent again, but is reported immediately.
  secrets.sendRoots('two', [authority.certificate, other.certificate]);
  await eventually('it is reported', () => secrets.events('trust-bundle.served').length > 1);
  expect(secrets.events('trust-bundle.served').map(({ hash }) => hash)).toEqual(['one', 'two']);
  expect(envoy.responses).toHaveLength(2);
  // No client is subscribed to roots.
  envoy.close();
  await eventually('it has left', () => secrets.events('sds.unsubscribed').length > 0);
  secrets.sendRoots('three', [other.certificate]);
  await eventually('it is reported', () => secrets.events('trust-bundle.served').length > 2);
});

test('writes served secrets atomically to files that only the current user can read', async () => {
  write('certs/root-cert.pem', authority.certificate);
  const { certificate, privateKey } = issue();
  const outputFolder = join(directory, 'out');
  await start({}, outputFolder);
  await eventually(
    'the files',
    () => statSync(join(outputFolder, 'root-cert.pem'), { throwIfNoEntry: false }) !== undefined,
  );
  expect(readFileSync(join(outputFolder, 'key.pem'), 'utf8')).toBe(privateKey);
  expect(readFileSync(join(outputFolder, 'cert-chain.pem'), 'utf8')).toBe(certificate);
  expect(statSync(join(outputFolder, 'key.pem')).mode & 0o777).toBe(0o600);
  for (const _ of [1, 2, 3]) {
    const next = issue();
    await eventually('the next', () => readFileSync(join(outputFolder, 'cert-chain.pem'), 'utf8') === next.certificate);
    await eventually('its key', () => readFileSync(join(outputFolder, 'key.pem'), 'utf8') === next.privateKey);
  }
});

test('writes files of OUTPUT_CERTS as soon as the directory is writable, without a new certificate', async () => {
  const { certificate } = issue();
  write('certs/root-cert.pem', authority.certificate);
  // Creates a file at the path of the directory.
  write('out', '');
  const secrets = await start({}, join(directory, 'out'));
  await eventually('a write has failed', () => secrets.events('output.failed').length > 0);
  rmSync(join(directory, 'out'));
  await eventuallyHolds(() => expect(readFileSync(join(directory, 'out/cert-chain.pem'), 'utf8')).toBe(certificate));
  expect(secrets.events('secret.obtained').filter(({ name }) => name === 'default')).toHaveLength(1);
});
