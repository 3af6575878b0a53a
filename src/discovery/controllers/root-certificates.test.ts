import { expect, it } from 'vitest';
import type { LabelSelector } from '../../model/kinds/label-selector.ts';
import { WriteGate } from '../election/write-gate.ts';
import { nameOf } from '../kubernetes/api-server.effects.ts';
import type { ApiRequest } from '../kubernetes/api-server.ts';
import { ObjectStore } from '../kubernetes/store/object-store.ts';
import { RootCertificates } from './root-certificates.ts';

const clockReading = { monotonicMs: 0, wallMs: 0 };
const run = { retry: false, includesAll: false };

/** A cluster with these namespaces that records writes. */
function createDuty() {
  const stores = new Map<string, ObjectStore>();
  const storeOf = (resource: Parameters<typeof nameOf>[0]): ObjectStore => {
    const store = stores.get(nameOf(resource)) ?? new ObjectStore();
    stores.set(nameOf(resource), store);
    return store;
  };
  const writtenNamespaces: string[] = [];
  const request = async ({ method, namespace }: ApiRequest) => {
    writtenNamespaces.push(`${method} ${namespace}`);
    return { metadata: { name: 'istio-ca-root-cert' } };
  };
  const gate = new WriteGate({ server: { request }, now: () => clockReading, writeMs: 1_000 });
  gate.extend(clockReading, 10_000);
  const mesh = { selectors: [] as readonly LabelSelector[], changed: (): void => {} };
  const notify = new Map<string, (changes: readonly never[]) => void>();
  const duty = new RootCertificates({
    ...{ configMap: 'istio-ca-root-cert', lease: 'test', roots: () => 'PEM', onRoots: () => {}, now: () => 0 },
    informers: { storeOf, addReader: (resource, reader) => void notify.set(nameOf(resource), reader as never) },
    selectors: () => mesh.selectors,
    onSelectors: (listener) => {
      mesh.changed = listener;
    },
  });
  const label = (name: string, labels: Readonly<Record<string, string>>, resourceVersion: string): void => {
    const object = { metadata: { name, uid: name, resourceVersion, labels } };
    notify.get('v1/namespaces')!(storeOf('v1/namespaces').apply({ type: 'MODIFIED', object }) as never);
  };
  const writes = async (): Promise<string[]> => {
    await duty.writeDue(run, gate);
    return writtenNamespaces.splice(0).sort();
  };
  return { duty, mesh, label, writes };
}

it("the root ConfigMap is written to each namespace except Kubernetes' own", async () => {
  const { label, writes } = createDuty();
  for (const name of ['shop', 'kube-system', 'kube-public']) label(name, {}, '1');
  expect(await writes()).toEqual(['POST kube-system', 'POST shop']);
});

it('the root ConfigMap is written to a namespace when the namespace joins the mesh', async () => {
  const { duty, mesh, label, writes } = createDuty();
  mesh.selectors = [{ matchLabels: { mesh: 'yes' } }];
  mesh.changed();
  label('shop', { mesh: 'yes' }, '1');
  label('bank', {}, '1');
  expect(await writes()).toEqual(['POST shop']);
  label('bank', { mesh: 'yes' }, '2');
  expect(await writes()).toEqual(['POST bank']);
  label('else', {}, '1');
  expect(await writes()).toEqual([]);
  mesh.changed();
  expect(duty.isDue).toBe(false);
  mesh.selectors = [];
  mesh.changed();
  expect(duty.isDue).toBe(true);
  expect(await writes()).toContain('POST else');
});
