import { spawn } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { type KeyPair, privateKeyPem } from '../../runtime/grpc/key-pair.ts';
import { ControlPlaneCredentials, type CredentialSources } from './control-plane-credentials.ts';
import { controlPlaneName, controlPlaneRootFile, findControlPlaneRootFile } from './control-plane-roots.ts';
import { DistributedRoots } from './distributed-roots.ts';
import { parseCertificates } from './root-set.ts';

const address = 'istiod.istio-system.svc:15012';
const config = { controlPlaneAuthPolicy: 'MUTUAL_TLS', discoveryAddress: address, proxyMetadata: {} } as const;

let directory: string;
let previousDirectory: string;

/** Token files are relative to the working directory. */
beforeEach(() => {
  previousDirectory = process.cwd();
  directory = mkdtempSync(join(tmpdir(), 'credentials-'));
  process.chdir(directory);
  write('root.pem', createAuthority().certificate);
});

afterEach(() => {
  process.chdir(previousDirectory);
  rmSync(directory, { recursive: true });
});

function write(file: string, content: string | Buffer): void {
  mkdirSync(join(directory, file, '..'), { recursive: true });
  writeFileSync(join(directory, file), content);
}

const tokenFile = 'var/run/secrets/tokens/istio-token';
const jwt = (claims: object): string => `h.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.s`;

function credentials(sources: Partial<CredentialSources> = {}): ControlPlaneCredentials {
  return new ControlPlaneCredentials({ config, ...sources, env: { XDS_ROOT_CA: 'root.pem', ...sources.env } });
}

function issueKeyPair(): KeyPair {
  const { certificate, privateKey } = createAuthority().issue(['client']);
  return { chain: certificate, key: createPrivateKey(privateKey) };
}

test('reads the token for each connection, and describes it without secrets', async () => {
  write(tokenFile, `${jwt({ exp: 1_000 })}\n`);
  utimesSync(join(directory, tokenFile), 400, 400);
  const read = credentials({ now: () => 900_000 });
  const first = await read.read('xds', address);
  expect(first.headers).toEqual({ authorization: `Bearer ${jwt({ exp: 1_000 })}` });
  expect(first.description).toBe('token ./var/run/secrets/tokens/istio-token, written 500 s ago, expires in 100 s');
  write(tokenFile, 'another');
  const secondRead = await read.read('xds', address);
  expect(secondRead.headers).toEqual({ authorization: 'Bearer another' });
});

test.each([
  ['a missing file', undefined, /istio-token: no such file or directory\)$/],
  ['a blank file', ' \n', /contains no token/],
  ['a file with an inner line break', 'a\r\nx-admin: yes', /contains no token/],
  ['a file above the size limit', 'a'.repeat(70_000), /at most 65536 bytes, got 70000/],
])('sends no authorization header if there is no token: %s', async (_, content, reason) => {
  if (content !== undefined) write(tokenFile, content);
  const { headers, tls, description: shownDescription } = await credentials().read('xds', address);
  expect(headers).toEqual({});
  expect(tls?.certificate).toBeUndefined();
  expect(shownDescription).toMatch(reason);
});

