/** Tests a workload's secrets as received by Envoy, from a real authority in this process over TLS. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { CertificateCaller } from '../../../test/harness/certificate-caller.ts';
import { ControlPlane, stopControlPlanes } from '../../../test/harness/control-plane.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { givenSecrets, type StartedSecrets, secretsOf, stopSecrets } from '../../../test/harness/given-secrets.ts';
import type { SecretResponse } from '../../../test/harness/secret-client.ts';
import { parseCertificates } from '../identity/root-set.ts';

const cart = { namespace: 'shop', serviceAccount: 'cart' };
const tokenFile = 'var/run/secrets/tokens/istio-token';
let directory: string;
let previous: string;
let caller: CertificateCaller;

/** Files of a pod are relative to the working directory. */
beforeEach(() => {
  previous = process.cwd();
  directory = mkdtempSync(join(tmpdir(), 'issued-'));
  process.chdir(directory);
  caller = new CertificateCaller(join(directory, 'ca'));
});

afterEach(async () => {
  await stopSecrets();
  await stopControlPlanes();
  process.chdir(previous);
  rmSync(directory, { recursive: true });
});

async function authority(env: NodeJS.ProcessEnv = {}, port = 0): Promise<ControlPlane> {
  const plane = ControlPlane.starting({ secureGRPCAddr: `127.0.0.1:${port}` }, undefined, {
    SELF_SIGNED_CA_DIR: join(directory, 'ca'),
    ...env,
  });
  await plane.ready();
  return plane;
}

async function shows(account = cart): Promise<void> {
  mkdirSync(join(tokenFile, '..'), { recursive: true });
  writeFileSync(tokenFile, await caller.token(account));
}

function secrets(port: number, env: NodeJS.ProcessEnv = {}): Promise<StartedSecrets> {
  mkdirSync('var/run/secrets/istio', { recursive: true });
  writeFileSync('var/run/secrets/istio/root-cert.pem', caller.roots());
  const environment = { CA_ADDR: `127.0.0.1:${port}`, POD_NAMESPACE: 'shop', SERVICE_ACCOUNT: 'cart', ...env };
  return givenSecrets(secretsOf({ env: environment }));
}

const uriOf = ({ chain }: SecretResponse): string | undefined => new X509Certificate(chain).subjectAltName;
const serialOf = ({ chain }: SecretResponse): string => new X509Certificate(chain).serialNumber;

test.each([
  ['P-256', {}, 'ec'],
  ['RSA', { WORKLOAD_RSA_KEY_SIZE: '2048' }, 'rsa'],
])("requests a certificate for the workload's token and a new %s key after it has the roots", async (_, env, kind) => {
  const plane = await authority();
  await shows();
  const startedSecrets = await secrets(plane.port('ads.listening'), env);
  const [leaf, roots] = [await startedSecrets.client(), await startedSecrets.client()];
  leaf.request('default');
  roots.request('ROOTCA');
  roots.acknowledge(await roots.next(), 'ROOTCA');
  const response = await leaf.next();
  expect(uriOf(response)).toBe('URI:spiffe://cluster.local/ns/shop/sa/cart');
  expect(createPrivateKey(response.key).asymmetricKeyType).toBe(kind);
  expect(new X509Certificate(response.chain).checkPrivateKey(createPrivateKey(response.key))).toBe(true);
  const root = new X509Certificate(roots.responses[0]!.roots);
  expect(new X509Certificate(response.chain).verify(root.publicKey)).toBe(true);
  expect(startedSecrets.events('sds.serve').map(({ name }) => name)).toEqual(['ROOTCA', 'default']);
  expect(plane.deviations()).toEqual([]);
});

test('renews the certificate with the current token, and updates the files of OUTPUT_CERTS', async () => {
  const plane = await authority();
  await shows();
  const startedSecrets = await secrets(plane.port('ads.listening'), {
    SECRET_TTL: '12s',
    SECRET_GRACE_PERIOD_RATIO: '0.88',
    OUTPUT_CERTS: join(directory, 'out'),
  });
  const envoy = await startedSecrets.client();
  envoy.request('default');
  const serials = new Set<string>();
  for (let count = 1; count <= 4; count++) {
    const response = await envoy.next(count);
    envoy.acknowledge(response, 'default');
    serials.add(serialOf(response));
    await eventually('its file', () => readFileSync('out/cert-chain.pem', 'utf8') === response.chain);
    expect(readFileSync('out/key.pem', 'utf8')).toBe(response.key);
    await shows({ namespace: 'shop', serviceAccount: `cart-${count}` });
  }
  expect(serials.size).toBe(4);
  expect(uriOf(envoy.responses.at(-1)!)).toBe('URI:spiffe://cluster.local/ns/shop/sa/cart-3');
  // Unchanged roots are not sent again.
  expect(
    new Set(startedSecrets.events('sds.serve').flatMap(({ name, version }) => (name === 'ROOTCA' ? [version] : [])))
      .size,
  ).toBe(1);
});

