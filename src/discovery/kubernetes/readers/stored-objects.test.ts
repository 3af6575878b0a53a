import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Config } from '../../../model/config/config.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import type { ObjectsReading } from '../../registry/followed-objects.ts';
import { resourceOf } from '../api-resource.ts';
import { nameOf, type StoreReader } from '../api-server.effects.ts';
import type { KubernetesObject } from '../api-server.ts';
import { SharesOfKinds } from '../store/namespace-shares.ts';
import { ObjectStore } from '../store/object-store.ts';
import type { RejectedObject } from './cluster-source.ts';
import { readingIntervalMs, StoredObjects } from './stored-objects.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const kinds: readonly KindName[] = ['EndpointSlice', 'Pod', 'Node'];

/** A registry whose informers receive objects from the test. */
class RegistryFixture {
  readonly refused: RejectedObject[] = [];
  /** Objects of the registry. */
  readonly held = new Map<string, Config>();
  changed = 0;
  /** Number of reads of single objects from the store. */
  readCount = 0;
  readonly objects: StoredObjects;
  readonly #stores = new Map<string, ObjectStore>();
  readonly #readers = new Map<string, StoreReader[]>();

  constructor(maxReadMs = Number.POSITIVE_INFINITY, maxBytes = 1_000_000_000) {
    const shares = new SharesOfKinds(maxBytes);
    for (const kind of kinds) {
      const store = new ObjectStore({ shares: shares.sharesOfKind(kind) });
      const get = store.get.bind(store);
      store.get = (key) => {
        this.readCount++;
        return get(key);
      };
      this.#stores.set(nameOf(resourceOf(kind)), store);
    }
    this.objects = new StoredObjects({
      ...{ address: 'k8s://services', kinds },
      informers: {
        storeOf: (resource) => this.#stores.get(nameOf(resource))!,
        addReader: (resource, reader) => {
          const readers = this.#readers.get(nameOf(resource)) ?? [];
          this.#readers.set(nameOf(resource), [...readers, reader]);
        },
      },
      maxReadMs,
    });
    this.objects.onChanged(() => this.changed++);
    this.objects.onRejected((one) => this.refused.push(one));
  }