/** Makes each open of a file block for 45 s, as on a mount that hangs. */
async function leased(file: string): Promise<void> {
  const program = `import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(os.open(sys.argv[1], os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('leased', flush=True)
signal.pause()`;
  const child = spawn('python3', ['-c', program, file], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  await once(child.stdout, 'data');
}

/** Node has four file threads. */
test.each(['the token', 'the root'])(
  'shares one read of %s on a hanging mount, while other files are read',
  async (fileKind) => {
    write(tokenFile, 'a');
    write('other', 'text');
    await leased(fileKind === 'the token' ? tokenFile : 'root.pem');
    const read = credentials();
    for (let dial = 0; dial < 6; dial++) {
      const stop = new AbortController();
      const pendingRead = read.read('xds', address, 'token', stop.signal).catch(() => 'given up');
      await sleep(20);
      stop.abort(new Error('no connection in time'));
      if (dial > 0) expect(await pendingRead).toBe('given up');
    }
    const other = await Promise.race([readFile('other', 'utf8'), sleep(60_000, 'nothing')]);
    expect(other).toBe('text');
  },
);

test('sends no credentials over plaintext', async () => {
  write(tokenFile, 'secret');
  const none = await credentials({ config: { ...config, controlPlaneAuthPolicy: 'NONE' } }).read('xds', address);
  const port = await credentials().read('ca', '127.0.0.1:15010');
  for (const read of [none, port])
    expect(read).toEqual({ headers: {}, description: expect.stringContaining('plaintext') });
});

test('adds distributed roots to those of the file, for xDS and for the certificate authority', async () => {
  const [root, next] = [createAuthority().certificate, createAuthority().certificate];
  write('root.pem', root);
  const distributed = new DistributedRoots();
  const read = credentials({ distributedRoots: distributed, env: { CA_ROOT_CA: 'root.pem' } });
  distributed.update([root, next]);
  for (const service of ['xds', 'ca'] as const) {
    const { tls } = await read.read(service, address);
    expect(parseCertificates(Buffer.from(tls!.roots))).toHaveLength(2);
  }
});

test('prefers a valid provided certificate to the token', async () => {
  write(tokenFile, 'token');
  const pair = issueKeyPair();
  const env = { PROV_CERT: join(directory, 'prov') };
  const read = (now = Date.now()) => credentials({ env, now: () => now }).read('xds', address);
  expect((await read()).headers).toEqual({ authorization: 'Bearer token' });
  write('prov/cert-chain.pem', pair.chain);
  write('prov/key.pem', privateKeyPem(pair.key));
  const withCertificate = await read();
  expect(withCertificate.tls?.certificate).toEqual(pair);
  expect(withCertificate.headers).toEqual({});
  const readAfterExpiry = await read(Date.now() + 100 * 365 * 86_400_000);
  expect(readAfterExpiry.tls?.certificate).toBeUndefined();
  expect(readAfterExpiry.headers).toEqual({ authorization: 'Bearer token' });
  write('prov/key.pem', privateKeyPem(issueKeyPair().key));
  expect((await read()).tls?.certificate).toBeUndefined();
  write('prov/key.pem', 'no key');
  expect((await read()).tls?.certificate).toBeUndefined();
});

test('uses files of the proxy metadata if certificates are mounted', async () => {
  const pair = issueKeyPair();
  write('c.pem', pair.chain);
  write('k.pem', privateKeyPem(pair.key));
  const proxyMetadata = { ISTIO_META_TLS_CLIENT_CERT_CHAIN: 'c.pem', ISTIO_META_TLS_CLIENT_KEY: 'k.pem' };
  const mounted = { config: { ...config, proxyMetadata }, env: { FILE_MOUNTED_CERTS: 'true' } };
  for (const FILE_MOUNTED_CERTS of ['1', 't', 'True', 'TRUE']) {
    const { tls } = await credentials({ ...mounted, env: { FILE_MOUNTED_CERTS } }).read('xds', address);
    expect(tls?.certificate, FILE_MOUNTED_CERTS).toEqual(pair);
  }
  expect((await credentials(mounted).read('xds', address)).tls?.certificate).toEqual(pair);
  expect((await credentials({ ...mounted, env: {} }).read('xds', address)).tls?.certificate).toBeUndefined();
});

test('uses the workload certificate, unless expired, if it is preferred or there is no token', async () => {
  const workload = issueKeyPair();
  const read = credentials({ workloadCertificate: () => workload });
  expect((await read.read('ca', address, 'token').catch(String)) as unknown).toContain('root certificate');
  expect((await read.read('xds', address)).tls?.certificate).toEqual(workload);
  write(tokenFile, 'token');
  expect((await read.read('xds', address)).tls?.certificate).toBeUndefined();
  expect((await read.read('xds', address, 'certificate')).tls?.certificate).toEqual(workload);
  const lateCredentials = credentials({
    workloadCertificate: () => workload,
    now: () => Date.now() + 100 * 365 * 86_400_000,
  });
  const expired = await lateCredentials.read('xds', address, 'certificate');
  expect(expired.tls?.certificate).toBeUndefined();
  expect(expired.headers).toEqual({ authorization: 'Bearer token' });
});

test('reports a missing or invalid root file with a hint', async () => {
  await expect(credentials({ env: { XDS_ROOT_CA: 'gone.pem' } }).read('xds', address)).rejects.toThrow(
    codedError('FILE_UNREADABLE', { path: 'gone.pem' }),
  );
  write('empty.pem', '');
  await expect(credentials({ env: { XDS_ROOT_CA: 'empty.pem' } }).read('xds', address)).rejects.toThrow(
    codedError('FILE_UNREADABLE', { path: 'empty.pem' }),
  );
});

const present =
  (...files: string[]) =>
  (path: string): boolean =>
    files.includes(path);
const mounted = './etc/certs/root-cert.pem';
const defaultPath = './var/run/secrets/istio/root-cert.pem';
const kubernetes = [
  './var/run/secrets/istio/kubernetes/ca.crt',
  './var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
];

test.each([
  [{ XDS_ROOT_CA: 'SYSTEM', CA_ROOT_CA: 'SYSTEM' }, ['/etc/ssl/cert.pem'], '/etc/ssl/cert.pem', '/etc/ssl/cert.pem'],
  [{ XDS_ROOT_CA: '/x.pem', CA_ROOT_CA: '/c.pem' }, [mounted], '/x.pem', '/c.pem'],
  [{}, [mounted], mounted, defaultPath],
  [{ PILOT_CERT_PROVIDER: 'kubernetes' }, [], kubernetes[1], kubernetes[1]],
  [{ PILOT_CERT_PROVIDER: 'kubernetes' }, [kubernetes[0]!], kubernetes[0], kubernetes[0]],
  [{ PILOT_CERT_PROVIDER: 'custom', PROV_CERT: '/p' }, [], defaultPath, mounted],
  [{ PROV_CERT: '/p' }, [], '/p/root-cert.pem', '/p/root-cert.pem'],
  [{ FILE_MOUNTED_CERTS: 'true' }, [], '/client-root.pem', defaultPath],
  [{}, [], defaultPath, defaultPath],
])(
  'selects by environment (%o) and files (%o) the root file %s for xDS and %s for the authority',
  async (env, files, xds, ca) => {
    const sources = { env, proxyMetadata: { ISTIO_META_TLS_CLIENT_ROOT_CERT: '/client-root.pem' } };
    expect(controlPlaneRootFile('xds', sources, present(...files))).toBe(xds);
    expect(controlPlaneRootFile('ca', sources, present(...files))).toBe(ca);
    const slowly = async (path: string) => present(...files)(path);
    expect(await findControlPlaneRootFile('xds', sources, slowly)).toBe(xds);
    expect(await findControlPlaneRootFile('ca', sources, slowly)).toBe(ca);
  },
);

test('rejects the provider `none` without a configured root', () => {
  const none = { PILOT_CERT_PROVIDER: 'none' };
  expect(() => controlPlaneRootFile('ca', { env: none }, () => false)).toThrow(
    codedError('CONFIG_INVALID', { path: 'PILOT_CERT_PROVIDER', got: '"none"' }),
  );
  expect(controlPlaneRootFile('ca', { env: { ...none, CA_ROOT_CA: '/c' } }, () => false)).toBe('/c');
});

test('selects the expected SAN of the control plane', () => {
  expect(controlPlaneName('pilot.example.com:15012', {})).toBe('pilot.example.com');
  expect(controlPlaneName('localhost:15012', {})).toBe('istiod.istio-system.svc');
  expect(controlPlaneName('pilot.example.com:15012', { ISTIOD_SAN: 'other' })).toBe('other');
});
