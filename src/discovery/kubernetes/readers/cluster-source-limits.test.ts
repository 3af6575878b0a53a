/** Tests objects that exceed a limit, and Secrets that a Gateway refers to (issue 33, item 10). */
import { expect, it } from 'vitest';
import type { KindName } from '../../../model/kinds/index.ts';
import { credentialsReferencedBy } from '../../../networking/secrets/credential-references.ts';
import { resourceOf } from '../api-resource.ts';
import { type InformerEffects, nameOf, type StoreReader } from '../api-server.effects.ts';
import type { KubernetesObject } from '../api-server.ts';
import { SharesOfKinds } from '../store/namespace-shares.ts';
import { ObjectStore } from '../store/object-store.ts';
import { ClusterSource, type RejectedObject } from './cluster-source.ts';
import { ReferencedObjects } from './referenced-objects.ts';

/** Informers whose events the test sends. Secrets are read from a simulated cluster. */
function createSource(kinds: readonly KindName[], maxBytes = 40_000, maxReadMs = Number.POSITIVE_INFINITY) {
  const shares = new SharesOfKinds(maxBytes);
  const secrets = new Map<string, KubernetesObject>();
  const stores = new Map<string, ObjectStore>();
  const readers = new Map<string, StoreReader[]>();
  const informers = {
    storeOf: (resource: Parameters<typeof nameOf>[0]) => stores.get(nameOf(resource))!,
    addReader: (resource: Parameters<typeof nameOf>[0], reader: StoreReader) =>
      void readers.set(nameOf(resource), [...(readers.get(nameOf(resource)) ?? []), reader]),
    waitForFirstSet: async () => {},
  } as unknown as InformerEffects;
  const objects = new ReferencedObjects({
    server: {
      async list(_, { namespace, fieldSelector = '' }, __, onItem) {
        const object = secrets.get(`${namespace}/${fieldSelector.slice('metadata.name='.length)}`);
        if (object !== undefined) onItem?.(object);
        return { items: [], resourceVersion: '1' };
      },
    },
    ...{ informers: () => informers, fault: () => {}, onRejected: () => {} },
  });
  for (const kind of kinds) {
    const keeps =
      kind === 'Secret' ? { shouldKeep: (key: string) => objects.shouldKeep('Secret', key), isOnDemand: true } : {};
    stores.set(nameOf(resourceOf(kind)), new ObjectStore({ shares: shares.sharesOfKind(kind), ...keeps }));
  }
  objects.followKinds(['Secret']);
  const source = new ClusterSource({
    ...{ address: 'k8s://', informers, kinds, revision: '' },
    referenced: { objects, referencesOf: credentialsReferencedBy },
    maxReadMs,
  });
  const changedKinds: string[] = [];
  source.watch({ changed: (kind) => changedKinds.push(kind), failed: () => {} });
  const rejectedObjects: RejectedObject[] = [];
  source.onRejected((one) => rejectedObjects.push(one));
  const put = (kind: KindName, object: KubernetesObject, type: 'ADDED' | 'DELETED' = 'ADDED'): void => {
    const resource = resourceOf(kind);
    const { group, version } = resource;
    const wholeObject = { apiVersion: group === '' ? version : `${group}/${version}`, kind: resource.kind, ...object };
    const changes = stores.get(nameOf(resource))!.apply({ type, object: wholeObject });
    for (const reader of readers.get(nameOf(resource)) ?? []) void reader(changes);
  };
  return { source, refused: rejectedObjects, secrets, objects, put, moved: changedKinds };
}

const metadataOf = (name: string, version = '1') => ({
  name,
  namespace: 'bank',
  uid: name,
  resourceVersion: version,
  generation: 1,
});
const placeholders = ({ source }: ReturnType<typeof createSource>) =>
  source.snapshot.placeholders.map(({ standsFor }) => standsFor?.objectName);

it('a policy above the size limit denies access in its namespace and is reported with the limit', async () => {
  const one = createSource(['AuthorizationPolicy']);
  const rules = Array.from({ length: 2_000 }, (_, at) => ({ to: [{ operation: { paths: [`/${at}`] } }] }));
  one.put('AuthorizationPolicy', { metadata: metadataOf('large'), spec: { action: 'ALLOW', rules } });
  const readResult = await one.source.read();
  expect(placeholders(one)).toEqual(['AuthorizationPolicy bank/large']);
  expect(readResult).toMatchObject({
    problems: [
      {
        severity: 'error',
        object: 'AuthorizationPolicy bank/large',
        message: expect.stringContaining('namespace bank is 10000 bytes'),
      },
    ],
  });
  expect(one.refused).toMatchObject([{ kind: 'AuthorizationPolicy', key: 'bank/large', generation: 1 }]);
});

