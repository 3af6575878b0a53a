/** Issue 33, item 10: of Secrets and ConfigMaps only those that something refers to are read. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from '../api-failure.ts';
import type { StoreReader } from '../api-server.effects.ts';
import type { ApiServer, KubernetesObject } from '../api-server.ts';
import { ObjectStore, refusalOf } from '../store/object-store.ts';
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

/** A cluster with these Secrets, whose reads the test answers by hand if it says so. */
function given({ held = false } = {}) {
  const objects = new Map<string, KubernetesObject>();
  const reads: string[] = [];
  const waiting: { readonly key: string; readonly answer: () => void }[] = [];
  let failure: ApiError | undefined;
  const server: Pick<ApiServer, 'list'> = {
    async list(_, { namespace, fieldSelector = '' }, __, onItem) {
      const key = `${namespace}/${fieldSelector.slice('metadata.name='.length)}`;
      reads.push(key);
      if (failure !== undefined) throw failure;
      const object = objects.get(key);
      if (held) await new Promise<void>((resolve) => void waiting.push({ key, answer: resolve }));
      if (object !== undefined) onItem?.(object);
      return { items: [], resourceVersion: '9' };
    },
  };
  const refused: string[] = [];
  const store = new ObjectStore({ keeps: (key) => referenced.keeps('Secret', key), isOnDemand: true });
  const informed: StoreReader[] = [];
  const referenced: ReferencedObjects = new ReferencedObjects({
    server,
    informers: () => ({
      addReader: (_: unknown, reader: StoreReader) => void informed.push(reader),
      firstSet: async () => {},
      storeOf: () => store,
    }),
    fault: (error) => {
      throw error;
    },
    refused: (kind, key, reason) => void refused.push(`${kind} ${key} ${reason}`),
  });
  referenced.follow(['Secret']);
  const told: string[] = [];
  referenced.addReader('Secret', (changes) => {
    for (const { event, key } of changes) told.push(`${event} ${key}`);
  });
  /** The API server has it, and the informer sees its event. */
  const event = (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: KubernetesObject): void => {
    const { namespace, name } = object.metadata;
    if (type === 'DELETED') objects.delete(`${namespace}/${name}`);
    else objects.set(`${namespace}/${name}`, object);
    const { metadata } = object;
    for (const reader of informed) void reader(store.apply({ type, object: { metadata } }));
  };
  return {
    ...{ objects, reads, waiting, refused, store, referenced, told, event },
    fail: (error: ApiError | undefined) => {
      failure = error;
    },
    refer: (referrer: string, ...names: string[]) =>
      referenced.refer(
        referrer,
        names.map((name) => ({ kind: 'Secret', namespace: 'bank', name })),
      ),
  };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());
const settle = () => vi.advanceTimersByTimeAsync(0);

