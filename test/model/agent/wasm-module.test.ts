/** Fetches of Wasm modules: three quick attempts, a report, and attempts with longer backoff until the fetch is stopped. */

import { expect, test } from 'vitest';
import { type AnyEventObject, createActor, fromPromise, SimulatedClock, setup } from 'xstate';
import {
  defaultFetchLimits,
  type FetchOutcome,
  pauseAfterFailures,
  type WasmModuleInput,
  wasmModuleMachine,
} from '../../../machines/agent/wasm/wasm-module.machine.ts';

const module = { id: 3, stream: 2, extension: 'shop.answers', url: 'http://modules.test/a', sha256: '', version: '' };
const { attemptMs, quickAttempts } = defaultFetchLimits;

/** The machine with a parent that records its reports; `outcomes` are the results of the attempts, `never` for none. */
async function startFetching(
  outcomes: readonly (FetchOutcome | 'never' | Error)[],
  limits: Pick<WasmModuleInput, 'limits'> = {},
) {
  const clock = new SimulatedClock();
  const reports: AnyEventObject[] = [];
  let attempts = 0;
  const wasmModule = wasmModuleMachine.provide({
    actors: {
      fetchModule: fromPromise<FetchOutcome, typeof module>(({ input }) => {
        expect(input).toEqual(module);
        const outcome = outcomes[attempts++] ?? 'never';
        if (outcome === 'never') return new Promise(() => {});
        return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome);
      }),
    },
  });
  const stream = setup({ types: { events: {} as AnyEventObject }, actors: { wasmModule } }).createMachine({
    invoke: { id: 'module', src: 'wasmModule', input: { ...module, ...limits } },
    on: { '*': { actions: ({ event }) => void reports.push(event) } },
  });
  const actor = createActor(stream, { clock }).start();
  const flushMicrotasks = async (): Promise<void> => {
    for (let tick = 0; tick < 10; tick++) await Promise.resolve();
  };
  await flushMicrotasks();
  return {
    reports: () => reports.filter(({ type }) => type.startsWith('module.')),
    attempts: () => attempts,
    pass: async (ms: number) => {
      clock.increment(ms);
      await flushMicrotasks();
    },
    stop: () => actor.stop(),
  };
}

test('a fetched module is reported with its file', async () => {
  const { reports } = await startFetching([{ file: '/modules/a.wasm' }]);
  expect(reports()).toEqual([{ type: 'module.fetched', id: 3, stream: 2, file: '/modules/a.wasm' }]);
});

test('failures are reported once, after the third attempt, and attempts continue until one succeeds', async () => {
  const { reports, attempts, pass } = await startFetching([
    ...[{ reason: 'ECONNREFUSED' }, new Error('EIO'), { reason: 'status must be 200, got 404' }],
    ...[{ reason: 'later' }, { file: '/modules/a.wasm' }],
  ]);
  expect(quickAttempts).toBe(3);
  await pass(pauseAfterFailures(1));
  expect(reports()).toEqual([]);
  await pass(pauseAfterFailures(2));
  expect(reports()).toEqual([{ type: 'module.failed', id: 3, stream: 2, reason: 'status must be 200, got 404' }]);
  await pass(pauseAfterFailures(3));
  expect(attempts()).toBe(4);
  await pass(pauseAfterFailures(4));
  expect(reports().slice(1)).toEqual([{ type: 'module.fetched', id: 3, stream: 2, file: '/modules/a.wasm' }]);
});

test('an attempt without a result ends at its timeout', async () => {
  const { attempts, pass } = await startFetching(['never', { file: '/modules/a.wasm' }]);
  await pass(attemptMs - 1);
  expect(attempts()).toBe(1);
  await pass(1);
  await pass(pauseAfterFailures(1));
  expect(attempts()).toBe(2);
});

test('delays double up to 1 min', () => {
  expect([1, 2, 3, 7, 8, 1_000].map(pauseAfterFailures)).toEqual([500, 1_000, 2_000, 32_000, 60_000, 60_000]);
});

test('a stopped fetch makes no further attempt', async () => {
  const { attempts, pass, stop } = await startFetching([{ reason: 'no' }, { reason: 'no' }]);
  stop();
  await pass(600_000);
  expect(attempts()).toBe(1);
});

test('the attempt timeout and the number of attempts before a report are taken from the settings', async () => {
  const { reports, attempts, pass } = await startFetching(['never', { reason: 'no' }], {
    limits: { attemptMs: 2_000, quickAttempts: 1 },
  });
  await pass(1_999);
  expect(reports()).toEqual([]);
  await pass(1);
  expect(reports()).toEqual([{ type: 'module.failed', id: 3, stream: 2, reason: 'no module within 2000 ms' }]);
  await pass(pauseAfterFailures(1));
  expect(attempts()).toBe(2);
});
