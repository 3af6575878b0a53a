import { expect, it } from 'vitest';
import { WriteGate } from '../election/write-gate.ts';
import { ApiError } from '../kubernetes/api-failure.ts';
import { mutatingWebhookConfigurations, validatingWebhookConfigurations } from '../kubernetes/api-resource.ts';
import { nameOf } from '../kubernetes/api-server.effects.ts';
import type { ApiRequest } from '../kubernetes/api-server.ts';
import { ObjectStore } from '../kubernetes/store/object-store.ts';
import { WebhookBundles, webhookConfigurationsOf } from './webhook-bundles.ts';

const clockReading = { monotonicMs: 0, wallMs: 0 };
const base64 = (text: string): string => Buffer.from(text).toString('base64');

function createDuty() {
  const stores = new Map<string, ObjectStore>();
  const storeOf = (resource: Parameters<typeof nameOf>[0]): ObjectStore => {
    const store = stores.get(nameOf(resource)) ?? new ObjectStore();
    stores.set(nameOf(resource), store);
    return store;
  };
  const writtenRequests: ApiRequest[] = [];
  const request = async (order: ApiRequest) => {
    writtenRequests.push(order);
    return { metadata: { name: 'written' } };
  };
  const gate = new WriteGate({ server: { request }, now: () => clockReading, writeMs: 1_000 });
  gate.extend(clockReading, 10_000);
  const readers = new Map<string, (changes: readonly never[]) => void>();
  const state = { roots: 'PEM' as string | undefined, now: 0, rootsChanged: (): void => {}, rejection: '' };
  const proofs: ApiRequest[] = [];
  const prove = async (order: ApiRequest) => {
    proofs.push(order);
    if (state.rejection === '') return { metadata: { name: 'accepted' } };
    throw new ApiError({ kind: 'status', code: 422, reason: 'Invalid', message: state.rejection, causes: [] });
  };
  const duty = new WebhookBundles({
    ...{ lease: 'test', revision: '', namespace: 'mesh', hosts: ['istiod.mesh.svc', 'pilot.example.com'] },
    server: { request: prove },
    informers: { storeOf, addReader: (resource, reader) => void readers.set(nameOf(resource), reader as never) },
    roots: () => state.roots,
    onRoots: (listener) => {
      state.rootsChanged = listener;
    },
    now: () => state.now,
  });
  const [mutating, validating] = webhookConfigurationsOf('');
  const set = (
    kind: 'mutating' | 'validating',
    resourceVersion: string,
    webhooks: readonly object[],
    { rev = 'default', annotations = {} }: { rev?: string; annotations?: Record<string, string> } = {},
  ): void => {
    const { name } = (kind === 'mutating' ? mutating : validating)!;
    const metadata = { name: 'one', uid: 'one', resourceVersion, labels: { 'istio.io/rev': rev }, annotations };
    const object = { metadata, webhooks };
    readers.get(name)!(storeOf(name).apply({ type: 'MODIFIED', object }) as never);
  };
  const run = async (retry = false) => {
    const report = await duty.writeDue({ retry, includesAll: false }, gate);
    return { report, written: writtenRequests.splice(0), proofs: proofs.splice(0) };
  };
  return { state, set, run };
}

const entry = (clientConfig: object, name = 'a') => ({ name, clientConfig, failurePolicy: 'Fail' });
const ownClientConfig = { service: { name: 'istiod', namespace: 'mesh', path: '/inject' } };

it('WebhookBundles writes the root to webhooks that call this control plane, and leaves other webhooks unchanged', async () => {
  const { set, run } = createDuty();
  const foreignEntries = [
    { service: { name: 'istiod', namespace: 'other' }, caBundle: 'x' },
    { service: { name: 'another', namespace: 'mesh' } },
    { url: 'https://else.example.com/inject' },
  ];
  const urlConfig = { url: 'https://pilot.example.com:15017/inject' };
  set(
    'mutating',
    '7',
    [ownClientConfig, urlConfig, ...foreignEntries].map((config) => entry(config)),
  );
  const { written } = await run();
  expect(written).toMatchObject([
    { method: 'PATCH', patch: 'merge', name: 'one', resource: mutatingWebhookConfigurations },
  ]);
  const caBundle = base64('PEM');
  expect(written[0]!.body).toMatchObject({
    metadata: { resourceVersion: '7' },
    webhooks: [{ ...ownClientConfig, caBundle }, { ...urlConfig, caBundle }, ...foreignEntries].map((config) =>
      entry(config),
    ),
  });
});

it('WebhookBundles does not write a configuration that has the current root', async () => {
  const { state, set, run } = createDuty();
  set('validating', '1', [entry({ ...ownClientConfig, caBundle: base64('PEM') })]);
  expect((await run()).written).toEqual([]);
  state.roots = 'OTHER';
  state.rootsChanged();
  expect((await run()).written).toMatchObject([{ resource: validatingWebhookConfigurations }]);
});

