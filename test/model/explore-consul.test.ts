/**
 * Every state of one datacenter of Consul within bounds (test/simulation/consul-world.ts): nothing is removed without a confirmation, whatever the
 * server loses or denies, and every run can end with the services that it lists. Deliberately broken rules are detected.
 */
import { describe, expect, test } from 'vitest';
import { assign } from 'xstate';
import { consulCatalogMachine } from '../../machines/discovery/consul/consul-catalog.machine.ts';
import { holdReasonOf, minRepetitions } from '../../machines/discovery/consul/consul-catalog.setup.ts';
import { explore, goalIsReached } from '../../src/debugger/explore/explorer.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';
import { type ConsulBounds, ConsulWorld } from '../simulation/consul-world.ts';
import { chartWithout } from './chart.ts';
import { expectCaught } from './given-worlds.ts';

const bounds = (services: number, changes: number, faults: number): ConsulBounds => ({ services, changes, faults });
const worldFactory =
  (worldBounds: ConsulBounds, catalog: typeof consulCatalogMachine = consulCatalogMachine) =>
  () =>
    new ConsulWorld(worldBounds, catalog);

describe('a Consul datacenter', () => {
  test.each(
    sized<readonly ConsulBounds[]>({
      short: [bounds(1, 1, 1)],
      full: [bounds(2, 1, 1), bounds(4, 1, 1), bounds(1, 2, 1), bounds(1, 1, 2)],
    }),
  )(
    'removes nothing without confirmation, and can always be served eventually, within %o',
    (worldBounds) => {
      const result = explore(worldFactory(worldBounds));
      console.info(`${JSON.stringify(worldBounds)}: ${result.states} states, ${result.edges} edges, ${result.ms} ms`);
      expect(result.found).toBeUndefined();
      expect(result.outcome).toBe('complete');
      expect(result.states).toBeGreaterThan(100);
    },
    3_600_000,
  );
});

describe.skipIf(isQuick)('the exploration of Consul', () => {
  test.each<[string, typeof consulCatalogMachine, ConsulBounds, string]>([
    [
      'an empty response is applied',
      consulCatalogMachine.provide({ guards: { removesTooMuch: () => false, isUnconfirmed: () => false } }),
      bounds(1, 0, 1),
      'no service is removed without a confirmation',
    ],
    [
      'a change of the watch is applied whatever it removes',
      consulCatalogMachine.provide({ guards: { needsFullRead: () => false } }),
      bounds(1, 1, 0),
      'no service is removed without a confirmation',
    ],
    [
      'one repetition of a held response is enough',
      consulCatalogMachine.provide({ guards: { isUnconfirmed: () => false } }),
      bounds(1, 1, 0),
      'no service is removed without a confirmation',
    ],
    [
      'a failed read counts as a repetition',
      consulCatalogMachine.provide({ actions: { resetRepetitions: () => {} } }),
      bounds(1, 1, 0),
      'no service is removed without a confirmation',
    ],
    [
      'a lower index is ignored',
      chartWithout(consulCatalogMachine, 'watching', 'on', 'index.regressed'),
      bounds(1, 1, 1),
      goalIsReached,
    ],
    [
      'a failed query is ignored',
      chartWithout(consulCatalogMachine, 'watching', 'on', 'query.failed'),
      bounds(1, 1, 1),
      goalIsReached,
    ],
    [
      'a response that is held back is never confirmed',
      consulCatalogMachine.provide({ actions: { countRepetition: assign({ repetitions: 0 }) } }),
      bounds(1, 1, 0),
      goalIsReached,
    ],
    [
      'a token that may not see everything confirms a response',
      consulCatalogMachine.provide({
        guards: {
          isUnconfirmed: ({ context }, outcome) =>
            holdReasonOf(context, outcome) !== undefined && context.repetitions + 1 < minRepetitions,
        },
        actions: { countRepetition: assign({ repetitions: ({ context }) => context.repetitions + 1 }) },
      }),
      bounds(1, 0, 1),
      'no service is removed without a confirmation',
    ],
    [
      'the catalog is not read after a failure',
      chartWithout(consulCatalogMachine, 'backing off', 'after', 'retryDelay'),
      bounds(1, 0, 1),
      goalIsReached,
    ],
    [
      'a response that is held back is not read again',
      chartWithout(consulCatalogMachine, 'held.waiting', 'after', 'verifyInterval'),
      bounds(1, 1, 0),
      goalIsReached,
    ],
  ])('detects that %s', (_, catalog, worldBounds, invariant) => {
    expectCaught(worldFactory(worldBounds, catalog), invariant);
  });
});
