/**
 * Every state of the push path within bounds (docs/exploring-reference.md), and random schedules in the same world. For each invariant, a deliberate
 * error is detected.
 */
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { type AnyActorRef, assign, enqueueActions } from 'xstate';
import { pushMachine } from '../../machines/discovery/push/push.machine.ts';
import { pushQueueMachine } from '../../machines/discovery/push/push-queue.machine.ts';
import { emptyQueue, withGrantedSlots, withServed } from '../../machines/discovery/push/push-queue-record.ts';
import { registryMachine } from '../../machines/discovery/registry/registry.machine.ts';
import { serviceRegistryMachine } from '../../machines/discovery/registry/service-registry.machine.ts';
import { adsConnectionMachine } from '../../machines/discovery/xds/ads-connection.machine.ts';
import { stepOf, stepTo } from '../../machines/discovery/xds/ads-exchange.ts';
import type { ResponseOrder } from '../../machines/discovery/xds/ads-protocol.ts';
import { clusterType } from '../../machines/discovery/xds/ads-types.ts';
import { classify, isSettled, type Watches, withChange } from '../../machines/discovery/xds/ads-watch.ts';
import { type Exploration, explore, findShortest, goalIsReached } from '../../src/debugger/explore/explorer.ts';
import { exploreWithHelper } from '../../src/debugger/explore/two-explorers.ts';
import type { World } from '../../src/debugger/explore/world.ts';
import type { PushBounds, PushWorldOptions } from '../../src/simulation/discovery/discovery-bounds.ts';
import type { PushMachines } from '../../src/simulation/discovery/discovery-charts.ts';
import {
  acknowledgedWasSent,
  clustersFirst,
  everyoneConverges,
  everyProxyIsServed,
  listsFirst,
  noPushChartFails,
  oneOutstanding,
  type PushInvariant,
  readersStay,
  slowCostsLittle,
  stalledDelaysNoClient,
  throttleHolds,
} from '../../src/simulation/discovery/discovery-invariants.ts';
import { meshTypes } from '../../src/simulation/discovery/discovery-mesh.ts';
import { explorePush } from '../../src/simulation/discovery/explore-discovery.ts';
import { isFull, isQuick, sized } from '../harness/size-of-run.ts';
import { searchPushes } from '../simulation/discovery-random.ts';
import { chartWithout, type RemovedTransition } from './chart.ts';
import { lastsUntilTheEnd, ReplayedWorld } from './given-worlds.ts';

/** XState's development build warns about every event for a stopped actor, here thousands. */
beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
});

const bounds = (changes: number, faults: number): PushBounds => ({ changes, faults });
const figuresOf = ({ outcome, states, edges, depth, found }: Exploration) => ({ outcome, states, edges, depth, found });
const wideOptions = { types: meshTypes, events: ['endpoint', 'service', 'route', 'cluster'] } as const;

function expectComplete(result: Exploration, minStates: number): void {
  expect(result.found).toBeUndefined();
  expect(result.outcome).toBe('complete');
  expect(result.states).toBeGreaterThan(minStates);
}

/** Explores everything within the bounds, on one thread. */
function exploreAll(pushBounds: PushBounds, options: Parameters<typeof explorePush>[1] = {}): Exploration {
  const world = explorePush(pushBounds, options);
  return explore(() => world.beginWorld());
}

