import { expect, test } from 'vitest';
import type { Lane, Mark, PhaseSpan } from '../recording/lanes.ts';
import {
  barsOf,
  clustersOf,
  clusterTitle,
  drawnLanes,
  labelsOf,
  lanesIn,
  maxBars,
  maxDrawnLanes,
  stepsOf,
} from './drawn-lane.ts';
import { FoldedClock, TimeAxis } from './time-axis.ts';

const lane = (overrides: Partial<Lane>): Lane => ({
  name: 'epoch-0',
  title: 'epoch 0',
  spans: [],
  marks: [],
  counts: [],
  ...overrides,
});
const axis = new TimeAxis(new FoldedClock([], 0), { from: 0, to: 1_000 }, 500);

test('a bar is as long as its phase and is cut off at the ends of the view', () => {
  const spans: PhaseSpan[] = [
    { from: -500, to: 100, phase: 'starting', index: 0 },
    { from: 100, to: 300, phase: 'live', index: 1 },
    { from: 300, phase: 'draining', index: 2 },
    { from: 2_000, to: 2_100, phase: 'live', index: 3 },
  ];
  expect(barsOf(lane({ spans }), axis, 800).map(({ x, width, phase }) => [x, width, phase])).toEqual([
    [0, 50, 'starting'],
    [50, 100, 'live'],
    [150, 250, 'draining'],
  ]);
});

test('a lane has a limited number of bars without gaps, each in the color of its longest phase', () => {
  const spans = Array.from({ length: 50_000 }, (_, i): PhaseSpan => {
    const from = Math.floor(i / 2) * 0.04 + (i % 2) * 0.01;
    return { from, to: i % 2 === 0 ? from + 0.01 : from + 0.03, phase: i % 2 === 0 ? 'starting' : 'live', index: i };
  });
  const bars = barsOf(lane({ spans }), axis, 1_000);
  expect(bars.length).toBeLessThanOrEqual(maxBars);
  for (const [i, bar] of bars.slice(1).entries()) expect(bar.x - (bars[i]!.x + bars[i]!.width)).toBeLessThan(0.1);
  expect(bars.every(({ phase }) => phase === 'live')).toBe(true);
  expect(bars.reduce((sum, { mergedCount }) => sum + mergedCount, 0)).toBe(50_000);
});

test('marks that are too close together are merged into one mark of the worst kind, with as many titles as fit', () => {
  const mark = (t: number, kind: Mark['kind']): Mark => ({ t, index: t, kind, title: `${kind} ${t}` });
  const marks = [
    mark(10, 'restart'),
    mark(11, 'failure'),
    mark(12, 'change'),
    mark(500, 'signal'),
    mark(1_500, 'signal'),
  ];
  const clusters = clustersOf(lane({ marks }), axis);
  expect(clusters.map(({ kind, marks: marksOfCluster }) => [kind, marksOfCluster.length])).toEqual([
    ['failure', 3],
    ['signal', 1],
  ]);
  expect(clusterTitle(clusters[0]!, String)).toBe('10  restart 10\n11  failure 11\n12  change 12');
  const manyClusters = clustersOf(lane({ marks: Array.from({ length: 1_000 }, () => mark(5, 'push')) }), axis);
  expect(clusterTitle(manyClusters[0]!, String).split('\n')).toHaveLength(9);
});

test('counts begin with the value before the view, and show the maximum of each pixel', () => {
  const counts = [
    { t: -10, n: 5 },
    { t: 100, n: 8 },
    { t: 100.1, n: 20 },
    { t: 100.2, n: 9 },
    { t: 2_000, n: 0 },
  ];
  expect(stepsOf(lane({ counts }), axis)).toEqual([
    { x: 0, n: 5 },
    { x: 50, n: 20 },
  ]);
});

test('only epochs with content in the view are shown if there are a hundred, while a few epochs are all shown', () => {
  const epochs = Array.from({ length: 100 }, (_, i) =>
    lane({ name: `epoch-${i}`, spans: [{ from: i * 100, to: i * 100 + 150, phase: 'live', index: i }] }),
  );
  const names = (lanes: readonly Lane[]): string[] => lanes.map(({ name }) => name);
  expect(names(lanesIn(epochs, { from: 1_020, to: 1_180 }))).toEqual(['epoch-9', 'epoch-10', 'epoch-11']);
  expect(lanesIn(epochs.slice(0, 5), { from: 9_000, to: 9_100 })).toHaveLength(5);
  const markedLane = lane({ name: 'signals', marks: [{ t: 1_100, index: 1, kind: 'signal', title: 'SIGHUP' }] });
  expect(names(lanesIn([...epochs, markedLane], { from: 1_090, to: 1_120 }))).toContain('signals');
  expect(names(lanesIn([...epochs, markedLane], { from: 1_110, to: 1_120 }))).not.toContain('signals');
});

test('the selected lane, lanes with bad marks and the first lanes are drawn if there are too many in the view', () => {
  const failureMark = (t: number): Mark => ({ t, index: 1, kind: 'failure', title: 'broke' });
  const epochs = Array.from({ length: 5_000 }, (_, i) =>
    lane({ name: `epoch-${i}`, marks: i % 1_000 === 999 ? [failureMark(i)] : [] }),
  );
  const { lanes, leftOut } = drawnLanes(epochs, { from: 500, to: 3_500 }, 'epoch-4321');
  const names = lanes.map(({ name }) => name);
  expect([names.length, leftOut]).toEqual([maxDrawnLanes, 5_000 - maxDrawnLanes]);
  expect(names.slice(-4)).toEqual(['epoch-999', 'epoch-1999', 'epoch-2999', 'epoch-4321']);
  expect(names[0]).toBe('epoch-0');
  const fewLanes = epochs.slice(0, maxDrawnLanes);
  expect(drawnLanes(fewLanes, { from: 0, to: 1 }, undefined)).toEqual({ lanes: fewLanes, leftOut: 0 });
});

test('a mark has a label if it fits without covering the next mark or a bar', () => {
  const mark = (t: number): Mark => ({
    t,
    index: t,
    kind: 'restart',
    title: 'Decided: hot restart of epoch-1: configuration changed',
  });
  const labels = (marks: readonly Mark[], spans: PhaseSpan[] = []): string[] => {
    const drawnLane = lane({ marks: [...marks], spans });
    return labelsOf(clustersOf(drawnLane, axis), barsOf(drawnLane, axis, 1_000), 500).map(({ text }) => text);
  };
  expect(labels([mark(0)])).toEqual(['Decided: hot restart of epoch-1: configuration changed']);
  expect(labels([mark(0), mark(350)])).toEqual([
    'hot restart of epoch-1',
    'Decided: hot restart of epoch-1: configuration changed',
  ]);
  expect(labels([mark(0), mark(2), mark(200)])).toEqual([
    'hot restart +1',
    'Decided: hot restart of epoch-1: configuration changed',
  ]);
  expect(labels([mark(950)])).toEqual([]);
  expect(labels([mark(0)], [{ from: 100, to: 300, phase: 'live', index: 0 }])).toEqual([]);
});
