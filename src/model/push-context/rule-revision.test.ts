import { describe, expect, it } from 'vitest';
import { RuleRevision } from './rule-revision.ts';

const hosts = (rules: ReadonlySet<string> | undefined) => rules && [...rules].sort();

describe('revisions of destination rules', () => {
  it('contain the hosts of all steps between two revisions', () => {
    const first = RuleRevision.initial();
    const secondRevision = first.next(['a', '*.b', 'a']);
    const third = secondRevision.next(['c']);
    expect(hosts(third.changedSince(third))).toEqual([]);
    expect(hosts(third.changedSince(secondRevision))).toEqual(['c']);
    expect(hosts(third.changedSince(first))).toEqual(['*.b', 'a', 'c']);
  });

  it('are identical if nothing changes', () => {
    const first = RuleRevision.initial();
    expect(first.next([])).toBe(first);
  });

  it('do not list changes since unrelated, later or too old revisions', () => {
    const first = RuleRevision.initial();
    const secondRevision = first.next(['a']);
    expect(first.changedSince(secondRevision)).toBeUndefined();
    expect(secondRevision.changedSince(RuleRevision.initial())).toBeUndefined();
    const steps = (count: number) => Array.from({ length: count }).reduce<RuleRevision>((r) => r.next(['x']), first);
    expect(hosts(steps(64).changedSince(first))).toEqual(['x']);
    expect(steps(65).changedSince(first)).toBeUndefined();
  });

  it('do not store long lists of hosts', () => {
    const first = RuleRevision.initial();
    const all = first.next(Array.from({ length: 1_000 }, (_, index) => `h${index}`));
    expect(all.changedSince(first)).toBeUndefined();
    expect(hosts(all.next(['x']).changedSince(all))).toEqual(['x']);
  });
});