describe('the push path', () => {
  test('breaks no invariant and becomes idle for two proxies within two changes or a fault', () => {
    const twoChanges = exploreAll(bounds(2, 0));
    expectComplete(twoChanges, 500);
    // Distinguishing states with and without an earlier backoff of the client would add 50 %.
    expect(twoChanges.states).toBeLessThan(5_500);
    expectComplete(exploreAll(bounds(1, 1)), 300);
    for (const client of sized({ short: [], full: ['sotw', 'delta'] } as const)) {
      expectComplete(exploreAll(bounds(2, 1), { clients: [client] }), 1_000);
    }
  });

  test.each(['sotw', 'delta'] as const)(
    'breaks no invariant if services change while a client (%s) reads slowly and responses wait for each other',
    (protocol) => {
      const events = ['service', 'cluster'] as const;
      expectComplete(exploreAll(bounds(2, 0), { ...wideOptions, events, clients: [protocol], window: 1 }), 400);
    },
  );

  test('breaks no invariant if a slow client stops reading, even while other clients connect', () => {
    expectComplete(
      exploreAll(sized({ short: bounds(1, 1), full: bounds(2, 1) }), { clients: ['sotw'], window: 1 }),
      sized({ short: 200, full: 1_000 }),
    );
    expectComplete(exploreAll(bounds(1, 1), { clients: ['delta'], window: 2, types: meshTypes }), 200);
    expectComplete(exploreAll(bounds(0, 1), { startsConnected: false, window: 1 }), 300);
  });

  test('breaks no invariant if three proxies are queued or two are served at a time', () => {
    const three = { clients: ['sotw', 'delta', 'sotw'], events: ['cluster'] } as const;
    expectComplete(exploreAll(bounds(1, 0), { ...three, throttle: 1 }), 40);
    expectComplete(exploreAll(bounds(1, 0), { ...three, throttle: 2 }), 40);
    expectComplete(exploreAll(bounds(1, 1), { throttle: 2 }), 400);
  });

  test('breaks no invariant while clients connect and full pushes are forced', () => {
    const beginning = { startsConnected: false, clients: ['delta', 'sotw'], events: ['forced', 'service'] } as const;
    expectComplete(exploreAll(bounds(1, 0), beginning), 500);
  });

  test('breaks no invariant if a registry changes and its services take time to compute', () => {
    const moving = { events: ['endpoint'], registryChanges: ['cluster'], clients: ['sotw'] } as const;
    expectComplete(exploreAll(bounds(2, 0), moving), 200);
    for (const pushBounds of sized({ short: [], full: [bounds(2, 1)] }))
      expectComplete(exploreAll(pushBounds, moving), 1_000);
  });

  test('breaks no invariant if a registry is lost, changes while it is lost, and returns', () => {
    const lostRegistry = { registryFails: true, registryChanges: ['cluster'], clients: ['sotw'] } as const;
    expectComplete(exploreAll(bounds(1, 1), { ...lostRegistry, events: [] }), 100);
    if (!isFull) return;
    expectComplete(
      exploreAll(bounds(1, 1), { ...lostRegistry, events: ['endpoint'], listsLate: true, startsConnected: false }),
      200,
    );
  });

  test('breaks no invariant if the first list of a registry is late or missing', () => {
    const lateLists = {
      listsLate: true,
      startsConnected: false,
      clients: ['sotw'],
      registryChanges: ['cluster'],
    } as const;
    expectComplete(exploreAll(bounds(0, 0), lateLists), 20);
    for (const pushBounds of sized({ short: [bounds(1, 0), bounds(0, 1)], full: [bounds(1, 1)] }))
      expectComplete(exploreAll(pushBounds, lateLists), sized({ short: 20, full: 100 }));
  });

  test('breaks no invariant if a client connects and subscribes later', () => {
    expectComplete(exploreAll(bounds(2, 1), { requestsLate: true, clients: ['delta'], events: ['cluster'] }), 300);
  });

  test('conforms to the sequence diagrams', () => {
    const world = explorePush(bounds(1, 1), { buildsFail: false });
    expectComplete(
      explore(() => world.beginChecked()),
      200,
    );
  });
});

describe.skipIf(isQuick)('the simulation of the push path', () => {
  test('has the same states when restored as when replayed', () => {
    const { beginWorld } = explorePush(bounds(1, 1), { clients: ['sotw'] });
    expect(figuresOf(explore(() => new ReplayedWorld(() => beginWorld())))).toEqual(
      figuresOf(explore(() => beginWorld())),
    );
  });

  test('has the same states with two threads as with one', () => {
    const { beginWorld, helper } = explorePush(
      bounds(1, 1),
      sized<NonNullable<Parameters<typeof explorePush>[1]>>({ short: { clients: ['delta'] }, full: {} }),
    );
    const inTwo = exploreWithHelper(beginWorld, helper);
    const singleResult = explore(() => beginWorld());
    expect([inTwo.outcome, inTwo.states]).toEqual([singleResult.outcome, singleResult.states]);
  });
});

interface BrokenVariant {
  machines?: Partial<PushMachines>;
  options?: Partial<PushWorldOptions>;
  bounds: PushBounds;
  violatedInvariant: PushInvariant;
}

/** The explorer's own finding: the desired state is unreachable although no fault follows. */
const unreachableGoal: PushInvariant = { name: goalIsReached };

