/** Random schedules of writes and faults of a simulated API server, and the conditions that must hold after the last fault. */
import fc from 'fast-check';
import { definitions, KubernetesWorld, routes, services, type WorldOptions } from './kubernetes-world.ts';
import { type Faults, noFaults, type SimulatedApiServer } from './simulated-api-server.ts';

const kinds = { services, routes } as const;
const names = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const kind = fc.constantFrom('services' as const, 'routes' as const);

const eventArbitrary = fc.oneof(
  { weight: 6, arbitrary: fc.record({ is: fc.constant('put' as const), kind, name: names }) },
  { weight: 3, arbitrary: fc.record({ is: fc.constant('delete' as const), kind, name: names }) },
  { weight: 1, arbitrary: fc.record({ is: fc.constant('made again' as const), kind, name: names }) },
  {
    weight: 3,
    arbitrary: fc.record({
      is: fc.constant('cut' as const),
      which: fc.nat(2),
      how: fc.constantFrom('closed' as const, 'ended' as const),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      is: fc.constantFrom(
        ...(['kill', 'start', 'drop bytes', 'pass bytes', 'compact', 'back up', 'bookmarks'] as const),
        ...(['define', 'undefine', 'slow', 'endless', 'without streams', 'expired token', 'throttled'] as const),
        ...(['hasty', 'failing', 'well'] as const),
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ is: fc.constant('restore' as const) }) },
);

/** Time until the event, and the event. */
export type Step = readonly [ms: number, happening: ClusterEvent];
type ClusterEvent = typeof eventArbitrary extends fc.Arbitrary<infer One> ? One : never;

/** Mostly milliseconds, where order matters; sometimes long enough for a timeout. */
const pauseArbitrary = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 12 }) },
  { weight: 2, arbitrary: fc.integer({ min: 13, max: 1_500 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1_501, max: 40_000 }) },
);

export const schedules: fc.Arbitrary<readonly Step[]> = fc.array(fc.tuple(pauseArbitrary, eventArbitrary), {
  ...{ minLength: 1, maxLength: 30, size: 'max' as const },
});

/** Maximum time from the end of the last fault until convergence. */
const convergedWithinMs = 5_000;

/** @returns violations */
export async function runSteps(steps: readonly Step[], options: WorldOptions = {}): Promise<string[]> {
  const world = new KubernetesWorld({ recordsNothing: true, ...options });
  try {
    for (const [ms, one] of steps) {
      await world.passTime(ms);
      if (one.is === 'restore') await restore(world);
      else if (one.is === 'cut') world.server.endWatch(one.which, one.how);
      else if ('kind' in one) write(world.server, one);
      else serverActions[one.is](world.server);
    }
    world.server.faults = { ...noFaults };
    await world.passTime(convergedWithinMs);
    const finalProblems = [
      ...world.differences(),
      ...(world.syncedCount === 1 ? [] : [`synced ${world.syncedCount} times`]),
    ];
    return [...world.violations, ...world.faults.map(String), ...finalProblems];
  } finally {
    world.end();
  }
}

/** Stopping servers, restoring data and starting servers takes more than a few seconds. */
const restoringMs = 12_000;

async function restore(world: KubernetesWorld): Promise<void> {
  world.server.kill();
  await world.passTime(restoringMs);
  world.server.restore();
  world.server.start();
}

function write(server: SimulatedApiServer, { is, kind, name }: Extract<ClusterEvent, { kind: unknown }>): void {
  const resource = kinds[kind];
  const isThere = server.objectsOf(resource).has(`default/${name}`);
  if (is === 'delete' || (is === 'made again' && isThere)) server.delete(resource, name);
  if ((is === 'put' || (is === 'made again' && isThere)) && server.isDefined(resource)) server.put(resource, name);
}

type ServerAction = Exclude<ClusterEvent['is'], 'put' | 'delete' | 'made again' | 'cut' | 'restore'>;

function setFaults(faults: Faults, changedFaults: Partial<Faults>): void {
  Object.assign(faults, changedFaults);
}

const serverActions: Readonly<Record<ServerAction, (server: SimulatedApiServer) => void>> = {
  kill: (server) => server.kill(),
  start: (server) => server.start(),
  'drop bytes': (server) => server.dropBytes(),
  'pass bytes': (server) => server.passBytes(),
  compact: (server) => server.compact(),
  'back up': (server) => server.backUp(),
  bookmarks: (server) => server.sendBookmarks(),
  define: (server) => server.defineResource(routes, definitions),
  undefine: (server) => server.undefineResource(routes, definitions),
  slow: ({ faults }) => setFaults(faults, { slowMs: 2_500 }),
  endless: ({ faults }) => setFaults(faults, { hasEndlessLists: true }),
  'without streams': ({ faults }) => setFaults(faults, { withoutStreams: true }),
  'expired token': ({ faults }) => setFaults(faults, { expiredToken: true }),
  throttled: ({ faults }) => setFaults(faults, { isThrottled: true }),
  hasty: ({ faults }) => setFaults(faults, { endsWatchesEarly: true }),
  failing: ({ faults }) => setFaults(faults, { isFailing: true }),
  well: (server) => {
    const { isDown, isSilent } = server.faults;
    server.faults = { ...noFaults, isDown, isSilent };
  },
};
