import { expect, it } from 'vitest';
import { readCertificates } from '../../identity/certificate.ts';
import { TrustBundle } from '../../identity/trust-bundle.ts';
import type { ActiveAuthority } from '../ca/authority.ts';
import type { AuthorityMaterial } from '../ca/authority-material.ts';
import { generateRoot } from '../ca/generate-root.ts';
import type { Registrar } from '../ca/issuing/registrar.ts';
import { WriteGate } from '../election/write-gate.ts';
import type { ApiRequest, KubernetesObject } from '../kubernetes/api-server.ts';
import { DnsCertificates } from './dns-certificates.ts';

const dayMs = 24 * 3_600_000;
const startMs = Date.parse('2026-01-01T00:00:00Z');

async function createDuty(registrar?: Registrar, rootMs = 3_650 * dayMs) {
  let now = startMs;
  const createRoot = (): Promise<AuthorityMaterial> =>
    generateRoot({ trustDomain: 'dns.test', ttlMs: rootMs, rsaBits: 0 }, new Date(startMs));
  let material = await createRoot();
  const objects = new Map<string, KubernetesObject>();
  const writes: string[] = [];
  const onChangedListeners: (() => void)[] = [];
  const server = {
    request: async ({ method, body }: ApiRequest): Promise<KubernetesObject> => {
      writes.push(method);
      const { data, type, metadata } = body as KubernetesObject;
      const object = { data, type, metadata: { ...metadata, name: 'web', resourceVersion: String(writes.length) } };
      objects.set('istio-system/web', object as KubernetesObject);
      return object as KubernetesObject;
    },
  };
  const activeAuthority = (): ActiveAuthority => ({
    ...{
      material,
      serverAuthority: material,
      bundle: new TrustBundle('dns.test', [material.root]),
      roots: [material.id],
    },
    ...{ authorities: [material], tainted: [] },
  });
  const configuredCertificate = { secretName: 'web', dnsNames: ['web.svc'] };
  const duty = new DnsCertificates({
    lease: 'dns',
    secrets: {
      ...{ namespace: 'istio-system', store: objects, whenSynced: Promise.resolve() },
      onChanged: (one) => void onChangedListeners.push(one),
    },
    ...{
      certificates: () => [configuredCertificate],
      activeAuthority,
      roots: () => [material.root],
      now: () => new Date(now),
    },
    ...(registrar && { registrar }),
  });
  await Promise.resolve();
  const reading = { monotonicMs: 0, wallMs: 0 };
  const gate = new WriteGate({ server, now: () => reading, writeMs: 1_000 });
  gate.extend(reading, 1_000);
  const write = () => duty.writeDue({ retry: false, includesAll: false }, gate);
  const pass = (ms: number): void => {
    now += ms;
    duty.check();
  };
  const rotate = async (): Promise<void> => {
    material = await createRoot();
    duty.check();
  };
  const leaf = () => {
    const chain = (objects.get('istio-system/web')!.data as Record<string, string>)['cert-chain.pem']!;
    return readCertificates(Buffer.from(chain, 'base64').toString())[0]!;
  };
  return { duty, write, writes, pass, rotate, leaf };
}

it('a DNS certificate is issued, and kept until half of its lifetime has passed', async () => {
  const { duty, write, writes, pass, leaf } = await createDuty();
  expect(duty.isDue).toBe(true);
  expect(await write()).toEqual({ writtenCount: 1, failedCount: 0, reason: '' });
  expect(leaf().alternativeNames?.dns).toEqual(['web.svc']);
  expect(leaf().notAfter.getTime()).toBe(startMs + 90 * dayMs);
  pass(44 * dayMs);
  expect(duty.isDue).toBe(false);
  pass(2 * dayMs);
  expect(duty.isDue).toBe(true);
  const previousSerialNumber = leaf().serialNumber;
  await write();
  expect(writes).toEqual(['POST', 'PATCH']);
  expect(leaf().serialNumber).not.toBe(previousSerialNumber);
  expect(duty.isDue).toBe(false);
});

it('a DNS certificate is reissued if its root is no longer trusted', async () => {
  const { duty, write, rotate } = await createDuty();
  await write();
  await rotate();
  expect(duty.isDue).toBe(true);
  await write();
  expect(duty.isDue).toBe(false);
});

it('a DNS certificate is written at a limited rate if its authority expires soon, even though each write causes a change', async () => {
  const { duty, write, writes, pass } = await createDuty(undefined, 8 * 60_000);
  for (let i = 0; i < 20; i++) {
    pass(100);
    await write();
  }
  expect(writes.length).toBe(4);
  expect(duty.isDue).toBe(false);
  pass(60_000);
  expect(duty.isDue).toBe(true);
  await write();
  expect(writes.length).toBe(5);
});

it.each([
  [{ refused: 'it was denied' }, 'it was denied [SIGNER_FAILED]'],
  [{ failed: 'no answer' }, 'no answer [SIGNER_FAILED]'],
  [{ tryAgainAfterMs: 1_000 }, '[CERTIFICATE_REQUESTS_EXHAUSTED]'],
])('the signer failure %j is reported, and no DNS certificate is written', async (signerResult, reason) => {
  const { write, writes } = await createDuty({ sign: async () => signerResult });
  expect(await write()).toEqual({ writtenCount: 0, failedCount: 1, reason: expect.stringContaining(reason) });
  expect(writes).toEqual([]);
});
