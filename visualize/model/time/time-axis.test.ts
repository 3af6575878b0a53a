import { describe, expect, test } from 'vitest';
import { textWidth } from '../../../src/debugger/statechart/text-width.ts';
import { foldsOf, IdleTimes } from '../recording/idle-time.ts';
import { completeView } from './axis.ts';
import { axisTicks, FoldedClock, foldedClock, TimeAxis } from './time-axis.ts';

const hour = 3_600_000;
/** A minute of activity every twelve hours, `times` times. */
function restarts(times: number): IdleTimes {
  const idleTimes = new IdleTimes();
  for (let i = 0; i < times; i++) {
    for (const ms of [0, 1_200, 46_000, 60_000]) idleTimes.recordChange(i * 12 * hour + ms);
  }
  return idleTimes;
}
const startedAt = '2026-11-21T03:00:00.000Z';

describe('the folded clock', () => {
  const clock = new FoldedClock(
    [
      { from: 100, to: 1_100 },
      { from: 2_000, to: 12_000 },
    ],
    50,
  );

  test.each([
    [0, 0],
    [100, 100],
    [600, 125],
    [1_100, 150],
    [2_000, 1_050],
    [7_000, 1_075],
    [12_000, 1_100],
    [13_000, 2_100],
  ])('the folded clock shows %d at %d, and converts it back', (t, clockMs) => {
    expect(clock.toShownTime(t)).toBeCloseTo(clockMs);
    expect(clock.timeOf(clockMs)).toBeCloseTo(t);
  });

  test('the folded clock never runs backwards', () => {
    let last = Number.NEGATIVE_INFINITY;
    for (let t = -500; t < 15_000; t += 7) {
      expect(clock.toShownTime(t)).toBeGreaterThan(last);
      last = clock.toShownTime(t);
    }
  });
});

describe('the folded times', () => {
  const folds = (idle: IdleTimes, end: number, width = 1_200): number =>
    foldsOf(idle.idleTimesUntil(end), { from: 0, to: end }, width).folds.length;

  test('hours between restarts are folded, but not a pause as long as the activity', () => {
    expect(folds(restarts(7), 6 * 12 * hour + 60_000)).toBe(6);
    const steady = new IdleTimes();
    for (let t = 0; t <= 40; t++) steady.recordChange(t * 60_000);
    expect(folds(steady, 40 * 60_000)).toBe(0);
  });

  test('the idle time after the last change is folded', () => {
    expect(folds(restarts(2), 30 * hour)).toBe(2);
  });

  test('folds never take more than half of the screen, regardless of their number', () => {
    const end = 399 * 12 * hour + 60_000;
    const foldLayout = foldsOf(restarts(400).idleTimesUntil(end), { from: 0, to: end }, 1_000);
    expect(foldLayout.folds.length * foldLayout.pixels).toBeLessThanOrEqual(500);
  });
});

test('each restart of a week is wide enough to read and has its date', () => {
  const end = 13 * 12 * hour + 60_000;
  const fullRange = { from: 0, to: end };
  const width = 1_300;
  const { folds, pixels } = foldsOf(restarts(14).idleTimesUntil(end), fullRange, width);
  const clock = foldedClock(folds, pixels, fullRange, width);
  const axis = new TimeAxis(clock, completeView(clock.toShownTime(0), clock.toShownTime(end)), width);
  for (let i = 0; i < 14; i++) {
    const startMs = i * 12 * hour;
    expect(axis.xOf(startMs + 60_000) - axis.xOf(startMs)).toBeGreaterThan(40);
  }
  const ticks = axisTicks(axis, startedAt);
  const dated = ticks.filter(({ wall }) => /^Nov 2\d( \d\d:\d\d(:\d\d)?)?$/.test(wall));
  expect(dated).toHaveLength(13);
  // Labels must not overlap.
  const labels = ticks.map(({ wallX, wall }) => [wallX, wallX + textWidth(wall, { size: 10 })] as const);
  for (const [i, [from]] of labels.entries()) expect(from).toBeGreaterThan(labels[i - 1]?.[1] ?? -1);
});

test('a label that exceeds the right edge is omitted, because a truncated time would be wrong', () => {
  const axis = new TimeAxis(foldedClock([], 0, { from: 0, to: 640 }, 730), { from: 0, to: 640 }, 730);
  const ticks = axisTicks(axis, startedAt);
  expect(ticks.at(-1)).toMatchObject({ t: 600, text: '600 ms' });
  const narrow = axisTicks(
    new TimeAxis(foldedClock([], 0, { from: 0, to: 605 }, 730), { from: 0, to: 605 }, 730),
    startedAt,
  );
  expect(narrow.at(-1)).toMatchObject({ t: 600, text: '', wall: '' });
  for (const { x, text } of narrow) expect(x + 4 + textWidth(text, { size: 11 })).toBeLessThanOrEqual(730);
});