  emit(kind: KindName, object: KubernetesObject, type: 'ADDED' | 'DELETED' = 'ADDED'): void {
    const resource = resourceOf(kind);
    const wholeObject = { apiVersion: kind === 'EndpointSlice' ? 'discovery.k8s.io/v1' : 'v1', kind, ...object };
    const changes = this.#stores.get(nameOf(resource))!.apply({ type, object: wholeObject });
    for (const reader of this.#readers.get(nameOf(resource)) ?? []) void reader(changes);
  }

  read(): ObjectsReading {
    const objectsReading = runToEnd(this.objects.readInSteps((key) => this.held.get(key)));
    for (const { key, current } of objectsReading.changes) {
      if (current === undefined) this.held.delete(key);
      else this.held.set(key, current);
    }
    return objectsReading;
  }
}

const metadata = (name: string, version: string, namespace = 'shop') => ({
  ...{ name, namespace, uid: name, resourceVersion: version, labels: { 'kubernetes.io/service-name': 'web' } },
});
const slice = (name: string, version: string, address: string, namespace?: string): KubernetesObject => ({
  metadata: metadata(name, version, namespace),
  ...{ addressType: 'IPv4', ports: [{ name: 'http', port: 80 }] },
  endpoints: [{ addresses: [address], conditions: { ready: true } }],
});
const invalidSlice = (name: string, version: string): KubernetesObject => ({
  metadata: metadata(name, version),
  ...{ addressType: 'IPv4', ports: [{ name: 'http', port: 'eighty' }] },
  endpoints: [{ addresses: ['10.0.0.9'] }],
});
const addressesOf = (config: Config | undefined): unknown =>
  (config?.spec as { endpoints: { addresses: string[] }[] } | undefined)?.endpoints.flatMap(
    ({ addresses }) => addresses,
  );

it('a registry reads only the changed object of 1,000, and is notified once until it reads', () => {
  const registry = new RegistryFixture();
  for (let index = 0; index < 1_000; index++) registry.emit('EndpointSlice', slice(`s${index}`, '1', '10.0.0.1'));
  expect(registry.changed).toBe(1);
  expect(registry.read().changes).toHaveLength(1_000);
  registry.readCount = 0;
  vi.advanceTimersByTime(readingIntervalMs);
  registry.emit('EndpointSlice', slice('s7', '2', '10.0.0.2'));
  registry.emit('EndpointSlice', slice('s7', '3', '10.0.0.3'));
  expect(registry.changed).toBe(2);
  const { changes, problems } = registry.read();
  expect(changes.map(({ key, current }) => [key, addressesOf(current)])).toEqual([
    ['EndpointSlice/shop/s7', ['10.0.0.3']],
  ]);
  expect([problems, registry.readCount]).toEqual([[], 1]);
  expect(registry.read().changes).toEqual([]);
});

it('a registry keeps the last valid version of an object, and reports an error with its field and its resolution', () => {
  const registry = new RegistryFixture();
  registry.emit('EndpointSlice', slice('web', '1', '10.0.0.1'));
  registry.read();
  registry.emit('EndpointSlice', invalidSlice('web', '2'));
  const { changes, problems } = registry.read();
  expect(changes).toEqual([]);
  expect(problems).toMatchObject([
    { severity: 'error', place: { source: 'k8s://services' }, object: 'EndpointSlice shop/web' },
  ]);
  expect(problems[0]!.field).toMatch(/^ports/);
  expect(registry.refused.map(({ kind, key, errors }) => [kind, key, errors.length])).toEqual([
    ['EndpointSlice', 'shop/web', problems.length],
  ]);
  // A recreated registry also gets the last valid version.
  expect(runToEnd(registry.objects.readAll()).map(addressesOf)).toEqual([['10.0.0.1']]);
  registry.emit('EndpointSlice', slice('web', '3', '10.0.0.3'));
  expect(registry.read()).toMatchObject({ recovered: ['k8s://services: EndpointSlice shop/web'], problems: [] });
  expect(registry.refused.at(-1)).toMatchObject({ key: 'shop/web', errors: [] });
  expect(addressesOf(registry.held.get('EndpointSlice/shop/web'))).toEqual(['10.0.0.3']);
});

it('a registry never receives an object that was never valid, and deletes an invalid object that was valid before', () => {
  const registry = new RegistryFixture();
  registry.emit('EndpointSlice', invalidSlice('never', '1'));
  registry.emit('EndpointSlice', slice('once', '1', '10.0.0.1'));
  registry.read();
  registry.emit('EndpointSlice', invalidSlice('once', '2'));
  registry.read();
  expect([...registry.held.keys()]).toEqual(['EndpointSlice/shop/once']);
  expect(registry.objects.get('EndpointSlice/shop/never')).toBeUndefined();
  registry.emit('EndpointSlice', invalidSlice('once', '2'), 'DELETED');
  expect(registry.read().changes).toEqual([{ key: 'EndpointSlice/shop/once', current: undefined }]);
  expect(runToEnd(registry.objects.readAll())).toEqual([]);
});

it('a registry rejects a Pod with 100,000 labels, keeps its last version, and reports a limited number of problems', () => {
  const registry = new RegistryFixture(undefined, 2_000_000);
  const pod = (version: string, labels: Record<string, string>): KubernetesObject => ({
    metadata: { ...metadata('web', version), labels },
    ...{ spec: { nodeName: 'n1' }, status: { phase: 'Running', podIP: '10.0.0.1' } },
  });
  registry.emit('Pod', pod('1', { app: 'web' }));
  registry.read();
  const labels = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`l${index}`, 'x']));
  registry.emit('Pod', pod('2', labels));
  const { changes, problems } = registry.read();
  expect([changes, problems.length]).toEqual([[], 1]);
  expect(problems[0]).toMatchObject({ object: 'Pod shop/web', code: 'LIMIT_EXCEEDED' });
  expect(registry.held.get('Pod/shop/web')!.labels).toEqual({ app: 'web' });
});

