import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { assign, setup } from 'xstate';
import { traceFile } from '../../runtime/trace/trace-file.ts';
import { exploreWithin } from '../explore/explore-command.ts';
import { findShortest } from '../explore/explorer.ts';
import { openTrace, readRecords } from '../trace/read-trace.ts';
import { exploreMachine } from './machine-world.ts';
import type { Samples } from './samples.ts';

/** A lock that opens with a code, locks itself after a delay, and has an unlimited counter. */
const lock = setup({
  types: {
    context: {} as { tries: number },
    events: {} as { type: 'code.entered'; code: string } | { type: 'door.closed' },
  },
  delays: { patience: 5_000 },
  guards: { isRight: ({ event }) => event.type === 'code.entered' && event.code === '1234' },
}).createMachine({
  id: 'lock',
  context: { tries: 0 },
  initial: 'locked',
  states: {
    locked: {
      on: {
        'code.entered': [
          { guard: 'isRight', target: 'unlocked', actions: assign({ tries: 0 }) },
          { actions: assign({ tries: ({ context }) => Math.min(4, context.tries + 1) }) },
        ],
      },
    },
    unlocked: { after: { patience: 'locked' }, on: { 'door.closed': 'locked' } },
  },
});
const events = { 'code.entered': [{ code: '1234' }, { code: '0000' }] };
const explorationOf = (samples: Samples) => findShortest(() => exploreMachine(lock, samples).beginWorld());

test('the exploration of a machine visits every configuration', () => {
  const { outcome, states, edges } = explorationOf({ events });
  // The lock has five counter values while locked, and one state while open.
  expect({ outcome, states, edges }).toEqual({ outcome: 'complete', states: 6, edges: 12 });
});

test('the exploration of a machine finds a violated invariant with the shortest run', () => {
  const invariants = {
    'three tries at most': ({ context }: { context: Record<string, unknown> }) => Number(context.tries) <= 3,
  };
  const { outcome, found: example } = explorationOf({ events, invariants });
  expect(outcome).toBe('violation');
  expect(example).toMatchObject({
    isShortest: true,
    path: Array.from({ length: 4 }, () => 'code.entered {"code":"0000"}'),
    violations: [{ invariant: 'three tries at most', detail: 'false in state locked' }],
  });
});

test('the exploration of a machine reports a guard that throws an error as a violation', () => {
  const brokenLock = lock.provide({
    guards: {
      isRight: () => {
        throw new Error('no keypad');
      },
    },
  });
  const { outcome, found: example } = findShortest(() => exploreMachine(brokenLock, { events }).beginWorld());
  expect(outcome).toBe('violation');
  expect(example?.violations[0]?.detail).toContain('no keypad');
  expect(example?.path).toHaveLength(1);
});

test('the exploration of a machine starts with each input', () => {
  expect(explorationOf({ events, inputs: [{ door: 'front' }, { door: 'back' }] }).states).toBe(13);
});

test('the exploration of a machine writes the run to a violation as a trace', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-machine-world-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'run.trace');
  const subject = exploreMachine(lock, { events });
  subject.writeTrace(['code.entered {"code":"1234"}', 'after patience'], traceFile(path));
  const { records } = await readRecords((await openTrace(path)).records);
  const entered = records.flatMap((record) =>
    record.kind === 'transition' && record.on !== 'xstate.init' ? record : [],
  );
  expect(entered.filter(({ actor }) => actor === 'machine').map(({ to, t }) => [to, t])).toEqual([
    ['unlocked', 0],
    ['locked', 5_000],
  ]);
});

test('the exploration of a machine reports that a limit was reached and exits with 0', () => {
  const texts: string[] = [];
  const output = { out: (text: string) => void texts.push(text), error: () => {} };
  const code = exploreWithin(exploreMachine(lock, { events }), { format: 'text', limit: 2 }, output);
  expect(code).toBe(0);
  expect(texts.join('')).toContain('INCOMPLETE');
});
