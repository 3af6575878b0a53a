/** The secrets of a workload from a real authority in this process, over TLS, as an Envoy gets them. */
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
import type { SecretAnswer } from '../../../test/harness/secret-client.ts';
import { certificatesIn } from '../identity/root-set.ts';

const cart = { namespace: 'shop', serviceAccount: 'cart' };
const tokenFile = 'var/run/secrets/tokens/istio-token';
let directory: string;
let before: string;
let caller: CertificateCaller;

/** A pod's files lie below the working directory. */
beforeEach(() => {
  before = process.cwd();
  directory = mkdtempSync(join(tmpdir(), 'issued-'));
  process.chdir(directory);
  caller = new CertificateCaller(join(directory, 'ca'));
});

afterEach(async () => {
  await stopSecrets();
  await stopControlPlanes();
  process.chdir(before);
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
  const said = { CA_ADDR: `127.0.0.1:${port}`, POD_NAMESPACE: 'shop', SERVICE_ACCOUNT: 'cart', ...env };
  return givenSecrets(secretsOf({ env: said }));
}

const uriOf = ({ chain }: SecretAnswer): string | undefined => new X509Certificate(chain).subjectAltName;
const serialOf = ({ chain }: SecretAnswer): string => new X509Certificate(chain).serialNumber;

test.each([
  ['P-256', {}, 'ec'],
  ['RSA', { WORKLOAD_RSA_KEY_SIZE: '2048' }, 'rsa'],
])('a workload gets a certificate of its token for a key of its own, %s, after the roots', async (_, env, kind) => {
  const plane = await authority();
  await shows();
  const started = await secrets(plane.port('ads.listening'), env);
  const [leaf, roots] = [await started.client(), await started.client()];
  leaf.ask('default');
  roots.ask('ROOTCA');
  roots.acknowledge(await roots.next(), 'ROOTCA');
  const answer = await leaf.next();
  expect(uriOf(answer)).toBe('URI:spiffe://cluster.local/ns/shop/sa/cart');
  expect(createPrivateKey(answer.key).asymmetricKeyType).toBe(kind);
  expect(new X509Certificate(answer.chain).checkPrivateKey(createPrivateKey(answer.key))).toBe(true);
  const root = new X509Certificate(roots.answers[0]!.roots);
  expect(new X509Certificate(answer.chain).verify(root.publicKey)).toBe(true);
  expect(started.events('sds.serve').map(({ name }) => name)).toEqual(['ROOTCA', 'default']);
  expect(plane.departures()).toEqual([]);
});

test('it is renewed again and again, each time by the token of that time; files of OUTPUT_CERTS follow', async () => {
  const plane = await authority();
  await shows();
  const started = await secrets(plane.port('ads.listening'), {
    SECRET_TTL: '12s',
    SECRET_GRACE_PERIOD_RATIO: '0.88',
    OUTPUT_CERTS: join(directory, 'out'),
  });
  const envoy = await started.client();
  envoy.ask('default');
  const serials = new Set<string>();
  for (let count = 1; count <= 4; count++) {
    const answer = await envoy.next(count);
    envoy.acknowledge(answer, 'default');
    serials.add(serialOf(answer));
    await eventually('its file', () => readFileSync('out/cert-chain.pem', 'utf8') === answer.chain);
    expect(readFileSync('out/key.pem', 'utf8')).toBe(answer.key);
    await shows({ namespace: 'shop', serviceAccount: `cart-${count}` });
  }
  expect(serials.size).toBe(4);
  expect(uriOf(envoy.answers.at(-1)!)).toBe('URI:spiffe://cluster.local/ns/shop/sa/cart-3');
  // The roots stay as they are: nobody is sent them again.
  expect(
    new Set(started.events('sds.serve').flatMap(({ name, version }) => (name === 'ROOTCA' ? [version] : []))).size,
  ).toBe(1);
});

test('however often other roots are told, those that the certificate in force leads to are trusted', async () => {
  const plane = await authority();
  await shows();
  const started = await secrets(plane.port('ads.listening'));
  const envoy = await started.client();
  envoy.ask('ROOTCA');
  const [own] = certificatesIn(Buffer.from((await envoy.next()).roots));
  for (let round = 1; round <= 6; round++) {
    const told = createAuthority(`another ${round}`).certificate;
    started.tellRoots(`set ${round}`, [told]);
    const { roots } = await envoy.next(1 + round);
    expect(certificatesIn(Buffer.from(roots)), `round ${round}`).toHaveLength(2);
    expect(certificatesIn(Buffer.from(roots)), `round ${round}`).toContain(own);
    envoy.acknowledge(envoy.answers.at(-1)!, 'ROOTCA');
  }
});

test('a token that is not believed any more is made up for by the certificate that is in force', async () => {
  const plane = await authority();
  await shows();
  const started = await secrets(plane.port('ads.listening'), { SECRET_TTL: '12s', SECRET_GRACE_PERIOD_RATIO: '0.88' });
  const envoy = await started.client();
  envoy.ask('default');
  await envoy.next();
  writeFileSync(tokenFile, 'nonsense');
  const second = await envoy.next(2);
  expect(uriOf(second)).toBe('URI:spiffe://cluster.local/ns/shop/sa/cart');
  rmSync(tokenFile);
  await envoy.next(3);
  expect(started.events('secret.unavailable')).toEqual([]);
});

test('so is one of which the authority cannot find out whose it is, as long as its issuer does not answer', async () => {
  const rule = { issuer: 'https://issuer', jwks_uri: 'http://127.0.0.1:1/keys', audiences: ['istio-ca'] };
  const plane = await authority({ JWT_RULE: JSON.stringify(rule) });
  await shows();
  const started = await secrets(plane.port('ads.listening'), { SECRET_TTL: '12s', SECRET_GRACE_PERIOD_RATIO: '0.88' });
  const envoy = await started.client();
  envoy.ask('default');
  await envoy.next();
  writeFileSync(tokenFile, 'e30.e30.e30');
  await envoy.next(3);
  expect(started.events('secret.unavailable')).toEqual([]);
});

test('who is not known gets nothing, and the reason names what was shown; a good token brings it', async () => {
  const plane = await authority();
  await shows();
  writeFileSync(tokenFile, 'e30.e30.e30');
  const started = await secrets(plane.port('ads.listening'));
  const envoy = await started.client();
  envoy.ask('default');
  await eventually('it is told', () => started.events('secret.unavailable').length > 1);
  const [first, second] = started.events('secret.unavailable');
  expect(first!.reason).toMatch(/UNAUTHENTICATED.*\(credentials: token \.\/var/);
  expect(Number(second!.pauseMs)).toBeGreaterThanOrEqual(500);
  expect(envoy.answers).toEqual([]);
  await shows();
  await envoy.next();
});

test('an authority that nobody is to trust is told nothing', async () => {
  const plane = await authority();
  await shows();
  const other = new CertificateCaller(join(directory, 'other'));
  const third = ControlPlane.starting({ secureGRPCAddr: '127.0.0.1:0' }, undefined, {
    SELF_SIGNED_CA_DIR: join(directory, 'other'),
  });
  await third.ready();
  mkdirSync('var/run/secrets/istio', { recursive: true });
  writeFileSync('trusted.pem', other.roots());
  const started = await secrets(plane.port('ads.listening'), { CA_ROOT_CA: join(directory, 'trusted.pem') });
  await eventually('it is told', () => started.events('secret.unavailable').length > 0);
  expect(started.events('secret.unavailable')[0]!.reason).toMatch(/UNAVAILABLE/);
  expect(plane.records.filter(({ kind }) => kind === 'log')).toEqual([]);
});