it('a registry reads a change before most of many earlier changes in another namespace', () => {
  const registry = new RegistryFixture(0);
  registry.read();
  vi.advanceTimersByTime(readingIntervalMs);
  for (let index = 0; index < 50; index++)
    registry.emit('EndpointSlice', slice(`flood-${index}`, '1', '10.0.0.1', 'mallory'));
  registry.emit('EndpointSlice', slice('late', '1', '10.0.0.2', 'bank'));
  registry.changed = 0;
  registry.read();
  expect([...registry.held.keys()].sort()).toEqual(['EndpointSlice/bank/late', 'EndpointSlice/mallory/flood-0']);
  expect(registry.changed).toBe(1);
  for (let count = 0; count < 49; count++) registry.read();
  expect([registry.held.size, registry.changed]).toEqual([51, 49]);
});

it('a registry reads an object again if the object changes during the read', () => {
  const registry = new RegistryFixture();
  registry.emit('EndpointSlice', slice('one', '1', '10.0.0.1'));
  registry.emit('EndpointSlice', slice('two', '1', '10.0.0.1'));
  const objectsReading = registry.objects.readInSteps(() => undefined);
  objectsReading.next();
  registry.emit('EndpointSlice', slice('one', '2', '10.0.0.2'));
  registry.emit('EndpointSlice', slice('two', '2', '10.0.0.2'));
  const previous = registry.changed;
  const first = runToEnd(objectsReading);
  expect(first.changes.map(({ current }) => addressesOf(current))).toEqual([['10.0.0.1'], ['10.0.0.2']]);
  expect(registry.changed).toBeGreaterThanOrEqual(previous);
  expect(registry.changed).toBe(2);
  expect(registry.read().changes.map(({ key, current }) => [key, addressesOf(current)])).toEqual([
    ['EndpointSlice/shop/one', ['10.0.0.2']],
  ]);
});

it('a registry is notified immediately of a single change, and reads frequent changes together', () => {
  const registry = new RegistryFixture();
  registry.emit('EndpointSlice', slice('one', '1', '10.0.0.1'));
  registry.read();
  vi.advanceTimersByTime(readingIntervalMs);
  registry.changed = 0;
  registry.emit('EndpointSlice', slice('one', '2', '10.0.0.2'));
  expect(registry.changed).toBe(1);
  registry.read();
  let readings = 0;
  // Takes 220 ms, so that changes remain for the last read.
  for (let event = 0; event < 110; event++) {
    registry.emit('EndpointSlice', slice(`s${event % 7}`, `${event + 3}`, `10.0.1.${event}`));
    vi.advanceTimersByTime(2);
    if (registry.changed > readings + 1) {
      readings++;
      registry.read();
    }
  }
  expect(readings).toBe(Math.floor(220 / readingIntervalMs));
  vi.advanceTimersByTime(readingIntervalMs);
  expect(registry.changed).toBe(readings + 2);
  registry.read();
  expect(addressesOf(registry.held.get('EndpointSlice/shop/s4'))).toEqual(['10.0.1.109']);
});

it('a registry is not notified of a change that it has already read', () => {
  const registry = new RegistryFixture();
  registry.emit('EndpointSlice', slice('one', '1', '10.0.0.1'));
  registry.read();
  registry.emit('EndpointSlice', slice('one', '2', '10.0.0.2'));
  expect(registry.read().changes).toHaveLength(1);
  vi.advanceTimersByTime(10 * readingIntervalMs);
  expect(registry.changed).toBe(1);
});
