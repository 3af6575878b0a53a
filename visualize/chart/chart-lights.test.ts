import { expect, test } from 'vitest';
import type { Statechart } from '../../src/runtime/trace/statechart.ts';
import type { ActorSnapshot } from '../../src/runtime/trace/trace.ts';
import { chartGroups, countsByState, maxChartGroups, maxFamilies } from './chart-groups.ts';
import {
  activeLeaves,
  activeStates,
  chartText,
  countdownsAt,
  nextTransitionTexts,
  remainingTimeText,
} from './chart-lights.ts';

/** States of machine m: off, on.(slow, fast). */
const chart: Statechart = {
  id: 'm',
  states: [
    { path: '', type: 'compound', initial: 1 },
    { path: 'off', parent: 0, type: 'atomic' },
    { path: 'on', parent: 0, type: 'compound', initial: 3 },
    { path: 'on.slow', parent: 2, type: 'atomic' },
    { path: 'on.fast', parent: 2, type: 'atomic' },
  ],
  transitions: [
    { source: 1, targets: [3], kind: 'event', on: 'switch.on', guard: 'hasPower' },
    { source: 3, targets: [4], kind: 'timer', on: 'warmUp' },
    { source: 3, targets: [1], kind: 'timer', on: 'warmUp' },
    { source: 2, targets: [1], kind: 'event', on: 'switch.off' },
    { source: 2, targets: [], kind: 'event', on: 'knob.turned' },
    { source: 2, targets: [], kind: 'event', on: 'bell.rung', actions: ['ring'] },
  ],
};

test('the active leaf and its parent states are highlighted, but nothing before a chart has started', () => {
  expect([...activeStates(chart, 'on.slow')]).toEqual([0, 2, 3]);
  expect([...activeStates(chart, '')]).toEqual([]);
});

test('the leaves of parallel regions are all active', () => {
  expect(activeLeaves(chart, 'off | on.fast')).toEqual([1, 4]);
});

test('a timer counts down at all of its transitions and stops when it ends', () => {
  const timers = [{ timer: 'warmUp', state: 'on.slow', ms: 4000, startedAt: 1000 }];
  expect(countdownsAt(chart, timers, 2000)).toEqual([
    { timer: 'warmUp', transitions: [1, 2], remainingMs: 3000, remainingShare: 0.75 },
  ]);
  expect(countdownsAt(chart, timers, 9000)[0]).toMatchObject({ remainingMs: 0, remainingShare: 0 });
  expect(countdownsAt(chart, timers, 0)[0]).toMatchObject({ remainingMs: 4000, remainingShare: 1 });
});

test('a timer of another state with the same name does not count down', () => {
  expect(countdownsAt(chart, [{ timer: 'warmUp', state: 'off', ms: 1, startedAt: 0 }], 0)[0]!.transitions).toEqual([]);
});

test('the remaining time of a timer has a precision that suits its length', () => {
  expect([3210, 59_999, 119_000, 300_000].map(remainingTimeText)).toEqual([
    '3.2 s left',
    '60 s left',
    '119 s left',
    '5 min left',
  ]);
});

test('the next transitions are listed with guards and without ignored events', () => {
  expect(nextTransitionTexts(chart, 'off')).toEqual(['switch.on [hasPower] → on.slow']);
  expect(nextTransitionTexts(chart, 'on.slow')).toEqual([
    'after warmUp → on.fast',
    'after warmUp → off',
    'switch.off → off',
    'bell.rung → no state change',
  ]);
});

test('the text of a chart contains its state, its duration, its timers and its next transitions', () => {
  const timers = [{ timer: 'warmUp', state: 'on.slow', ms: 4000, startedAt: 1000 }];
  expect(chartText(chart, { ...actor('lamp', 'on.slow'), timers }, 1000, 2000)).toBe(
    'lamp: on.slow, since 1.000 s; timer warmUp, 3.0 s left; ' +
      'next: after warmUp → on.fast, after warmUp → off, switch.off → off, bell.rung → no state change',
  );
});

test('few actors of a machine have a chart each, many share a chart, and effects have none', () => {
  const fewActors = [actor('lamp', 'off'), actor('epoch-0', 'on.slow'), actor('epoch-1', 'off')];
  const { machine: _, ...effect } = actor('lamp/bulb', '');
  expect(chartGroups([...fewActors, effect]).groups.map(({ name, isShared }) => [name, isShared])).toEqual([
    ['lamp', false],
    ['epoch-0', false],
    ['epoch-1', false],
  ]);
  const manyActors = Array.from({ length: 200 }, (_, i) => actor(`ads-connection-${i}`, 'off'));
  expect(chartGroups([...fewActors, ...manyActors]).groups.at(-1)).toMatchObject({
    name: 'ads-connection-N',
    isShared: true,
  });
});

test('too many families are grouped by machine, and the actors of too many groups are counted', () => {
  const unrelatedActors = (count: number, machineOf: (i: number) => string): ActorSnapshot[] =>
    Array.from({ length: count }, (_, i) => ({
      ...actor(`x${i.toString(26).replaceAll(/\d/g, (digit) => 'qrstuvwxyz'[Number(digit)]!)}`, 'off'),
      machine: machineOf(i),
    }));
  const fewGroups = chartGroups(unrelatedActors(maxFamilies, () => 'm'));
  expect([fewGroups.groups.length, fewGroups.omittedActors]).toEqual([maxFamilies, 0]);
  const one = chartGroups([actor('lamp', 'off'), ...unrelatedActors(5_000, () => 'worker')]);
  expect(one.groups.map(({ name, actors }) => [name, actors.length])).toEqual([
    ['lamp', 1],
    ['worker', 5_000],
  ]);
  const manyGroups = chartGroups(unrelatedActors(5_000, (i) => `machine ${i}`));
  expect([manyGroups.groups.length, manyGroups.omittedActors]).toEqual([maxChartGroups, 5_000 - maxChartGroups]);
});

test('a group counts its actors in each state and in its parent states', () => {
  const actors = [actor('a-1', 'on.slow'), actor('a-2', 'on.fast | on.slow'), actor('a-3', '')];
  expect(Object.fromEntries(countsByState(actors))).toEqual({ on: 2, 'on.slow': 2, 'on.fast': 1 });
});

function actor(name: string, state: string): ActorSnapshot {
  return { actor: name, machine: 'm', state, spawned: 1, spawnedAt: 0 };
}
