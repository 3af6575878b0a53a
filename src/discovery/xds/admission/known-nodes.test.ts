import { expect, test } from 'vitest';
import { KnownNodes, type KnownNodesLimits } from './known-nodes.ts';

function given(limits: Partial<KnownNodesLimits> = {}) {
  let now = 0;
  const known = new KnownNodes(() => now, limits);
  return {
    known,
    pass: (ms: number) => {
      now += ms;
    },
    /** Comes, is served, and goes. */
    visit: (node: string, group = 'here') => {
      known.acknowledged(group, node);
      known.gone(group, node);
    },
  };
}

test('a node is known at the address where it was served, and nowhere else', () => {
  const { known, visit } = given();
  visit('a');
  expect([known.has('here', 'a'), known.has('here', 'b'), known.has('there', 'a')]).toEqual([true, false, false]);
  expect([known.hasAny('here'), known.hasAny('there')]).toEqual([true, false]);
});

test('new ids push out each other, not a node that came back', () => {
  const { known, visit } = given({ mostNew: 10 });
  visit('returning');
  visit('returning');
  for (let i = 0; i < 10_000; i++) visit(`new ${i}`);
  expect(known.has('here', 'returning')).toBe(true);
  expect(known.has('here', 'new 9980')).toBe(false);
  expect(known.has('here', 'new 9999')).toBe(true);
});

test('nor one that has been served for half a minute, now or before', () => {
  const { known, pass, visit } = given({ mostNew: 10 });
  known.acknowledged('here', 'served');
  known.acknowledged('here', 'gone');
  known.acknowledged('here', 'just come');
  pass(30_000);
  known.gone('here', 'gone');
  known.gone('here', 'just come');
  known.acknowledged('here', 'just come');
  for (let i = 0; i < 10_000; i++) visit(`new ${i}`);
  expect(['served', 'gone', 'just come'].map((node) => known.has('here', node))).toEqual([true, true, true]);
});

test('of those that have proven themselves the least recently seen goes first, one that is being served last', () => {
  const { known, visit } = given({ mostProven: 3 });
  const prove = (node: string) => {
    visit(node);
    known.acknowledged('here', node);
  };
  prove('served');
  for (const node of ['a', 'b', 'c']) {
    prove(node);
    known.gone('here', node);
  }
  expect(['served', 'a', 'b', 'c'].map((node) => known.has('here', node))).toEqual([true, false, true, true]);
});

test('of many addresses the least recently seen is forgotten', () => {
  const { known, visit } = given({ mostAddresses: 2 });
  for (const group of ['a', 'b', 'a', 'c']) visit('node', group);
  expect(['a', 'b', 'c'].map((group) => known.hasAny(group))).toEqual([true, false, true]);
});

test('when there are too many in whole, the address with the most of them loses some', () => {
  const { known, visit } = given({ mostInWhole: 100 });
  visit('node', 'small');
  for (let i = 0; i < 1_000; i++) visit(`new ${i}`);
  expect(known.has('small', 'node')).toBe(true);
  const kept = Array.from({ length: 1_000 }, (_, i) => known.has('here', `new ${i}`)).filter(Boolean).length;
  expect(kept).toBeGreaterThan(60);
  expect(kept).toBeLessThanOrEqual(99);
});