const connection = (implementations: Parameters<typeof adsConnectionMachine.provide>[0]) => ({
  connection: adsConnectionMachine.provide(implementations),
});
const queue = (implementations: Parameters<typeof pushQueueMachine.provide>[0]) => ({
  queue: pushQueueMachine.provide(implementations),
});

/** Orders for all changes of these types, whatever is pending. */
function ordersAtOnce(watches: Watches, types: readonly string[]): ResponseOrder[] {
  return types.flatMap((typeUrl) => {
    const watch = watches[typeUrl];
    const names = watch?.wildcard === true ? '*' : (watch?.names ?? []);
    return watch === undefined ? [] : [{ typeUrl, names, all: false, requested: [], changed: true }];
  });
}

/** Replaces only the effects of a push. */
const exchangeWithOrders = (
  orders: (watches: Watches, types: readonly string[]) => ResponseOrder[],
): Partial<PushMachines> => ({
  exchange: (exchange, event, rules) =>
    event.type === 'connection.push'
      ? { exchange, orders: orders(exchange.watches, event.types), reports: [] }
      : stepOf(exchange, event, rules),
});

const sendsAtOnce = exchangeWithOrders(ordersAtOnce);

const forgetfulQueue = queue({
  actions: {
    releaseSlots: assign({
      queue: ({ context: { queue: line } }, { connections }) =>
        withServed(
          { ...line, serving: line.serving.map((servedPush) => ({ ...servedPush, next: null })) },
          connections,
        ),
    }),
  },
});

const carelessQueue = queue({ actions: { removeProxy: assign({ queue: emptyQueue }) } });

const emptyPush = { configs: [], forced: false, reasons: {}, updates: 0 };
const parentOf = ({ self }: { self: { _parent?: AnyActorRef } }): AnyActorRef => self._parent!;

const registry = (mutant: Parameters<typeof serviceRegistryMachine.provide>[0]) => ({
  registry: serviceRegistryMachine.provide(mutant),
});

const connectionWithout = (...removedHandler: RemovedTransition): Partial<PushMachines> => ({
  connection: chartWithout(adsConnectionMachine, ...removedHandler),
});

/** One response is on its way to the client, and the next one waits. */
const stalledClients = { faults: ['stall'], clients: ['sotw'] } as const;

