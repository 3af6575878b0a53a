import { expect, test } from 'vitest';
import { GivenWorld, givenObject } from '../../../../test/fixtures/given-world.ts';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { ContextHistory } from './context-history.ts';

/** History in which step i changed key i and step 10 was forced. */
function walked(steps: number): { history: ContextHistory; contexts: PushContext[] } {
  const history = new ContextHistory();
  const contexts = Array.from({ length: steps + 1 }, (_, i) => ({ version: `v${i}` }) as PushContext);
  for (let i = 1; i <= steps; i++) {
    const [previous, context] = [contexts[i - 1]!, contexts[i]!];
    history.add({ context, previous, forced: i === 10, changedKeys: new Set([`key/${i}`]) });
  }
  return { history, contexts };
}

test('ContextHistory returns all changes between two contexts', () => {
  const { history, contexts } = walked(12);
  expect(history.changesBetween(contexts[2]!, contexts[3]!)).toEqual({
    forced: false,
    changedKeys: new Set(['key/3']),
  });
  expect(history.changesBetween(contexts[2]!, contexts[5]!)).toEqual({
    forced: false,
    changedKeys: new Set(['key/3', 'key/4', 'key/5']),
  });
  expect(history.changesBetween(contexts[8]!, contexts[11]!)?.forced).toBe(true);
  expect(history.changesBetween(contexts[0]!, contexts[12]!)?.changedKeys.size).toBe(12);
});

test('ContextHistory reports that changes are unknown if a context is too old', () => {
  const { history, contexts } = walked(3_000);
  expect(history.changesBetween(contexts[20]!, contexts[3_000]!)).toMatchObject({ forced: true });
  const recentChange = history.changesBetween(contexts[2_900]!, contexts[3_000]!);
  expect(recentChange?.forced).toBe(false);
  expect([...recentChange!.changedKeys]).toEqual(Array.from({ length: 100 }, (_, i) => `key/${2_901 + i}`));
});

test('ContextHistory returns no changes for an unknown context', () => {
  const { history, contexts } = walked(2);
  expect(history.changesBetween({} as PushContext, contexts[2]!)).toBeUndefined();
});

test('ContextHistory does not keep contexts in memory', async () => {
  const history = new ContextHistory();
  const first = {} as PushContext;
  let previous = first;
  const contextRefs: WeakRef<PushContext>[] = [];
  for (let i = 0; i < 100; i++) {
    const context = { version: `v${i}` } as PushContext;
    history.add({ context, previous, forced: false, changedKeys: new Set() });
    contextRefs.push(new WeakRef(context));
    previous = context;
  }
  await collectGarbage();
  expect(contextRefs.filter((ref) => ref.deref() !== undefined).length).toBeLessThan(3);
  expect(history.changesBetween(first, previous)).toBeDefined();
});

test('a push context does not keep earlier contexts in memory, even if it reuses parts of them', async () => {
  const entry = (host: string) =>
    givenObject('ServiceEntry', 'a', 'web', {
      hosts: [host],
      ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
      resolution: 'DNS',
    });
  const world = new GivenWorld([entry('web')], 0, []);
  const node = world.connect('10.0.0.1');
  const contextRefs: WeakRef<PushContext>[] = [];
  for (let i = 0; i < 20; i++) {
    const built = [
      entry(`web-${i}`),
      givenObject('Gateway', 'a', 'in', { selector: {}, servers: [] }, i),
      givenObject('Sidecar', 'a', 'default', { egress: [{ hosts: ['*/*'] }] }, i),
      givenObject('PeerAuthentication', 'a', 'strict', { mtls: 'STRICT' }, i),
    ];
    const change = world.put(built[i % built.length]!);
    node.typesToPush(change, []);
    node.context.policiesFor(node.shape);
    contextRefs.push(new WeakRef(world.state.context!));
  }
  // Only contexts keep long-lived references to another context.
  await eventually('few are left', async () => {
    await collectGarbage();
    return contextRefs.filter((context) => context.deref() !== undefined).length < 5;
  });
});