it('a namespace keeps its policies even if other objects exhaust its limit', async () => {
  const one = createSource(['VirtualService', 'AuthorizationPolicy']);
  const spec = { hosts: ['x'.repeat(100)], http: [{ route: [{ destination: { host: 'y'.repeat(200) } }] }] };
  for (let at = 0; at < 200; at++) one.put('VirtualService', { metadata: metadataOf(`v${at}`), spec });
  one.put('AuthorizationPolicy', { metadata: metadataOf('deny'), spec: { action: 'DENY', rules: [{}] } });
  await one.source.read();
  expect(placeholders(one)).toEqual([]);
  expect(one.source.snapshot.set.AuthorizationPolicy).toHaveLength(1);
  expect(one.source.snapshot.set.VirtualService.length).toBeLessThan(100);
});

it('an object with many errors is reported with 50 errors, the last of which states how many more there are', async () => {
  const one = createSource(['ServiceEntry'], 10_000_000);
  const ports = Array.from({ length: 100 }, () => ({ number: -1, name: 'x', protocol: 'NONE' }));
  one.put('ServiceEntry', { metadata: metadataOf('bad'), spec: { hosts: ['a.test'], ports } });
  await one.source.read();
  const [{ errors }] = one.refused as [RejectedObject];
  expect(errors).toHaveLength(50);
  expect(errors.at(-1)!.message).toMatch(/^has \d+ more errors/);
});

const gateway = (credentialName: string, version = '1') => ({
  metadata: { ...metadataOf('edge', version), generation: Number(version) },
  spec: {
    servers: [
      {
        port: { number: 443, name: 'https', protocol: 'HTTPS' },
        hosts: ['*'],
        tls: { mode: 'SIMPLE', credentialName },
      },
    ],
  },
});
const secret = (name: string) => ({
  metadata: metadataOf(name),
  type: 'kubernetes.io/tls',
  data: { 'tls.crt': 'YQ==' },
});

it('a Gateway and its Secret are read together, and an unreferenced Secret is never read', async () => {
  const one = createSource(['Gateway', 'Secret']);
  for (const name of ['web', 'other'])
    one.secrets.set(`bank/${name}`, { apiVersion: 'v1', kind: 'Secret', ...secret(name) });
  one.put('Gateway', gateway('web'));
  await one.source.read();
  expect([...one.source.snapshot.byKey.keys()].toSorted()).toEqual(['Gateway/bank/edge', 'Secret/bank/web']);
  one.put('Gateway', gateway('other', '2'));
  await one.source.read();
  expect([...one.source.snapshot.byKey.keys()].toSorted()).toEqual(['Gateway/bank/edge', 'Secret/bank/other']);
  one.put('Gateway', gateway('other', '3'), 'DELETED');
  await one.source.read();
  expect([...one.source.snapshot.byKey.keys()]).toEqual([]);
});

it('a change is read before most of many earlier changes in another namespace', async () => {
  const { source, put, moved } = createSource(['VirtualService', 'AuthorizationPolicy'], 1_000_000, 0);
  await source.read();
  const service = (index: number): KubernetesObject => ({
    metadata: { ...metadataOf(`flood-${index}`), namespace: 'mallory' },
    spec: { hosts: [`h${index}.test`], http: [{ route: [{ destination: { host: 'a.test' } }] }] },
  });
  for (let index = 0; index < 50; index++) put('VirtualService', service(index));
  put('AuthorizationPolicy', { metadata: metadataOf('late'), spec: {} });
  moved.splice(0);
  await source.read();
  expect([...source.snapshot.byKey.keys()].sort()).toEqual([
    'AuthorizationPolicy/bank/late',
    'VirtualService/mallory/flood-0',
  ]);
  // Some objects remain to be read.
  expect(moved).toEqual(['VirtualService']);
  for (let count = 0; count < 49; count++) await source.read();
  expect([source.snapshot.byKey.size, moved.length]).toEqual([51, 49]);
});

it('an object that changes during a read is read again next time', async () => {
  const { source, put } = createSource(['VirtualService'], 1_000_000, 0);
  await source.read();
  const service = (version: string, host: string): KubernetesObject => ({
    metadata: { ...metadataOf('web', version), generation: Number(version) },
    spec: { hosts: [host], http: [{ route: [{ destination: { host: 'a.test' } }] }] },
  });
  put('VirtualService', service('2', 'old.test'));
  const pendingRead = source.read();
  await Promise.resolve();
  put('VirtualService', service('3', 'new.test'));
  await pendingRead;
  await source.read();
  expect(source.snapshot.byKey.get('VirtualService/bank/web')!.spec).toMatchObject({ hosts: ['new.test'] });
});
