/**
 * An agent that succeeds a killed one receives two stop signals before it has claimed the remaining Envoys: none of their files stays on the host.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { endOf, envoysIn, readyAgent } from '../harness/contained-agent.ts';
import { statusOf } from '../harness/container.ts';
import { eventually } from '../harness/eventually.ts';

/** SIGHUP, whose handler is installed last. */
const lowestBit = 1n;

test('an agent that receives two stop signals while claiming base IDs releases them and their shared memory', async () => {
  const agent = await readyAgent([], { env: { LIVE_RESTORE: 'true' } });
  const { container } = agent;
  const run = join(container.cwd, 'run');
  const baseIds = readdirSync(run).flatMap((name) => /^base-id-(\d+)$/.exec(name)?.[1] ?? []);
  expect(baseIds).not.toEqual([]);
  const [killed] = container.agents();
  process.kill(killed!, 'SIGKILL');
  const next = await eventually(
    'the next agent hears signals',
    () => {
      const newPid = container.agents().find((pid) => pid !== killed);
      return newPid !== undefined && ((statusOf(newPid)?.caught ?? 0n) & lowestBit) !== 0n ? newPid : undefined;
    },
    { everyMs: 1 },
  );
  process.kill(next, 'SIGTERM');
  // Two pending signals of one type are delivered as one.
  await sleep(2);
  process.kill(next, 'SIGTERM');
  expect(await endOf(agent)).toEqual({ code: 0, signal: null });
  expect(envoysIn(agent)).toEqual([]);
  expect(baseIds.filter((baseId) => existsSync(`/dev/shm/envoy_shared_memory_${Number(baseId) * 10}`))).toEqual([]);
  expect(readdirSync(run).filter((name) => name.startsWith('base-id'))).toEqual([]);
});
