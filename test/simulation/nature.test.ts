import { describe, expect, test } from 'vitest';
import { RandomDurations } from './nature.ts';

const occasions = Array.from({ length: 1_000 }, (_, i) => `exit ${i}`);

describe('random durations', () => {
  test('are the same for the same seed and occasion, and differ otherwise', () => {
    const draw = (seed: number) => occasions.map((occasion) => new RandomDurations(seed).drawUniform(1_000, occasion));
    expect(draw(5)).toEqual(draw(5));
    expect(draw(5)).not.toEqual(draw(6));
    expect(new Set(draw(5)).size).toBeGreaterThan(300);
  });

  test('reach but never exceed both ends of a range', () => {
    const drawnMs = occasions.map((occasion) => new RandomDurations(1).drawUniform(200, occasion));
    expect(Math.min(...drawnMs)).toBe(0);
    expect(Math.max(...drawnMs)).toBe(200);
  });

  test('are mostly short if the maximum is rare', () => {
    const drawnMs = occasions.map((occasion) => new RandomDurations(1).drawMostlyShort(1_000, occasion));
    expect(drawnMs.filter((ms) => ms < 500).length).toBeGreaterThan(700);
    expect(Math.max(...drawnMs)).toBeGreaterThan(900);
  });

  test('are in the middle of their ranges with seed 0', () => {
    expect(new RandomDurations(0).drawUniform(200, 'exit')).toBe(100);
    expect(new RandomDurations(0).drawMostlyShort(800, 'live')).toBe(100);
  });
});
