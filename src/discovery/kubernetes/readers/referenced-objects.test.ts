/** Only Secrets and ConfigMaps that configuration refers to are read (issue 33, item 10). */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from '../api-failure.ts';
import type { StoreReader } from '../api-server.effects.ts';
import type { ApiServer, KubernetesObject } from '../api-server.ts';
import { ObjectStore, rejectionReasonOf } from '../store/object-store.ts';
import {
  maxReferencedNamespaceBytes,
  maxReferencedObjectBytes,
  maxReferencesOfNamespace,
  ReferencedObjects,
} from './referenced-objects.ts';

const secret = (
  name: string,
  version = '1',
  data: Record<string, string> = {},
  namespace = 'bank',
): KubernetesObject => ({
  ...{ apiVersion: 'v1', kind: 'Secret', data },
  metadata: { name, namespace, uid: `uid-${namespace}-${name}`, resourceVersion: version },
});

/** A cluster with these Secrets. With `held`, the test completes each read. */
function createCluster({ held = false } = {}) {
  const objects = new Map<string, KubernetesObject>();
  const reads: string[] = [];
  const pendingReads: { readonly key: string; readonly complete: () => void }[] = [];
  let failure: ApiError | undefined;
  const server: Pick<ApiServer, 'list'> = {
    async list(_, { namespace, fieldSelector = '' }, __, onItem) {
      const key = `${namespace}/${fieldSelector.slice('metadata.name='.length)}`;
      reads.push(key);
      if (failure !== undefined) throw failure;
      const object = objects.get(key);
      if (held) await new Promise<void>((resolve) => void pendingReads.push({ key, complete: resolve }));
      if (object !== undefined) onItem?.(object);
      return { items: [], resourceVersion: '9' };
    },
  };
  const refusals: string[] = [];
  const store = new ObjectStore({ shouldKeep: (key) => referenced.shouldKeep('Secret', key), isOnDemand: true });
  const informed: StoreReader[] = [];
  const referenced: ReferencedObjects = new ReferencedObjects({
    server,
    informers: () => ({
      addReader: (_: unknown, reader: StoreReader) => void informed.push(reader),
      waitForFirstSet: async () => {},
      storeOf: () => store,
    }),
    fault: (error) => {
      throw error;
    },
    onRejected: (kind, key, reason) => void refusals.push(`${kind} ${key} ${reason}`),
  });
  referenced.followKinds(['Secret']);
  const reportedEvents: string[] = [];
  referenced.addReader('Secret', (changes) => {
    for (const { event, key } of changes) reportedEvents.push(`${event} ${key}`);
  });
  /** Changes an object in the simulated API server and sends its event. */
  const event = (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: KubernetesObject): void => {
    const { namespace, name } = object.metadata;
    if (type === 'DELETED') objects.delete(`${namespace}/${name}`);
    else objects.set(`${namespace}/${name}`, object);
    const { metadata } = object;
    for (const reader of informed) void reader(store.apply({ type, object: { metadata } }));
  };
  return {
    ...{ objects, reads, waiting: pendingReads, refused: refusals, store, referenced, reported: reportedEvents, event },
    fail: (error: ApiError | undefined) => {
      failure = error;
    },
    refer: (referrer: string, ...names: string[]) =>
      referenced.setReferences(
        referrer,
        names.map((name) => ({ kind: 'Secret', namespace: 'bank', name })),
      ),
  };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());
const runPending = () => vi.advanceTimersByTimeAsync(0);

