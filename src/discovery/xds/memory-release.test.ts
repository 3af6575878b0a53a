import { expect, it, vi } from 'vitest';
import { minReleasedProxies, settleMs } from '../../../machines/discovery/xds/memory-release.machine.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { VirtualClock } from '../../../test/simulation/virtual-clock.ts';
import { MemoryRelease } from './memory-release.effects.ts';

function start() {
  const clock = new VirtualClock();
  const logger = { debug: vi.fn(), error: vi.fn() };
  return { clock, logger, memoryRelease: new MemoryRelease({ logger: logger as never, clock: clock as never }) };
}

it('memory of proxies is collected and released after all of them have disconnected', async () => {
  const { clock, logger, memoryRelease } = start();
  const garbage = new WeakRef(Array.from({ length: 100_000 }, (_, i) => ({ i })));
  for (let proxies = 1; proxies <= minReleasedProxies; proxies++) memoryRelease.setServed(proxies);
  for (let proxies = minReleasedProxies - 1; proxies >= 0; proxies--) memoryRelease.setServed(proxies);
  clock.advance(settleMs);
  await eventually('memory is released', async () => logger.debug.mock.calls.length > 0 || undefined);
  const [event, fields] = logger.debug.mock.calls[0]!;
  expect([event, fields.proxies]).toEqual(['memory.released', minReleasedProxies]);
  expect(fields.pauseMs).toBeGreaterThan(0);
  expect(garbage.deref()).toBeUndefined();
  expect(logger.error).not.toHaveBeenCalled();
  expect('gc' in globalThis).toBe(false);
  memoryRelease.stop();
});

it('memory is not released while a proxy is served', async () => {
  const { clock, logger, memoryRelease } = start();
  for (const proxies of [1, minReleasedProxies, 1, 0, 1]) memoryRelease.setServed(proxies);
  clock.advance(settleMs * 10);
  memoryRelease.stop();
  memoryRelease.setServed(0);
  await new Promise((resolve) => setImmediate(resolve));
  expect(logger.debug).not.toHaveBeenCalled();
});
