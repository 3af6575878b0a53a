import { expect, test } from 'vitest';
import { eventBody } from '../../../test/fixtures/event-body.ts';
import { cpuMs } from '../../../test/harness/cpu-time.ts';
import type { TraceBody } from '../../runtime/trace/trace.ts';
import type { CauseLink } from './cause-chain.ts';
import { foldChain } from './fold-chain.ts';

/** One attempt: the process of an epoch is killed, and the next process starts after a pause. */
const steps = ['process.exited', 'process.spawned', 'start.granted', 'start.request'];

test('foldChain merges attempts that differ only in their numbers', () => {
  const chainParts = foldChain([...chainOf(9), link(eventBody('outside', 'cert-watcher', 'files.changed'), 0)]);
  expect(chainParts.map(({ times, links, repetitions }) => [times, links.length, repetitions.length])).toEqual([
    [9, 4, 32],
    [1, 1, 0],
  ]);
  expect(chainParts[0]!.links[0]!.record).toMatchObject({ from: 'epoch-9/process' });
});

test('foldChain keeps all links in their order', () => {
  const links = [link(eventBody('a', 'b', 'x.y'), 99), ...chainOf(3), ...chainOf(2).slice(2)];
  expect(foldChain(links).flatMap((chainPart) => [...chainPart.links, ...chainPart.repetitions])).toEqual(links);
});

test('foldChain does not merge different states, events and actors', () => {
  const chainParts = foldChain([
    link({ kind: 'transition', actor: 'a', from: 'x', to: 'y', on: 'go.now' }, 4),
    link({ kind: 'transition', actor: 'a', from: 'y', to: 'x', on: 'go.now' }, 3),
    link({ kind: 'transition', actor: 'b', from: 'x', to: 'y', on: 'go.now' }, 2),
    link({ kind: 'transition', actor: 'a', from: 'x', to: 'y', on: 'go.back' }, 1),
  ]);
  expect(chainParts.map(({ times }) => times)).toEqual([1]);
});

test('foldChain does not merge two equal lines, because the result would not be shorter', () => {
  const equalLinks = [link(eventBody('a', 'b', 'x.y'), 2), link(eventBody('a', 'b', 'x.y'), 1)];
  expect(foldChain(equalLinks)).toEqual([{ times: 1, links: equalLinks, repetitions: [] }]);
});

test('foldChain folds a long chain of attempts within its time limit', () => {
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