describe('an object that something refers to', () => {
  it('is read by its name, and read again when it changes; others are neither read nor kept', async () => {
    const { event, refer, referenced, reads, told, store } = given();
    for (const name of ['web', 'other']) event('ADDED', secret(name));
    expect([reads, store.size]).toEqual([[], 0]);
    refer('Gateway', 'web');
    await referenced.attempted();
    event('MODIFIED', secret('other', '2'));
    event('MODIFIED', secret('web', '3'));
    await settle();
    expect(referenced.get('Secret', 'bank/web')?.metadata.resourceVersion).toBe('3');
    expect(referenced.get('Secret', 'bank/other')).toBeUndefined();
    expect(reads).toEqual(['bank/web', 'bank/web']);
    expect(told).toEqual(['add bank/web', 'update bank/web']);
    expect([...store.entries()].map(([key]) => key)).toEqual(['bank/web']);
  });

  it('that is created or deleted later comes and goes', async () => {
    const { event, refer, referenced, told } = given();
    refer('Gateway', 'web');
    await referenced.attempted();
    event('ADDED', secret('web'));
    await settle();
    event('DELETED', secret('web', '2'));
    await settle();
    expect(told).toEqual(['add bank/web', 'delete bank/web']);
    expect(referenced.get('Secret', 'bank/web')).toBeUndefined();
  });

  it('that was deleted while it was read is not kept', async () => {
    const { event, refer, referenced, waiting, objects } = given({ held: true });
    objects.set('bank/web', secret('web'));
    refer('Gateway', 'web');
    await settle();
    event('DELETED', secret('web', '2'));
    waiting.shift()!.answer();
    await settle();
    waiting.shift()!.answer();
    await settle();
    expect(referenced.get('Secret', 'bank/web')).toBeUndefined();
  });

  it('that was deleted while nobody watched is missed in the next set', async () => {
    const { objects, refer, referenced, store, told } = given();
    objects.set('bank/web', secret('web'));
    refer('Gateway', 'web');
    await referenced.attempted();
    store.beginSet();
    expect(store.replace()).toMatchObject([{ event: 'delete', key: 'bank/web' }]);
    expect(told).toEqual(['add bank/web']);
  });

  it('is forgotten with the last reference', async () => {
    const { event, refer, referenced, told, reads } = given();
    event('ADDED', secret('web'));
    refer('one', 'web');
    refer('two', 'web');
    await referenced.attempted();
    refer('one');
    expect(told).toEqual(['add bank/web']);
    refer('two');
    expect(told).toEqual(['add bank/web', 'delete bank/web']);
    event('MODIFIED', secret('web', '2'));
    await settle();
    expect(reads).toEqual(['bank/web']);
  });

  it('that cannot be read keeps its last state, and is read again after a delay', async () => {
    const { event, refer, referenced, fail } = given();
    event('ADDED', secret('web'));
    refer('one', 'web');
    await referenced.attempted();
    fail(new ApiError({ kind: 'timeout', message: 'no answer' }));
    event('MODIFIED', secret('web', '2'));
    await settle();
    expect(referenced.get('Secret', 'bank/web')?.metadata.resourceVersion).toBe('1');
    fail(undefined);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(referenced.get('Secret', 'bank/web')?.metadata.resourceVersion).toBe('2');
  });

  it('counts as attempted when it cannot be read, so that a start does not wait for ever', async () => {
    const { refer, referenced, fail } = given();
    fail(new ApiError({ kind: 'timeout', message: 'no answer' }));
    refer('one', 'web');
    await expect(referenced.attempted()).resolves.toBeUndefined();
  });

  it('is known to be absent only if the API server said so, whatever failed before', async () => {
    const { event, refer, referenced, fail } = given();
    const reading = (name: string) => referenced.readingOf({ kind: 'Secret', namespace: 'bank', name });
    expect(reading('web')).toBe('unread');
    fail(new ApiError({ kind: 'timeout', message: 'no answer' }));
    refer('one', 'web', 'large');
    await settle();
    expect(reading('web')).toBe('unread');
    fail(undefined);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(reading('web')).toBe('absent');
    event('ADDED', secret('web'));
    event('ADDED', secret('large', '1', { 'ca.crt': 'x'.repeat(maxReferencedObjectBytes) }));
    await settle();
    expect([reading('web'), reading('large')]).toEqual(['present', 'refused']);
    refer('one');
    expect(reading('web')).toBe('unread');
  });

  it('is requested by a name that an object may have, and by no other', async () => {
    const { refer, reads, referenced } = given();
    refer('one', 'web,metadata.name!=web', 'A b', '../x', 'web');
    await referenced.attempted();
    expect(reads).toEqual(['bank/web']);
  });
});

describe('limits', () => {
  it('an object above its limit is refused: only its name is kept, and the reason says the limit', async () => {
    const { event, refer, referenced, refused } = given();
    event('ADDED', secret('web', '1', { 'ca.crt': 'x'.repeat(maxReferencedObjectBytes) }));
    refer('one', 'web');
    await referenced.attempted();
    const kept = referenced.get('Secret', 'bank/web')!;
    expect(refusalOf(kept)).toContain(`the limit is ${maxReferencedObjectBytes}`);
    expect(kept.data).toBeUndefined();
    expect(refused).toEqual([expect.stringContaining('Secret bank/web is too large')]);
  });

  it('the objects of one namespace have a limit together, and another namespace has its own', async () => {
    const { event, refer, referenced } = given();
    const data = { 'ca.crt': 'x'.repeat(maxReferencedObjectBytes - 1_000) };
    const names = Array.from(
      { length: maxReferencedNamespaceBytes / maxReferencedObjectBytes + 3 },
      (_, at) => `s${at}`,
    );
    for (const name of names) event('ADDED', secret(name, '1', data));
    event('ADDED', secret('web', '1', data, 'shop'));
    refer('one', ...names);
    referenced.refer('two', [{ kind: 'Secret', namespace: 'shop', name: 'web' }]);
    await referenced.attempted();
    const kept = names.filter((name) => referenced.get('Secret', `bank/${name}`)?.data !== undefined);
    expect(kept).toHaveLength(maxReferencedNamespaceBytes / maxReferencedObjectBytes);
    expect(referenced.get('Secret', 'shop/web')?.data).toEqual(data);
  });

  it('a namespace with thousands of references delays no other one, and those above the limit are refused', async () => {
    const { refer, referenced, reads, waiting, refused, objects } = given({ held: true });
    objects.set('shop/web', secret('web', '1', {}, 'shop'));
    refer('many', ...Array.from({ length: maxReferencesOfNamespace + 5 }, (_, at) => `s${at}`));
    referenced.refer('one', [{ kind: 'Secret', namespace: 'shop', name: 'web' }]);
    await settle();
    expect(reads).toContain('shop/web');
    expect(reads.length).toBeLessThanOrEqual(8);
    waiting.find(({ key }) => key === 'shop/web')!.answer();
    await settle();
    expect(referenced.get('Secret', 'shop/web')).toBeDefined();
    expect(refused).toHaveLength(5);
  });
});
