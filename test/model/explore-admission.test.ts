/**
 * Every state of admission by load within bounds (test/simulation/admission-exploration.ts): clients arrive, respond, stall and close their
 * connections, and the load changes. No client waits forever, and nothing is measured while none waits. Deliberately broken rules are detected.
 */
import { describe, expect, test } from 'vitest';
import { assign } from 'xstate';
import { streamAdmissionMachine } from '../../machines/discovery/xds/stream-admission.machine.ts';
import { explore, goalIsReached } from '../../src/debugger/explore/explorer.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';
import { type AdmissionBounds, AdmissionExploration } from '../simulation/admission-exploration.ts';
import { expectCaught, expectSameChoices } from './given-worlds.ts';

const worldFactory =
  (...args: ConstructorParameters<typeof AdmissionExploration>) =>
  () =>
    new AdmissionExploration(...args);

test.each(
  sized<readonly AdmissionBounds[]>({
    short: [{ clients: 18, faults: 2 }],
    full: [
      { clients: 18, faults: 5 },
      { clients: 24, faults: 4 },
    ],
  }),
)(
  'admission by load breaks no invariant and blocks no client forever within %o',
  (bounds) => {
    const result = explore(worldFactory(bounds));
    console.info(`${JSON.stringify(bounds)}: ${result.states} states, ${result.edges} edges, ${result.ms} ms`);
    expect(result.found).toBeUndefined();
    expect(result.outcome).toBe('complete');
    expect(result.states).toBeGreaterThan(300);
  },
  3_600_000,
);

test('states with equal keys have the same possible choices', () => {
  expectSameChoices(worldFactory({ clients: 17, faults: 1 }));
});

describe.skipIf(isQuick)('the exploration of admission', () => {
  test.each<[string, Parameters<typeof streamAdmissionMachine.provide>[0], string]>([
    [
      'an overloaded server may have no slot at all',
      { actions: { removeSlots: assign({ slots: 0 }) } },
      'the number of slots is within its bounds',
    ],
    [
      'the slots of a burst stay for the next burst',
      { actions: { resetSlots: () => {} } },
      'the number of slots is the initial one while no client waits',
    ],
    [
      'slots are removed while there is slack',
      { guards: { isOverloaded: () => true }, actions: { removeSlots: assign({ slots: 3 }) } },
      'the number of slots is within its bounds',
    ],
  ])(
    'detects that %s',
    (_, implementations, invariant) => {
      expectCaught(
        worldFactory({ clients: 18, faults: 1 }, streamAdmissionMachine.provide(implementations)),
        invariant,
      );
    },
    3_600_000,
  );

  test('detects that no slot is added if stalled clients keep their slots', () => {
    class Endless extends AdmissionExploration {
      override choices() {
        return super.choices().filter(({ name }) => name !== 'expire');
      }
    }
    const chart = streamAdmissionMachine.provide({ actions: { addSlots: () => {} } });
    expectCaught(() => new Endless({ clients: 17, faults: 16 }, chart), goalIsReached);
  }, 3_600_000);
});