it('WebhookBundles writes no configuration without an authority', async () => {
  const { state, set, run } = createDuty();
  state.roots = undefined;
  set('mutating', '1', [entry(ownClientConfig)]);
  expect((await run()).written).toEqual([]);
});

it('WebhookBundles reports a configuration that another controller overwrites, and writes it again after 10 s', async () => {
  const { state, set, run } = createDuty();
  set('mutating', '1', [entry(ownClientConfig)]);
  expect((await run()).report).toMatchObject({ writtenCount: 1, failedCount: 0 });
  set('mutating', '2', [entry({ ...ownClientConfig, caBundle: 'theirs' })]);
  expect((await run()).report).toMatchObject({
    writtenCount: 0,
    failedCount: 1,
    reason: expect.stringContaining('one'),
  });
  state.now = 10_000;
  expect((await run(true)).report).toMatchObject({ writtenCount: 1, failedCount: 0 });
});

it('WebhookBundles does not write a mutating configuration of another revision', async () => {
  const { set, run } = createDuty();
  set('mutating', '1', [entry(ownClientConfig)], { rev: 'canary' });
  expect((await run()).written).toEqual([]);
});

const validating = (extraFields: object = {}) => ({
  ...entry({ ...ownClientConfig, caBundle: base64('PEM') }, 'rev.validation.istio.io'),
  objectSelector: { matchExpressions: [{ key: 'istio.io/rev', operator: 'In', values: ['default'] }] },
  failurePolicy: 'Ignore',
  ...extraFields,
});
const denied = 'admission webhook "rev.validation.istio.io" denied the request: requests the rejection';

it('WebhookBundles sets failurePolicy to Fail only after the webhook denies a dry run', async () => {
  const { state, set, run } = createDuty();
  set('validating', '1', [validating()]);
  const acceptedRun = await run();
  expect(acceptedRun.written).toEqual([]);
  expect(acceptedRun.report).toMatchObject({ failedCount: 1, reason: expect.stringContaining('WEBHOOK_UNPROVED') });
  state.rejection = 'failed calling webhook "rev.validation.istio.io": connection refused';
  expect((await run(true)).report.reason).toContain('connection refused');
  state.rejection = denied;
  const { written, proofs } = await run(true);
  expect(proofs).toMatchObject([
    { method: 'POST', query: { dryRun: 'All' }, body: { metadata: { labels: { 'istio.io/rev': 'default' } } } },
  ]);
  expect(written).toMatchObject([{ resource: validatingWebhookConfigurations, patch: 'merge' }]);
  expect(written[0]!.body).toMatchObject({ webhooks: [{ failurePolicy: 'Fail' }] });
});

it('WebhookBundles tests a webhook for objects without a revision by a dry run of such an object', async () => {
  const { state, set, run } = createDuty();
  state.rejection = denied;
  set('validating', '1', [
    validating({ objectSelector: { matchExpressions: [{ key: 'istio.io/rev', operator: 'DoesNotExist' }] } }),
  ]);
  const { proofs } = await run();
  expect(proofs.map(({ body }) => (body as { metadata: object }).metadata)).toMatchObject([{ labels: {} }]);
});

it('WebhookBundles writes the root before the dry run, and repeats the dry run if another writer reverts the policy', async () => {
  const { state, set, run } = createDuty();
  state.rejection = denied;
  set('validating', '1', [validating({ clientConfig: ownClientConfig })]);
  expect(await run()).toMatchObject({ written: [{}], proofs: [] });
  set('validating', '2', [validating()]);
  expect(await run()).toMatchObject({ written: [{}], proofs: [{}] });
  set('validating', '3', [validating({ failurePolicy: 'Fail' })]);
  expect(await run()).toMatchObject({ written: [], proofs: [] });
  state.now = 20_000;
  state.rejection = '';
  set('validating', '4', [validating()]);
  expect(await run()).toMatchObject({ written: [], proofs: [{}], report: { failedCount: 1 } });
});

it('WebhookBundles keeps the policy of webhooks of other services, and of a configuration with the annotation keep', async () => {
  const { state, set, run } = createDuty();
  state.rejection = denied;
  set('validating', '1', [validating()], { annotations: { 'chartpilot/failure-policy': 'keep' } });
  expect(await run()).toMatchObject({ written: [], proofs: [] });
  const foreignConfig = { service: { name: 'istiod', namespace: 'other' } };
  set('validating', '2', [validating({ clientConfig: foreignConfig })]);
  expect(await run()).toMatchObject({ written: [], proofs: [] });
});
