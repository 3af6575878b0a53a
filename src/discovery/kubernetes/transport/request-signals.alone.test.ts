/** Signals of finished requests are released. Leases and status cause about ten requests per second for months. */
import { setTimeout as sleep } from 'node:timers/promises';
import { queryObjects } from 'node:v8';
import { expect, it, onTestFinished } from 'vitest';
import { respondJson, scriptedApiServer } from '../../../../test/fixtures/scripted-api-server.ts';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import { leases } from '../api-resource.ts';

/** Long enough for a response on a busy machine. The test waits for it twice. */
const timeoutMs = 3_000;

async function countRetainedSignals(): Promise<number> {
  await sleep(timeoutMs + 100);
  await collectGarbage();
  await collectGarbage();
  return queryObjects(AbortSignal, { format: 'count' });
}

it('a completed request releases all its abort signals', async () => {
  const server = await scriptedApiServer((stream) => respondJson(stream, { kind: 'Lease', metadata: { name: 'a' } }));
  onTestFinished(() => server.close());
  const { signal } = new AbortController();
  const requestRepeatedly = async (times: number): Promise<number> => {
    for (let request = 0; request < times; request++)
      await server.client.request({ method: 'GET', resource: leases, namespace: 'a', name: 'a', timeoutMs }, signal);
    return await countRetainedSignals();
  };
  const previous = await requestRepeatedly(50);
  expect((await requestRepeatedly(200)) - previous).toBeLessThan(50);
});