const brokenMachines: Record<string, BrokenVariant> = {
  'a connection that is not notified that its client stopped reading': {
    violatedInvariant: unreachableGoal,
    bounds: bounds(1, 1),
    machines: connectionWithout('streaming.delivery', 'on', 'stream.congested'),
    options: stalledClients,
  },
  'a connection that waits without a limit for a client that does not read': {
    violatedInvariant: unreachableGoal,
    bounds: bounds(1, 1),
    machines: connectionWithout('streaming.delivery.congested', 'after', 'congestionLimit'),
    options: stalledClients,
  },
  'a connection that waits without a limit until its client reads the final status': {
    violatedInvariant: unreachableGoal,
    bounds: bounds(1, 1),
    machines: connectionWithout('closing', 'after', 'closeLimit'),
    options: stalledClients,
  },
  'a connection that is not notified that its client reads again': {
    violatedInvariant: readersStay,
    bounds: bounds(1, 1),
    machines: connectionWithout('streaming.delivery.congested', 'on', 'stream.resumed'),
    options: stalledClients,
  },
  'a connection that closes at once when its client reads slowly': {
    violatedInvariant: readersStay,
    bounds: bounds(1, 0),
    machines: connection({ delays: { congestionLimit: 20_000 } }),
    options: { window: 1, clients: ['sotw'], events: ['cluster'] },
  },
  'a connection that closes a stream without a reason': {
    violatedInvariant: readersStay,
    bounds: bounds(1, 1),
    machines: connection({ actions: { recordEnd: () => {} } }),
    options: stalledClients,
  },
  'a server that serves no proxy until a slow client has read all its responses': {
    violatedInvariant: stalledDelaysNoClient,
    bounds: bounds(1, 1),
    options: { faults: ['stall'], waitsForReaders: true },
  },
  'a push that loses the changes of a context that could not be built': {
    violatedInvariant: unreachableGoal,
    bounds: bounds(1, 1),
    machines: {
      push: pushMachine.provide({
        actions: {
          claimCollected: assign({
            buildingRequests: ({ context }) => context.pendingRequests,
            pendingRequests: emptyPush,
            failedRequests: emptyPush,
          }),
        },
      }),
    },
    options: { clients: ['sotw'] },
  },
  'a registry whose changes are lost when services cannot be computed': {
    violatedInvariant: unreachableGoal,
    bounds: bounds(1, 1),
    machines: registry({ delays: { retryDelay: 1e12 }, guards: { affectsServices: () => false } }),
    options: { clients: ['sotw'], registryChanges: ['cluster'], events: [] },
  },
  'a registry that does not request a computation when it changes by itself': {
    violatedInvariant: unreachableGoal,
    bounds: bounds(1, 0),
    machines: registry({ guards: { hasPendingChanges: () => false } }),
    options: { clients: ['sotw'], registryChanges: ['cluster'], events: [] },
  },
  'a registry that does not report its changes': {
    violatedInvariant: unreachableGoal,
    bounds: bounds(1, 0),
    machines: { member: registryMachine.provide({ actions: { reportChanged: () => {} } }) },
    options: { clients: ['sotw'], registryChanges: ['cluster'], events: [] },
  },
  'a registry that reports nothing after it was lost': {
    violatedInvariant: unreachableGoal,
    bounds: bounds(1, 1),
    machines: {
      member: registryMachine.provide({
        actions: {
          resetFailures: () => {},
          reportSynced: enqueueActions(({ context: { failures, registry }, enqueue }) => {
            if (failures === 0) enqueue.sendParent({ type: 'registry.synced', registry });
          }),
        },
      }),
    },
    options: { registryFails: true, clients: ['sotw'], registryChanges: ['cluster'], events: [] },
  },
  'a registry that treats a missing first list as empty': {
    violatedInvariant: listsFirst,
    bounds: bounds(0, 0),
    machines: registry({ guards: { areAllSynced: () => true } }),
    options: { listsLate: true, startsConnected: false, clients: ['sotw'] },
  },
  'a registry that waits for its first list without a limit': {
    violatedInvariant: unreachableGoal,
    bounds: bounds(0, 0),
    machines: registry({
      actions: {
        reportSynced: enqueueActions(({ context, enqueue }, { services, endpoints }) => {
          if (context.registries?.every(({ synced }) => synced)) {
            enqueue.sendTo(parentOf, { type: 'services.synced', services, endpoints, missing: [] });
          }
        }),
      },
    }),
    options: { listsLate: true, startsConnected: false, clients: ['sotw'] },
  },
  'a stream without subscriptions that keeps its context after a push': {
    violatedInvariant: unreachableGoal,
    bounds: bounds(1, 0),
    options: {
      requestsLate: true,
      startsConnected: false,
      skipsUnsubscribed: true,
      clients: ['sotw'],
      events: ['cluster'],
    },
  },
  'a connection that does not wait for an acknowledgement': {
    violatedInvariant: oneOutstanding,
    bounds: bounds(2, 0),
    machines: sendsAtOnce,
  },
  'a connection that treats any request as an acknowledgement': {
    violatedInvariant: acknowledgedWasSent,
    bounds: bounds(0, 1),
    machines: {
      exchange(exchange, event, rules) {
        if (event.type !== 'request.received') return stepOf(exchange, event, rules);
        const { typeUrl, nonce } = event.request;
        const watch = classify(exchange.watches[typeUrl], event.request, rules).watch!;
        return stepTo(exchange, { ...exchange.watches, [typeUrl]: { ...watch, nonceAcked: nonce } });
      },
    },
  },
  'a connection that sends endpoints before their clusters': {
    violatedInvariant: clustersFirst,
    bounds: bounds(1, 0),
    machines: exchangeWithOrders((watches, types) => ordersAtOnce(watches, types.toReversed())),
  },
  'a stream that builds a response from the state when it is sent, not when it was ordered': {
    violatedInvariant: clustersFirst,
    bounds: bounds(2, 0),
    options: { ...wideOptions, clients: ['sotw'], window: 1, buildsLate: true },
  },
  'a connection that forgets a change while it waits for an acknowledgement': {
    violatedInvariant: everyoneConverges,
    bounds: bounds(2, 0),
    machines: {
      exchange(exchange, event, rules) {
        if (event.type !== 'connection.push') return stepOf(exchange, event, rules);
        const settledTypes = event.types.filter((type) => isSettled(exchange.watches[type]!));
        const changedWatches = Object.fromEntries(
          settledTypes.map((type) => [type, withChange(exchange.watches[type]!)]),
        );
        return stepTo(exchange, { ...exchange.watches, ...changedWatches });
      },
    },
    options: { clients: ['sotw'] },
  },
  'a source that knows only the changes of the last order': {
    violatedInvariant: everyoneConverges,
    bounds: bounds(2, 0),
    options: { trustsOrders: true, clients: ['sotw', 'sotw'] },
  },
  'a queue that serves one proxy too many': {
    violatedInvariant: throttleHolds,
    bounds: bounds(1, 0),
    machines: queue({
      actions: {
        grantSlots: enqueueActions(({ context, enqueue, system }) => {
          const { queue: line, batches } = withGrantedSlots(context.queue, context.throttle + 1);
          enqueue.assign({ queue: line });
          for (const batch of batches) enqueue.sendTo(system.get('ads-server'), { type: 'proxies.serve', ...batch });
        }),
      },
    }),
  },
  'a queue that forgets changes while a proxy is served': {
    violatedInvariant: everyProxyIsServed,
    bounds: bounds(2, 0),
    machines: forgetfulQueue,
  },
  'a queue that drops all waiting proxies when a proxy disconnects': {
    violatedInvariant: everyProxyIsServed,
    bounds: bounds(1, 1),
    machines: carelessQueue,
  },
  'a connection that orders a response per push to a client that does not read': {
    violatedInvariant: slowCostsLittle,
    bounds: bounds(3, 0),
    machines: sendsAtOnce,
    options: { window: 1, clients: ['sotw'], events: ['endpoint'] },
  },
  'an action that throws an error': {
    violatedInvariant: noPushChartFails,
    bounds: bounds(1, 0),
    machines: {
      push: pushMachine.provide({
        actions: {
          claimCollected: () => {
            throw new Error('a bug');
          },
        },
      }),
    },
  },
};

