/**
 * An agent is replaced by a newer one: the two agents, the base IDs, the record and the launcher, in every state within the bounds in
 * succession-world.ts. Two agents never decide at the same time, and no agent decides for at most 2 s, whichever process is killed or hangs at any
 * moment. Deliberate errors are detected.
 */
import { describe, expect, test } from 'vitest';
import { predecessorMachine } from '../../machines/agent/agent-upgrade/predecessor.machine.ts';
import { successorMachine } from '../../machines/agent/agent-upgrade/successor.machine.ts';
import { explore, goalIsReached } from '../../src/debugger/explore/explorer.ts';
import { sized } from '../harness/size-of-run.ts';
import { type SuccessionBounds, type SuccessionMachines, SuccessionWorld } from '../simulation/succession-world.ts';
import { expectCaught } from './given-worlds.ts';

const bounds = (
  orders: number,
  faults: number,
  endOrders: number,
  stateChanges: number,
  restarts = 0,
  questions = 0,
) => ({
  ...{ orders, faults, endOrders, stateChanges, restarts, questions },
});
const worldFactory =
  (worldBounds: SuccessionBounds, machines: Partial<SuccessionMachines> = {}) =>
  () =>
    new SuccessionWorld(worldBounds, machines);

describe('an agent that is replaced by a newer one', () => {
  test.each(
    sized<readonly SuccessionBounds[]>({
      quick: [bounds(1, 1, 0, 0)],
      short: [
        bounds(1, 1, 0, 1),
        bounds(1, 1, 1, 0),
        bounds(2, 0, 1, 0),
        bounds(1, 1, 0, 0, 1),
        bounds(1, 1, 0, 0, 0, 1),
      ],
      full: [
        bounds(1, 1, 1, 0, 1),
        bounds(2, 1, 0, 0, 2),
        bounds(2, 1, 0, 1),
        bounds(2, 1, 1, 0),
        bounds(2, 1, 1, 1),
        bounds(2, 1, 1, 0, 0, 1),
      ],
    }),
  )(
    'is followed by exactly one agent with control, within %o',
    (worldBounds) => {
      const result = explore(worldFactory(worldBounds));
      console.info(`${JSON.stringify(worldBounds)}: ${result.states} states, ${(result.ms / 1_000).toFixed(1)} s`);
      expect(result.found).toBeUndefined();
      expect(result.outcome).toBe('complete');
      expect(result.states).toBeGreaterThan(50);
    },
    3_600_000,
  );

  test.each<[string, Partial<SuccessionMachines>, SuccessionBounds, string]>([
    [
      'takes over before the older agent has released control',
      {
        successor: successorMachine.provide({ delays: { grantLimit: 10_000 } }),
        takesOverOnSilence: true,
        locksNothing: true,
      },
      bounds(1, 0, 0, 0),
      'never two agents with control',
    ],
    [
      'releases control before the record is written',
      { ignoresRecord: true, writesNothing: true },
      bounds(1, 0, 0, 1),
      'no recorded state is lost',
    ],
    [
      'waits without a limit for a newer agent that is ready',
      { predecessor: predecessorMachine.provide({ delays: { takeoverLimit: 3_600_000 } }) },
      bounds(1, 1, 0, 0),
      'never 2 s without an agent with control',
    ],
    [
      'resumes control without terminating the newer agent',
      { sparesLateSuccessor: true, locksNothing: true },
      bounds(1, 1, 0, 0),
      'never two agents with control',
    ],
    [
      'follows a killed agent, and starts a new Envoy beside a newer agent that was faster',
      { claimsOtherIds: true },
      bounds(1, 1, 0, 0),
      'the agent with control has the base IDs',
    ],
    [
      'is replaced, and its due orders are not read',
      { ignoresPendingOrders: true },
      bounds(1, 0, 0, 0, 1),
      goalIsReached,
    ],
    [
      'has exited or handles no signals yet, so an order is dropped',
      { dropsUnhandledOrders: true },
      bounds(1, 0, 0, 0, 1),
      goalIsReached,
    ],
    [
      'is replaced or killed, and closes its ports with pending requests',
      { keepsNoPorts: true },
      bounds(1, 0, 0, 0, 0, 1),
      goalIsReached,
    ],
  ])('violates an invariant if it %s', (_, machines, worldBounds, invariant) => {
    expectCaught(worldFactory(worldBounds, machines), invariant);
  });
});
