import { expect, it } from 'vitest';
import { createActor, SimulatedClock } from 'xstate';
import { resourceOf } from './api-resource.ts';
import { InformerEffects } from './api-server.effects.ts';
import type { ApiServer, WatchEvent } from './api-server.ts';

const services = resourceOf('Service');
/** Waits until pending work is done. */
const drainEventLoop = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A watched kind on a server that the test controls. */
async function watchedServer() {
  const clock = new SimulatedClock();
  const notified = new Set<string>();
  let emit = (_: WatchEvent): void => {};
  let missPing: ((error: Error) => void) | undefined;
  const server: Partial<ApiServer> = {
    watch: (_resource, _options, onEvent) => {
      emit = onEvent;
      return new Promise(() => {});
    },
    ping: () =>
      missPing === undefined
        ? Promise.resolve(1)
        : new Promise((_, reject) => {
            missPing = reject;
          }),
    reconnect: () => {},
  };
  const effects = new InformerEffects({
    ...{ server: server as ApiServer, kinds: [{ resource: services }], random: () => 0.5, now: () => 0 },
    fault: (error) => {
      throw error;
    },
  });
  effects.addReader(services, (changes) => {
    for (const { key } of changes) notified.add(key);
  });
  const input = { server: 's', resources: effects.resources, firstInformer: 1 };
  const chart = createActor(effects.machine(), { clock, input }).start();
  await drainEventLoop();
  clock.increment(100);
  await drainEventLoop();
  const annotations = { 'k8s.io/initial-events-end': 'true' };
  emit({ type: 'BOOKMARK', object: { metadata: { name: '', resourceVersion: '1', annotations } } });
  await drainEventLoop();
  missPing = () => {};
  clock.increment(2_000);
  await drainEventLoop();
  return {
    chart,
    effects,
    notified,
    emitWatchEvent: (event: WatchEvent) => emit(event),
    missPing: () => missPing?.(new Error('no')),
  };
}

it('readers receive every change in the store, even if a server connection is abandoned at any time', async () => {
  for (let delayedSteps = 0; delayedSteps < 20; delayedSteps++) {
    const { chart, effects, notified, emitWatchEvent, missPing } = await watchedServer();
    missPing();
    for (let step = 0; step < delayedSteps; step++) await Promise.resolve();
    emitWatchEvent({
      type: 'ADDED',
      object: { metadata: { name: 'web', namespace: 'shop', uid: 'u', resourceVersion: '2' } },
    });
    await drainEventLoop();
    const knownKeys = [...effects.storeOf(services).entries()].map(([key]) => key);
    expect({ later: delayedSteps, notified: [...notified] }).toEqual({ later: delayedSteps, notified: knownKeys });
    chart.stop();
  }
});
