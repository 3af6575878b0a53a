import { describe, expect, test } from 'vitest';
import { PacedClock } from './paced-clock.ts';
import { VirtualClock } from './virtual-clock.ts';

function clocks(): { below: VirtualClock; paced: PacedClock; fired: number[]; at: (ms: number) => number } {
  const baseClock = new VirtualClock();
  const paced = new PacedClock(baseClock);
  const fired: number[] = [];
  return { below: baseClock, paced, fired, at: (ms) => paced.setTimeout(() => fired.push(baseClock.now()), ms) };
}

describe('a paced clock', () => {
  test('runs at the pace of its base clock by default', () => {
    const { below, paced, fired, at } = clocks();
    at(100);
    below.advance(200);
    expect(fired).toEqual([100]);
    expect(paced.now()).toBe(200);
  });

  test('fires its timers after twice the time at half the pace', () => {
    const { below, paced, fired, at } = clocks();
    paced.setPace(0.5);
    at(100);
    below.advance(1_000);
    expect(fired).toEqual([200]);
    expect(paced.now()).toBe(500);
  });

  test('counts the remaining time of an armed timer at the new pace', () => {
    const { below, paced, fired, at } = clocks();
    at(100);
    below.advance(60);
    paced.setPace(2);
    below.advance(100);
    expect(fired).toEqual([80]);
    expect(paced.now()).toBe(260);
  });

  test('never fires a timer that was cleared before or after a change of pace', () => {
    const { below, paced, fired, at } = clocks();
    paced.clearTimeout(at(10));
    const timer = at(50);
    paced.setPace(3);
    paced.clearTimeout(timer);
    below.advance(1_000);
    expect(fired).toEqual([]);
  });
});
