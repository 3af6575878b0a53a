/** Whatever a workload, two replicas and the API server do, the entry finally matches the workload, and it is not deleted too early. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { registrationMachine } from '../../machines/discovery/registration/registration.machine.ts';
import { registrationsWithEffects } from '../../src/discovery/registration/registrations.effects.ts';
import type { WorkloadRegistrations } from '../../src/discovery/registration/workload-registrations.ts';
import { sized } from '../harness/size-of-run.ts';
import { RegistrationReplicas, type RequestFate } from '../simulation/registration-world.ts';

type Action =
  | { readonly kind: 'connect' | 'disconnect' | 'healthy' | 'unhealthy'; readonly replica: number }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'delete by hand' };

const anyAction: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('connect' as const), replica: fc.nat(1) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('disconnect' as const), replica: fc.nat(1) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('healthy' as const, 'unhealthy' as const), replica: fc.nat(1) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(0, 60, 1_000, 3_000, 12_000) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'delete by hand' as const }) },
);

interface Schedule {
  readonly actions: readonly Action[];
  readonly requestFates: readonly RequestFate[];
  readonly isKilled: boolean;
}

const schedule: fc.Arbitrary<Schedule> = fc.record({
  actions: fc.array(anyAction, { maxLength: 30 }),
  requestFates: fc.array(fc.constantFrom<RequestFate>('answered', 'answered', 'lost', 'answer lost', 'late'), {
    maxLength: 30,
  }),
  isKilled: fc.boolean(),
});

/** Longer than all pending work: two lost requests, the longest backoff, the grace period. */
const longMs = 120_000;

/** @returns violations */
async function runSchedule(
  { actions, requestFates, isKilled }: Schedule,
  machineOf = registrationsWithEffects,
): Promise<string[]> {
  const world = new RegistrationReplicas(machineOf);
  world.fates = [...requestFates];
  for (const one of actions) {
    if (one.kind === 'connect') world.connect(one.replica);
    else if (one.kind === 'disconnect') world.disconnect(one.replica);
    else if (one.kind === 'healthy') world.reportHealth(one.replica, undefined);
    else if (one.kind === 'unhealthy') world.reportHealth(one.replica, 'down');
    else if (one.kind === 'delete by hand') world.deleteByHand();
    else if (one.kind === 'pass') await world.passTime(one.ms);
  }
  const problems = [...(await checkFinalState(world, isKilled)), ...world.violations];
  world.stop();
  return problems;
}

async function checkFinalState(world: RegistrationReplicas, isKilled: boolean): Promise<string[]> {
  if (isKilled && world.isHeldBy(0)) {
    // The workload of the killed replica connects to the other one.
    world.kill(0);
    world.connect(1);
  }
  world.fates = [];
  await world.passTime(longMs);
  const problems: string[] = [];
  if (world.isConnected) {
    const annotations = world.entry?.metadata.annotations ?? {};
    if (world.entry === undefined) problems.push('connected, and there is no entry');
    else if (annotations['istio.io/connectedAt'] === undefined)
      problems.push('connected, and the entry says that it is not');
    // The workload had connections to both replicas, and the killed one had written its entry: the elected replica deletes the entry, and it is
    // created again.
    else if (!isKilled && !world.isHeldBy(world.holder === 'one' ? 0 : 1))
      problems.push('the entry is held by who has no connection');
  }
  for (const replica of [0, 1]) world.disconnect(replica);
  await world.passTime(longMs);
  if (world.entry !== undefined && !isKilled) problems.push('it has gone, and its entry is there');
  return problems;
}

it(
  'a WorkloadEntry eventually matches its workload, whatever the results of requests are',
  async () => {
    await fc.assert(
      fc.asyncProperty(schedule, async (drawnSchedule) => {
        expect(await runSchedule(drawnSchedule)).toEqual([]);
      }),
      { numRuns: sized({ short: 30, full: 2_000 }) },
    );
  },
  sized({ short: 60_000, full: 900_000 }),
);

it('registration charts with deliberate faults are detected', async () => {
  const withBrokenMachine = (machine: typeof registrationMachine) => (registrations: WorkloadRegistrations) => {
    const registrationLogic = registrationsWithEffects(registrations);
    const { writeEntry } = (registrationLogic.implementations.actors.registration as typeof registrationMachine)
      .implementations.actors;
    return registrationLogic.provide({
      actors: { registration: machine.provide({ actors: { writeEntry: writeEntry as never } }) },
    });
  };
  const hasted = withBrokenMachine(registrationMachine.provide({ guards: { isConnected: () => false } }));
  const forgetful = withBrokenMachine(registrationMachine.provide({ actions: { recordLost: () => {} } }));
  const findProblems = async (machineOf: typeof registrationsWithEffects): Promise<string[]> => {
    const schedules = fc.sample(schedule, { numRuns: 50, seed: 1 });
    const problems = await Promise.all(schedules.map((one) => runSchedule(one, machineOf)));
    return problems.flat();
  };
  expect(await findProblems(hasted as never)).not.toEqual([]);
  expect(await findProblems(forgetful as never)).not.toEqual([]);
});
