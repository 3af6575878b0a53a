import { expect, test } from 'vitest';
import { KnownNodes, type KnownNodesLimits } from './known-nodes.ts';

function createKnownNodes(limits: Partial<KnownNodesLimits> = {}) {
  let now = 0;
  const knownNodes = new KnownNodes(() => now, limits);
  return {
    known: knownNodes,
    pass: (ms: number) => {
      now += ms;
    },
    /** Simulates a node that connects, acknowledges and disconnects. */
    visit: (node: string, group = 'here') => {
      knownNodes.recordAcknowledgement(group, node);
      knownNodes.disconnected(group, node);
    },
  };
}

test('KnownNodes lists a node only for the address at which it was served', () => {
  const { known, visit } = createKnownNodes();
  visit('a');
  expect([known.has('here', 'a'), known.has('here', 'b'), known.has('there', 'a')]).toEqual([true, false, false]);
  expect([known.hasKnownNodes('here'), known.hasKnownNodes('there')]).toEqual([true, false]);
});

test('KnownNodes evicts new IDs before a node that has reconnected', () => {
  const { known, visit } = createKnownNodes({ maxNew: 10 });
  visit('returning');
  visit('returning');
  for (let i = 0; i < 10_000; i++) visit(`new ${i}`);
  expect(known.has('here', 'returning')).toBe(true);
  expect(known.has('here', 'new 9980')).toBe(false);
  expect(known.has('here', 'new 9999')).toBe(true);
});

test('KnownNodes evicts new IDs before a node that has been served for 30 s', () => {
  const { known, pass, visit } = createKnownNodes({ maxNew: 10 });
  known.recordAcknowledgement('here', 'served');
  known.recordAcknowledgement('here', 'gone');
  known.recordAcknowledgement('here', 'just come');
  pass(30_000);
  known.disconnected('here', 'gone');
  known.disconnected('here', 'just come');
  known.recordAcknowledgement('here', 'just come');
  for (let i = 0; i < 10_000; i++) visit(`new ${i}`);
  expect(['served', 'gone', 'just come'].map((node) => known.has('here', node))).toEqual([true, true, true]);
});

test('KnownNodes evicts the least recently seen node first, and connected nodes last', () => {
  const { known, visit } = createKnownNodes({ maxProven: 3 });
  const prove = (node: string) => {
    visit(node);
    known.recordAcknowledgement('here', node);
  };
  prove('served');
  for (const node of ['a', 'b', 'c']) {
    prove(node);
    known.disconnected('here', node);
  }
  expect(['served', 'a', 'b', 'c'].map((node) => known.has('here', node))).toEqual([true, false, true, true]);
});

test('KnownNodes evicts the least recently seen address above the limit', () => {
  const { known, visit } = createKnownNodes({ maxAddresses: 2 });
  for (const group of ['a', 'b', 'a', 'c']) visit('node', group);
  expect(['a', 'b', 'c'].map((group) => known.hasKnownNodes(group))).toEqual([true, false, true]);
});

test('KnownNodes evicts nodes of the largest address above the total limit', () => {
  const { known, visit } = createKnownNodes({ maxTotal: 100 });
  visit('node', 'small');
  for (let i = 0; i < 1_000; i++) visit(`new ${i}`);
  expect(known.has('small', 'node')).toBe(true);
  const keptCount = Array.from({ length: 1_000 }, (_, i) => known.has('here', `new ${i}`)).filter(Boolean).length;
  expect(keptCount).toBeGreaterThan(60);
  expect(keptCount).toBeLessThanOrEqual(99);
});
