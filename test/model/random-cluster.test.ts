/**
 * Random schedules of writes and faults of an API server against the charts that watch its kinds, with their real effects and stores: a store always
 * has a state of the server, and five seconds after the last fault the current one. Deliberate errors are detected.
 */
import fc from 'fast-check';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { apiServerMachine } from '../../machines/discovery/kubernetes/api-server.machine.ts';
import { informerMachine } from '../../machines/discovery/kubernetes/informer.machine.ts';
import type { ApiServer } from '../../src/discovery/kubernetes/api-server.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';
import type { WorldOptions } from '../simulation/kubernetes-world.ts';
import { runSteps, schedules } from '../simulation/random-cluster.ts';

/** XState's development build warns about every event for a stopped actor, here thousands. */
beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
});

const numRuns = sized({ quick: 50, short: 80, full: 2_000 });

test(`stores converge with the server in time in ${numRuns} fault schedules`, async () => {
  await fc.assert(
    fc.asyncProperty(schedules, async (steps) => {
      expect(await runSteps(steps)).toEqual([]);
    }),
    { numRuns },
  );
});

const neverMs = 100 * 24 * 3_600_000;
const withInformer = (informer: typeof informerMachine): WorldOptions => ({ charts: { informer } });
const withServer = (server: typeof apiServerMachine): WorldOptions => ({ charts: { server } });
const withPort = (change: (server: ApiServer) => Partial<ApiServer>): WorldOptions => ({
  port: (server) =>
    new Proxy(server, {
      get: (target, name) => {
        const overrides = change(target) as Record<string | symbol, unknown>;
        const value = overrides[name] ?? (target as unknown as Record<string | symbol, unknown>)[name];
        return typeof value === 'function' ? value.bind(target) : value;
      },
    }),
});

/** Enough schedules to find each of these errors. */
const scheduleCount = 600;

describe.skipIf(isQuick)('random schedules with a faulty informer', () => {
  test.each<[string, WorldOptions, RegExp]>([
    [
      'empties the store when its version has expired',
      withInformer(
        informerMachine.provide({
          guards: { isKindAbsent: (_, { failure }) => failure.code === 410, isVersionExpired: () => false },
        }),
      ),
      /what never was|has/,
    ],
    [
      'publishes a list before it is complete',
      withPort((server) => ({
        watch: (resource, options, onEvent, signal) =>
          server.watch(
            resource,
            options,
            (event) => {
              onEvent(event);
              if (event.type !== 'ADDED' || options.sendInitialEvents !== true) return;
              const { resourceVersion = '' } = event.object.metadata;
              const annotations = { 'k8s.io/initial-events-end': 'true' };
              onEvent({ type: 'BOOKMARK', object: { metadata: { name: '', resourceVersion, annotations } } });
            },
            signal,
          ),
      })),
      /what never was/,
    ],
    [
      'watches from the version of an object instead of the list',
      withPort((server) => ({
        list: async (resource, options, signal, onItem) => {
          const versions: number[] = [];
          const page = await server.list(resource, options, signal, (item) => {
            versions.push(Number(item.metadata.resourceVersion));
            onItem?.(item);
          });
          return options.limit === 1 ? page : { ...page, resourceVersion: String(Math.max(101, ...versions)) };
        },
      })),
      /what never was|has/,
    ],
    [
      'waits without a limit for the end of a streaming list',
      withInformer(informerMachine.provide({ delays: { initialListLimit: neverMs } })),
      /collecting/,
    ],
    [
      'repeats a watch without a delay if it ends at once',
      withInformer(informerMachine.provide({ delays: { retryDelay: 0 } })),
      /times a second/,
    ],
    [
      'has the retry delays of client-go',
      withInformer(informerMachine.provide({ delays: { retryDelay: 20_000 } })),
      /backing off/,
    ],
    [
      'is not notified of a dead connection',
      withServer(apiServerMachine.provide({ delays: { pingInterval: neverMs } })),
      /has/,
    ],
    ['keeps a connection whose ping got no response', withPort(() => ({ reconnect: () => {} })), /waiting for server/],
    [
      'never removes the objects of a removed kind',
      withInformer(informerMachine.provide({ guards: { isKindAbsent: () => false } })),
      /backing off|synced/,
    ],
    [
      'neither lists again nor checks the history after a long outage',
      {
        charts: {
          informer: informerMachine.provide({ guards: { isEarlier: () => false } }),
          server: apiServerMachine.provide({ delays: { longOutage: neverMs } }),
        },
      },
      /has/,
    ],
  ])('detect an informer that %s', async (_, options, expected) => {
    const result = await fc.check(
      fc.asyncProperty(schedules, async (steps) => {
        expect((await runSteps(steps, options)).join('\n')).not.toMatch(expected);
      }),
      { numRuns: scheduleCount, seed: 1, endOnFailure: true },
    );
    expect(result.failed).toBe(true);
  });
});
