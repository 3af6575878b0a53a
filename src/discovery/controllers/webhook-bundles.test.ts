/** Which entries of webhook configurations get the root of the mesh. */
import { expect, it } from 'vitest';
import { WriteGate } from '../election/write-gate.ts';
import { mutatingWebhookConfigurations, validatingWebhookConfigurations } from '../kubernetes/api-resource.ts';
import { nameOf } from '../kubernetes/api-server.effects.ts';
import type { ApiRequest } from '../kubernetes/api-server.ts';
import { ObjectStore } from '../kubernetes/store/object-store.ts';
import { WebhookBundles, webhookConfigurationsOf } from './webhook-bundles.ts';

const moment = { monotonicMs: 0, wallMs: 0 };
const base64 = (text: string): string => Buffer.from(text).toString('base64');

function given() {
  const stores = new Map<string, ObjectStore>();
  const storeOf = (resource: Parameters<typeof nameOf>[0]): ObjectStore => {
    const known = stores.get(nameOf(resource)) ?? new ObjectStore();
    stores.set(nameOf(resource), known);
    return known;
  };
  const written: ApiRequest[] = [];
  const request = async (order: ApiRequest) => {
    written.push(order);
    return { metadata: { name: 'written' } };
  };
  const gate = new WriteGate({ server: { request }, now: () => moment, writeMs: 1_000 });
  gate.extend(moment, 10_000);
  const readers = new Map<string, (changes: readonly never[]) => void>();
  const state = { roots: 'PEM' as string | undefined, now: 0, rootsChanged: (): void => {} };
  const duty = new WebhookBundles({
    ...{ lease: 'test', revision: '', namespace: 'mesh', hosts: ['istiod.mesh.svc', 'pilot.example.com'] },
    informers: { storeOf, addReader: (resource, reader) => void readers.set(nameOf(resource), reader as never) },
    roots: () => state.roots,
    onRoots: (changed) => {
      state.rootsChanged = changed;
    },
    now: () => state.now,
  });
  const [mutating, validating] = webhookConfigurationsOf('');
  const set = (kind: 'mutating' | 'validating', resourceVersion: string, webhooks: readonly object[]): void => {
    const { name } = (kind === 'mutating' ? mutating : validating)!;
    const object = { metadata: { name: 'one', uid: 'one', resourceVersion }, webhooks };
    readers.get(name)!(storeOf(name).apply({ type: 'MODIFIED', object }) as never);
  };
  const run = async (retry = false) => {
    const report = await duty.writeDue({ retry, anew: false }, gate);
    return { report, written: written.splice(0) };
  };
  return { state, set, run };
}

const entry = (clientConfig: object, name = 'a') => ({ name, clientConfig, failurePolicy: 'Fail' });
const own = { service: { name: 'istiod', namespace: 'mesh', path: '/inject' } };

it('entries that call this control plane get the root, and others keep theirs', async () => {
  const { set, run } = given();
  const foreign = [
    { service: { name: 'istiod', namespace: 'other' }, caBundle: 'x' },
    { service: { name: 'another', namespace: 'mesh' } },
    { url: 'https://else.example.com/inject' },
  ];
  const byUrl = { url: 'https://pilot.example.com:15017/inject' };
  set(
    'mutating',
    '7',
    [own, byUrl, ...foreign].map((config) => entry(config)),
  );
  const { written } = await run();
  expect(written).toMatchObject([
    { method: 'PATCH', patch: 'merge', name: 'one', resource: mutatingWebhookConfigurations },
  ]);
  const caBundle = base64('PEM');
  expect(written[0]!.body).toMatchObject({
    metadata: { resourceVersion: '7' },
    webhooks: [{ ...own, caBundle }, { ...byUrl, caBundle }, ...foreign].map((config) => entry(config)),
  });
});

it('a configuration that has the root is not written, until the root changes', async () => {
  const { state, set, run } = given();
  set('validating', '1', [entry({ ...own, caBundle: base64('PEM') })]);
  expect((await run()).written).toEqual([]);
  state.roots = 'OTHER';
  state.rootsChanged();
  expect((await run()).written).toMatchObject([{ resource: validatingWebhookConfigurations }]);
});

it('without an authority nothing is written', async () => {
  const { state, set, run } = given();
  state.roots = undefined;
  set('mutating', '1', [entry(own)]);
  expect((await run()).written).toEqual([]);
});

it('a configuration that another controller overwrites at once is reported, and written again after 10 s', async () => {
  const { state, set, run } = given();
  set('mutating', '1', [entry(own)]);
  expect((await run()).report).toMatchObject({ written: 1, failed: 0 });
  set('mutating', '2', [entry({ ...own, caBundle: 'theirs' })]);
  expect((await run()).report).toMatchObject({ written: 0, failed: 1, reason: expect.stringContaining('one') });
  state.now = 10_000;
  expect((await run(true)).report).toMatchObject({ written: 1, failed: 0 });
});
