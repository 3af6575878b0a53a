import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { ProcessorWaits, reasonInMachine } from './processor-waits.ts';

const windowMs = 20_000;
const failing = (...reasons: string[]) => ({
  byName: {
    client: { total: 9, failed: reasons.length, reasons: Object.fromEntries(reasons.map((reason) => [reason, 1])) },
  },
});
const timeout = 'REQUEST_TIMEOUT no complete response within 20000 ms';
const busyWaits = {
  windowMs,
  maxWaitMs: new Map([
    ['clients', 0],
    ['applications', 12_000],
  ]),
};
const quietWaits = {
  windowMs,
  maxWaitMs: new Map([
    ['clients', 0],
    ['applications', 300],
  ]),
};

test('reasonInMachine explains client timeouts if a process waited for a processor for half of the timeout', () => {
  expect(reasonInMachine(failing(timeout), busyWaits)).toMatch(/^the machine is overloaded: .*applications 12\.0 s$/);
});

test('reasonInMachine does not explain client timeouts if no process waited for a processor', () => {
  expect(reasonInMachine(failing(timeout), quietWaits)).toMatch(
    /^not explained by the load of the machine: no process waited/,
  );
});

test('reasonInMachine never explains an error response', () => {
  expect(reasonInMachine(failing(timeout, 'HTTP_503 NC'), busyWaits)).toMatch(/^not explained .*: not only timeouts/);
});

test('ProcessorWaits measures how long a thread waits for a shared processor', async () => {
  const loops = [1, 2].map(() =>
    spawn('taskset', ['-c', '0', process.execPath, '-e', 'for(;;);'], { stdio: 'ignore' }),
  );
  const waits = new ProcessorWaits({ loop: loops[0]!.pid! }, windowMs);
  try {
    await eventually('one of two that share a processor waits', () => (waits.maxWaitMs.get('loop') ?? 0) > 200);
  } finally {
    waits.stop();
    for (const loop of loops) loop.kill('SIGKILL');
  }
});
