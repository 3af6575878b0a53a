import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { startSampleService } from '../sample/sample-service.ts';
import { startLoad } from './load-process.ts';

async function sample(): Promise<number> {
  const service = await startSampleService({ version: 'v2' });
  onTestFinished(() => service.close());
  return service.port;
}

test('a load run has its own process, reports its progress, and exits after its final report', async () => {
  const target = { host: '127.0.0.1', port: await sample(), authority: 'sample.localhost' };
  const run = await startLoad({ target, clients: [{ kind: 'ka', count: 1, pauseMs: 1 }], maxDurationMs: 10_000 });
  onTestFinished(() => run.kill());
  expect(run.pid).not.toBe(process.pid);
  await expect.poll(async () => (await run.report()).total).toBeGreaterThan(2);
  const report = await run.stop();
  expect(report.failed).toBe(0);
  expect(report.versions.v2).toBe(report.total);
  expect(await run.stop()).toBe(report);
  expect(await run.report()).toBe(report);
  expect(() => process.kill(run.pid, 0)).toThrow('ESRCH');
});

test('a plan that cannot run is rejected with the reason', async () => {
  const target = { host: '127.0.0.1', port: 1, authority: 'sample.localhost', caFile: '/missing/ca.crt' };
  const starting = startLoad({ target, clients: [{ kind: 'ka', count: 1 }], maxDurationMs: 1_000 });
  await expect(starting).rejects.toThrow('/missing/ca.crt');
});

const runMain = async (...args: string[]) =>
  promisify(execFile)(process.execPath, [join(import.meta.dirname, 'main.ts'), ...args]);

test('the command line exits with 0 if all requests succeed, and with 1 if any fails', async () => {
  const port = await sample();
  const successfulRun = await runMain('--url', `http://127.0.0.1:${port}`, '--ka', '1', '--requests', '5');
  expect(successfulRun.stdout).toContain('0 failed of 5');
  const failingRun = runMain('--url', 'http://127.0.0.1:9', '--new', '1', '--requests', '1');
  await expect(failingRun).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining('1 failed of 1') });
});
