import { expect, test } from 'vitest';
import { deviations, type Elapsed, Observations } from './observations.ts';

const exact = (ms: number): Elapsed => ({ minMs: ms, maxMs: ms });
const cleanExit = { code: 0, signal: null, refusedByParent: false };

function log(happen: (observations: Observations) => void, elapsed = exact(0)): Observations['entries'] {
  const observations = new Observations(() => elapsed);
  happen(observations);
  return observations.entries;
}

test('equal events at similar times are no deviation', () => {
  const exit = (observations: Observations): void => observations.exited('0', cleanExit);
  expect(deviations(log(exit, exact(3_400)), log(exit, { minMs: 3_000, maxMs: 3_200 }))).toEqual([]);
});

test('a different or missing exit code is a deviation', () => {
  const real = log((observations) => observations.exited('0', cleanExit));
  const model = log((observations) => observations.exited('0', { ...cleanExit, code: 1 }));
  expect(deviations(real, model)).toEqual(['step 1: the real Envoy: 0 exits: code 0; the model: 0 exits: code 1']);
  expect(deviations(real, [])).toEqual(['step 1: the real Envoy: 0 exits: code 0; the model: nothing more']);
});

test('a different order is a deviation unless the order is unspecified', () => {
  const logOfBoth = (first: string, second: string, isOpen: boolean) =>
    log((observations) => {
      for (const name of [first, second]) observations.exited(name, cleanExit);
      if (isOpen) observations.leaveOrderOpen(['0', '1']);
    });
  expect(deviations(logOfBoth('0', '1', false), logOfBoth('1', '0', false))).toHaveLength(1);
  expect(deviations(logOfBoth('0', '1', true), logOfBoth('1', '0', true))).toEqual([]);
});

test("a time far outside the model's range is a deviation", () => {
  const exit = (observations: Observations): void => observations.exited('0', cleanExit);
  const model = log(exit, exact(10_000));
  expect(deviations(log(exit, exact(200)), model)).toEqual([
    'step 1: 0 exits: code 0: after 200 ms on the real Envoy; the model allows 10000 to 10000 ms',
  ]);
  expect(deviations(log(exit, exact(40_000)), model)).toHaveLength(1);
});

test('an observation contains the owner of each admin port, its state, and the serving processes', () => {
  const [entry] = log((observations) =>
    observations.recordObservation({
      admins: [
        { family: 'main', admin: { name: '1', live: false, marked: true } },
        { family: 'beside', admin: 'silent' },
      ],
      serving: ['b', 'a'],
    }),
  );
  expect(entry).toEqual({ text: 'main admin: 1 (not live), mark set; beside admin: silent; serving: a and b' });
});