describe('a referenced object', () => {
  it('is read by name, and again when it changes, while other objects are neither read nor stored', async () => {
    const { event, refer, referenced, reads, reported, store } = createCluster();
    for (const name of ['web', 'other']) event('ADDED', secret(name));
    expect([reads, store.size]).toEqual([[], 0]);
    refer('Gateway', 'web');
    await referenced.waitUntilAttempted();
    event('MODIFIED', secret('other', '2'));
    event('MODIFIED', secret('web', '3'));
    await runPending();
    expect(referenced.get('Secret', 'bank/web')?.metadata.resourceVersion).toBe('3');
    expect(referenced.get('Secret', 'bank/other')).toBeUndefined();
    expect(reads).toEqual(['bank/web', 'bank/web']);
    expect(reported).toEqual(['add bank/web', 'update bank/web']);
    expect([...store.entries()].map(([key]) => key)).toEqual(['bank/web']);
  });

  it('is added and removed when it is created and deleted later', async () => {
    const { event, refer, referenced, reported } = createCluster();
    refer('Gateway', 'web');
    await referenced.waitUntilAttempted();
    event('ADDED', secret('web'));
    await runPending();
    event('DELETED', secret('web', '2'));
    await runPending();
    expect(reported).toEqual(['add bank/web', 'delete bank/web']);
    expect(referenced.get('Secret', 'bank/web')).toBeUndefined();
  });

  it('is not stored if it is deleted while it is read', async () => {
    const { event, refer, referenced, waiting, objects } = createCluster({ held: true });
    objects.set('bank/web', secret('web'));
    refer('Gateway', 'web');
    await runPending();
    event('DELETED', secret('web', '2'));
    waiting.shift()!.complete();
    await runPending();
    waiting.shift()!.complete();
    await runPending();
    expect(referenced.get('Secret', 'bank/web')).toBeUndefined();
  });

  it('is removed with the next full set if it was deleted while the watch was interrupted', async () => {
    const { objects, refer, referenced, store, reported } = createCluster();
    objects.set('bank/web', secret('web'));
    refer('Gateway', 'web');
    await referenced.waitUntilAttempted();
    store.beginSet();
    expect(store.activateCollected()).toMatchObject([{ event: 'delete', key: 'bank/web' }]);
    expect(reported).toEqual(['add bank/web']);
  });

  it('is removed with its last reference', async () => {
    const { event, refer, referenced, reported, reads } = createCluster();
    event('ADDED', secret('web'));
    refer('one', 'web');
    refer('two', 'web');
    await referenced.waitUntilAttempted();
    refer('one');
    expect(reported).toEqual(['add bank/web']);
    refer('two');
    expect(reported).toEqual(['add bank/web', 'delete bank/web']);
    event('MODIFIED', secret('web', '2'));
    await runPending();
    expect(reads).toEqual(['bank/web']);
  });

  it('keeps its last state if it cannot be read, and is retried after a delay', async () => {
    const { event, refer, referenced, fail } = createCluster();
    event('ADDED', secret('web'));
    refer('one', 'web');
    await referenced.waitUntilAttempted();
    fail(new ApiError({ kind: 'timeout', message: 'no answer' }));
    event('MODIFIED', secret('web', '2'));
    await runPending();
    expect(referenced.get('Secret', 'bank/web')?.metadata.resourceVersion).toBe('1');
    fail(undefined);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(referenced.get('Secret', 'bank/web')?.metadata.resourceVersion).toBe('2');
  });

  it('counts as attempted if it cannot be read, so that startup does not wait for it', async () => {
    const { refer, referenced, fail } = createCluster();
    fail(new ApiError({ kind: 'timeout', message: 'no answer' }));
    refer('one', 'web');
    await expect(referenced.waitUntilAttempted()).resolves.toBeUndefined();
  });

  it('counts as absent only if the API server reports this, regardless of earlier failures', async () => {
    const { event, refer, referenced, fail } = createCluster();
    const readingOf = (name: string) => referenced.stateOf({ kind: 'Secret', namespace: 'bank', name });
    expect(readingOf('web')).toBe('unread');
    fail(new ApiError({ kind: 'timeout', message: 'no answer' }));
    refer('one', 'web', 'large');
    await runPending();
    expect(readingOf('web')).toBe('unread');
    fail(undefined);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(readingOf('web')).toBe('absent');
    event('ADDED', secret('web'));
    event('ADDED', secret('large', '1', { 'ca.crt': 'x'.repeat(maxReferencedObjectBytes) }));
    await runPending();
    expect([readingOf('web'), readingOf('large')]).toEqual(['present', 'refused']);
    refer('one');
    expect(readingOf('web')).toBe('unread');
  });

  it('is requested only if its name is valid', async () => {
    const { refer, reads, referenced } = createCluster();
    refer('one', 'web,metadata.name!=web', 'A b', '../x', 'web');
    await referenced.waitUntilAttempted();
    expect(reads).toEqual(['bank/web']);
  });
});

describe('the limits of referenced objects', () => {
  it('reject an object above the maximum size, keep only its name, and are reported', async () => {
    const { event, refer, referenced, refused } = createCluster();
    event('ADDED', secret('web', '1', { 'ca.crt': 'x'.repeat(maxReferencedObjectBytes) }));
    refer('one', 'web');
    await referenced.waitUntilAttempted();
    const keptSecret = referenced.get('Secret', 'bank/web')!;
    expect(rejectionReasonOf(keptSecret)).toContain(`the limit is ${maxReferencedObjectBytes}`);
    expect(keptSecret.data).toBeUndefined();
    expect(refused).toEqual([expect.stringContaining('Secret bank/web is too large')]);
  });

  it('apply to all objects of a namespace together, and to each namespace separately', async () => {
    const { event, refer, referenced } = createCluster();
    const data = { 'ca.crt': 'x'.repeat(maxReferencedObjectBytes - 1_000) };
    const names = Array.from(
      { length: maxReferencedNamespaceBytes / maxReferencedObjectBytes + 3 },
      (_, at) => `s${at}`,
    );
    for (const name of names) event('ADDED', secret(name, '1', data));
    event('ADDED', secret('web', '1', data, 'shop'));
    refer('one', ...names);
    referenced.setReferences('two', [{ kind: 'Secret', namespace: 'shop', name: 'web' }]);
    await referenced.waitUntilAttempted();
    const keptNames = names.filter((name) => referenced.get('Secret', `bank/${name}`)?.data !== undefined);
    expect(keptNames).toHaveLength(maxReferencedNamespaceBytes / maxReferencedObjectBytes);
    expect(referenced.get('Secret', 'shop/web')?.data).toEqual(data);
  });

  it('restrict thousands of references in one namespace, which do not delay another namespace', async () => {
    const { refer, referenced, reads, waiting, refused, objects } = createCluster({ held: true });
    objects.set('shop/web', secret('web', '1', {}, 'shop'));
    refer('many', ...Array.from({ length: maxReferencesOfNamespace + 5 }, (_, at) => `s${at}`));
    referenced.setReferences('one', [{ kind: 'Secret', namespace: 'shop', name: 'web' }]);
    await runPending();
    expect(reads).toContain('shop/web');
    expect(reads.length).toBeLessThanOrEqual(8);
    waiting.find(({ key }) => key === 'shop/web')!.complete();
    await runPending();
    expect(referenced.get('Secret', 'shop/web')).toBeDefined();
    expect(refused).toHaveLength(5);
  });
});
