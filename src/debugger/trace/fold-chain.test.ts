import { expect, test } from 'vitest';
import { eventBody } from '../../../test/fixtures/event-body.ts';
import { cpuMs } from '../../../test/harness/cpu-time.ts';
import type { TraceBody } from '../../runtime/trace/trace.ts';
import type { CauseLink } from './cause-chain.ts';
import { foldChain } from './fold-chain.ts';

/** One try: the process of an epoch is killed, a pause, the next one. */
const steps = ['process.exited', 'process.spawned', 'start.granted', 'start.request'];

test('tries that differ in their numbers only are one part, said once', () => {
  const parts = foldChain([...chainOf(9), link(eventBody('outside', 'cert-watcher', 'files.changed'), 0)]);
  expect(parts.map(({ times, links, others }) => [times, links.length, others.length])).toEqual([
    [9, 4, 32],
    [1, 1, 0],
  ]);
  expect(parts[0]!.links[0]!.record).toMatchObject({ from: 'epoch-9/process' });
});

test('nothing is lost, and the order is kept', () => {
  const links = [link(eventBody('a', 'b', 'x.y'), 99), ...chainOf(3), ...chainOf(2).slice(2)];
  expect(foldChain(links).flatMap((part) => [...part.links, ...part.others])).toEqual(links);
});

test('other states, events and actors stay apart', () => {
  const parts = foldChain([
    link({ kind: 'transition', actor: 'a', from: 'x', to: 'y', on: 'go.now' }, 4),
    link({ kind: 'transition', actor: 'a', from: 'y', to: 'x', on: 'go.now' }, 3),
    link({ kind: 'transition', actor: 'b', from: 'x', to: 'y', on: 'go.now' }, 2),
    link({ kind: 'transition', actor: 'a', from: 'x', to: 'y', on: 'go.back' }, 1),
  ]);
  expect(parts.map(({ times }) => times)).toEqual([1]);
});

test('two alike lines are not folded: a fold is not shorter', () => {
  const twice = [link(eventBody('a', 'b', 'x.y'), 2), link(eventBody('a', 'b', 'x.y'), 1)];
  expect(foldChain(twice)).toEqual([{ times: 1, links: twice, others: [] }]);
});

test('a long chain of tries is folded in no time', () => {
  const chain = chainOf(1_250);
  expect(cpuMs(() => expect(foldChain(chain)[0]!.times).toBe(1_250))).toBeLessThan(2_000);
});

function chainOf(tries: number): CauseLink[] {
  return Array.from({ length: tries }, (_, i) => tries - i).flatMap((epoch) =>
    steps.map((type) => link(eventBody(`epoch-${epoch}/process`, `epoch-${epoch}`, type), epoch)),
  );
}

function link(body: TraceBody, seq: number): CauseLink {
  return { index: seq, how: 'cause', record: { seq, t: seq, ...body } };
}