/** The world in which a run ends. */
function endOf(createWorld: () => World, path: readonly string[]): World {
  const world = createWorld();
  for (const choice of path) world.apply(choice);
  return world;
}

describe.skipIf(isQuick)('the exploration of the push path', () => {
  test.each(Object.entries(brokenMachines))(
    'detects, by a shortest run, %s',
    (_, { violatedInvariant, bounds, machines = {}, options }) => {
      const invariants = violatedInvariant === unreachableGoal ? [] : [violatedInvariant];
      const world = explorePush(bounds, { invariants, machines, ...options });
      const { found } = findShortest(() => world.beginWorld());
      expect(found?.violations[0]?.invariant).toBe(violatedInvariant.name);
      if (violatedInvariant === unreachableGoal)
        expect(endOf(() => world.beginWorld(), found!.path).isGoalReached).toBe(false);
      else expect(lastsUntilTheEnd(() => world.beginWorld(), found!.path)).toBe(true);
    },
  );

  test('detects, by a shortest run, a connection that responds to every ACK, forever', () => {
    const orderFor = (typeUrl: string): ResponseOrder => ({
      typeUrl,
      names: '*',
      all: true,
      requested: [],
      changed: false,
    });
    const restless: Partial<PushMachines> = {
      exchange: (exchange, event, rules) =>
        event.type === 'request.received'
          ? { exchange, orders: [orderFor(event.request.typeUrl)], reports: [] }
          : stepOf(exchange, event, rules),
    };
    const world = explorePush(bounds(0, 0), {
      machines: restless,
      invariants: [],
      startsConnected: false,
      clients: ['sotw'],
      types: [clusterType],
    });
    const { found } = findShortest(() => world.beginWorld(), { states: 1_000 });
    expect(found?.violations[0]?.invariant).toBe('no livelock');
  });
});

describe('random schedules of the push path', () => {
  test('break no invariant in 100 choices, and all proxies converge in the end', () => {
    const { finding, figures: searchFigures } = searchPushes({ seed: 7, runs: 60 });
    expect(finding).toBeUndefined();
    expect(searchFigures.choices).toBeGreaterThan(1_500);
  });

  test('are shrunk to a few choices if they violate an invariant, and reproduced by their seed', () => {
    const machines = carelessQueue;
    const { finding } = searchPushes({ seed: 1, runs: 100, maxChoices: 15, machines });
    expect(finding?.violations[0]?.invariant).toMatch(/forgotten|converges/);
    expect(finding!.choices.length).toBeLessThanOrEqual(30);
    const repeatedSearch = searchPushes({ seed: 1, runs: 100, maxChoices: 15, machines, path: finding!.path });
    expect(repeatedSearch.finding?.choices).toEqual(finding!.choices);
  });
});
