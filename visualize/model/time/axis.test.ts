import { expect, test } from 'vitest';
import { completeView, shiftedView, ticksOf, tickText, viewIncluding, zoomView } from './axis.ts';

const fullRange = { from: 0, to: 100_000 };

test('zooming the timeline keeps the time under the pointer in place', () => {
  const previous = { from: 20_000, to: 60_000 };
  const zoomedRange = zoomView(previous, 30_000, 0.5, fullRange);
  expect((30_000 - zoomedRange.from) / (zoomedRange.to - zoomedRange.from)).toBeCloseTo(
    (30_000 - previous.from) / (previous.to - previous.from),
  );
  expect(zoomedRange.to - zoomedRange.from).toBeCloseTo(20_000);
});

test('zooming the timeline is limited by the length of the trace and by the precision of its clock', () => {
  expect(zoomView({ from: 20_000, to: 60_000 }, 30_000, 100, fullRange)).toEqual(fullRange);
  const smallestRange = zoomView({ from: 10, to: 20 }, 15, 0.0001, fullRange);
  expect(smallestRange.to - smallestRange.from).toBeCloseTo(5);
});

test('the view of the timeline cannot be moved beyond the ends of the trace', () => {
  expect(shiftedView({ from: 10_000, to: 30_000 }, -50_000, fullRange)).toEqual({ from: 0, to: 20_000 });
  expect(shiftedView({ from: 10_000, to: 30_000 }, 500_000, fullRange)).toEqual({ from: 80_000, to: 100_000 });
});

test('the timeline scrolls only to show a hidden time, which is then in the middle', () => {
  const view = { from: 10_000, to: 20_000 };
  expect(viewIncluding(view, 15_000, fullRange)).toBe(view);
  expect(viewIncluding(view, 50_000, fullRange)).toEqual({ from: 45_000, to: 55_000 });
});

test('a trace with a single time is displayed', () => {
  const { from, to } = completeView(7, 7);
  expect(to).toBeGreaterThan(from);
});

test.each([
  [{ from: 0, to: 1_000 }, 900, 100],
  [{ from: 0, to: 60_000 }, 1_000, 10_000],
  [{ from: 0, to: 86_400_000 }, 1_000, 21_600_000],
])('ticks of %j over %d pixels are %d ms apart', (view, width, step) => {
  const timeTicks = ticksOf(view, width);
  expect(timeTicks.step).toBe(step);
  expect(timeTicks.times.every((t) => t % step === 0 && t >= view.from && t <= view.to)).toBe(true);
});

test.each([
  [250, 50, '250 ms'],
  [12_000, 1_000, '12 s'],
  [12_500, 500, '12.5 s'],
  [1_250, 50, '1.25 s'],
  [90_000, 30_000, '1:30'],
  [7_200_000, 3_600_000, '2:00:00'],
  [61_500, 500, '1:01.500'],
])('the tick at %d with steps of %d has the label %s', (t, step, text) => {
  expect(tickText(t, step)).toBe(text);
});