test('trusts the roots of the current certificate regardless of how often other roots are received', async () => {
  const plane = await authority();
  await shows();
  const startedSecrets = await secrets(plane.port('ads.listening'));
  const envoy = await startedSecrets.client();
  envoy.request('ROOTCA');
  const [ownRoot] = parseCertificates(Buffer.from((await envoy.next()).roots));
  for (let round = 1; round <= 6; round++) {
    const bundle = createAuthority(`another ${round}`).certificate;
    startedSecrets.sendRoots(`set ${round}`, [bundle]);
    const { roots } = await envoy.next(1 + round);
    expect(parseCertificates(Buffer.from(roots)), `round ${round}`).toHaveLength(2);
    expect(parseCertificates(Buffer.from(roots)), `round ${round}`).toContain(ownRoot);
    envoy.acknowledge(envoy.responses.at(-1)!, 'ROOTCA');
  }
});

test('uses the current certificate if the token is rejected', async () => {
  const plane = await authority();
  await shows();
  const startedSecrets = await secrets(plane.port('ads.listening'), {
    SECRET_TTL: '12s',
    SECRET_GRACE_PERIOD_RATIO: '0.88',
  });
  const envoy = await startedSecrets.client();
  envoy.request('default');
  await envoy.next();
  writeFileSync(tokenFile, 'nonsense');
  const secondResponse = await envoy.next(2);
  expect(uriOf(secondResponse)).toBe('URI:spiffe://cluster.local/ns/shop/sa/cart');
  rmSync(tokenFile);
  await envoy.next(3);
  expect(startedSecrets.events('secret.unavailable')).toEqual([]);
});

test("uses the current certificate if the authority cannot verify the token because the token's issuer does not respond", async () => {
  const rule = { issuer: 'https://issuer', jwks_uri: 'http://127.0.0.1:1/keys', audiences: ['istio-ca'] };
  const plane = await authority({ JWT_RULE: JSON.stringify(rule) });
  await shows();
  const startedSecrets = await secrets(plane.port('ads.listening'), {
    SECRET_TTL: '12s',
    SECRET_GRACE_PERIOD_RATIO: '0.88',
  });
  const envoy = await startedSecrets.client();
  envoy.request('default');
  await envoy.next();
  writeFileSync(tokenFile, 'e30.e30.e30');
  await envoy.next(3);
  expect(startedSecrets.events('secret.unavailable')).toEqual([]);
});

test('gets no certificate with an invalid token, reports which credential was used, and gets a certificate with a valid token', async () => {
  const plane = await authority();
  await shows();
  writeFileSync(tokenFile, 'e30.e30.e30');
  const startedSecrets = await secrets(plane.port('ads.listening'));
  const envoy = await startedSecrets.client();
  envoy.request('default');
  await eventually('it is reported', () => startedSecrets.events('secret.unavailable').length > 1);
  const [first, secondFailure] = startedSecrets.events('secret.unavailable');
  expect(first!.reason).toMatch(/UNAUTHENTICATED.*\(credentials: token \.\/var/);
  expect(Number(secondFailure!.pauseMs)).toBeGreaterThanOrEqual(500);
  expect(envoy.responses).toEqual([]);
  await shows();
  await envoy.next();
});

test('sends no token to an untrusted authority', async () => {
  const plane = await authority();
  await shows();
  const other = new CertificateCaller(join(directory, 'other'));
  const third = ControlPlane.starting({ secureGRPCAddr: '127.0.0.1:0' }, undefined, {
    SELF_SIGNED_CA_DIR: join(directory, 'other'),
  });
  await third.ready();
  mkdirSync('var/run/secrets/istio', { recursive: true });
  writeFileSync('trusted.pem', other.roots());
  const startedSecrets = await secrets(plane.port('ads.listening'), { CA_ROOT_CA: join(directory, 'trusted.pem') });
  await eventually('it is reported', () => startedSecrets.events('secret.unavailable').length > 0);
  expect(startedSecrets.events('secret.unavailable')[0]!.reason).toMatch(/UNAVAILABLE/);
  expect(plane.records.filter(({ kind }) => kind === 'log')).toEqual([]);
});
