import { expect, test } from 'vitest';
import { delayBetween, nextPosition } from './player.ts';

const times = [0, 0, 0, 1_000, 1_010, 3_601_010];
const timeAt = (index: number): number => times[index]!;
const play = (index: number, shownMs: number, pace = 1) =>
  nextPosition(timeAt, times.length - 1, { index, shownMs }, pace);

test('records with the same time are played together', () => {
  expect(play(0, 0)).toMatchObject({ index: 2 });
});

test('playback at pace 1 is as fast as the program, and twice as fast at pace 2', () => {
  expect(play(2, 999)).toEqual({ index: 2, shownMs: 999, elapsed: 999 });
  expect(play(2, 1_000)).toMatchObject({ index: 3, shownMs: 0 });
  expect(play(2, 499, 2)).toMatchObject({ index: 2, elapsed: 998 });
});

test('an hour without records is shortened by a faster clock', () => {
  const { ms, rate } = delayBetween(1_010, 3_601_010, 1);
  expect(ms).toBeLessThan(2_000);
  expect(ms * rate).toBeCloseTo(3_600_000);
  expect(play(4, ms / 2)).toMatchObject({ index: 4, elapsed: 1_800_000 });
});

test('playback time that remains after a gap is used for the next gap', () => {
  expect(play(2, 1_005)).toEqual({ index: 3, shownMs: 5, elapsed: 5 });
});

test('playback stops at the end', () => {
  expect(play(5, 1e9)).toEqual({ index: 5, shownMs: 0, elapsed: 0 });
});
