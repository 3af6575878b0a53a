/**
 * Every state of a rotation of the root with two workloads' secrets, within the bounds in identity-world.ts: no workload is disconnected or gets a
 * certificate before its root is trusted, none sends requests without a backoff, and the rotation completes. Deliberate errors are detected.
 */
import { describe, expect, test } from 'vitest';
import { raise, sendTo } from 'xstate';
import { peer } from '../../machines/agent/peers.ts';
import { identityName } from '../../machines/agent/secrets/held-secrets.ts';
import { secretMachine } from '../../machines/agent/secrets/secret.machine.ts';
import { secretsMachine } from '../../machines/agent/secrets/secrets.machine.ts';
import { authorityMachine } from '../../machines/discovery/ca/authority.machine.ts';
import { type Exploration, explore, goalIsReached } from '../../src/debugger/explore/explorer.ts';
import { type LedgerLine, WorkloadLedger } from '../../src/discovery/ca/ledger/workload-ledger.ts';
import { sized } from '../harness/size-of-run.ts';
import { type IdentityBounds, type IdentityMachines, IdentityWorld } from '../simulation/identity-world.ts';
import { expectCaught, ReplayedWorld } from './given-worlds.ts';

const bounds = (rotations: number, faults: number, workloads = 2): IdentityBounds => ({ workloads, rotations, faults });
const worldFactory =
  (worldBounds: IdentityBounds, machines: Partial<IdentityMachines> = {}) =>
  () =>
    new IdentityWorld(worldBounds, machines);

/** The former behaviour, in which a workload with an issued certificate may exit before the certificate arrives. */
class CountsSigned extends WorkloadLedger {
  override apply(line: LedgerLine): void {
    super.apply(line);
    if ('issued' in line) super.apply({ arrived: line.issued });
  }
}

function expectComplete(result: Exploration, minStates: number): void {
  expect(result.found).toBeUndefined();
  expect(result.outcome).toBe('complete');
  expect(result.states).toBeGreaterThan(minStates);
}

describe('a root rotation', () => {
  test.each(
    sized<readonly IdentityBounds[]>({
      quick: [bounds(1, 0)],
      // Exploring a fault together with a second workload takes twenty times as long as both separately; random schedules have faults with three
      // workloads.
      short: [bounds(1, 0), bounds(1, 1, 1)],
      full: [bounds(1, 1), bounds(2, 0), bounds(1, 2), bounds(1, 0, 3)],
    }),
  )(
    'breaks no invariant and completes, within %o',
    (worldBounds) => {
      const result = explore(worldFactory(worldBounds));
      console.info(
        `${JSON.stringify(worldBounds)}: ${result.states} states, ${result.edges} edges, ${(result.ms / 1_000).toFixed(1)} s`,
      );
      expectComplete(result, 100);
    },
    3_600_000,
  );

  test('has the same states when restored in place as when replayed', () => {
    const worldBounds = bounds(1, 0, 1);
    const [directResult, replayedResult] = [
      explore(worldFactory(worldBounds)),
      explore(() => new ReplayedWorld(worldFactory(worldBounds))),
    ];
    expect([replayedResult.states, replayedResult.edges]).toEqual([directResult.states, directResult.edges]);
  });

  test.each<[string, Partial<IdentityMachines>, IdentityBounds, string]>([
    [
      'drops the root before all workloads have renewed',
      {
        authority: authorityMachine.provide({
          actions: { awaitLeafCertificates: sendTo('ledger', { type: 'leaf-certificates.await', authority: '' }) },
          guards: { isOtherAuthority: () => true },
        }),
      },
      bounds(1, 0),
      'no workload is disconnected',
    ],
    [
      'counts a certificate as renewed when it is signed',
      { ledger: CountsSigned },
      bounds(1, 0),
      'no workload is disconnected',
    ],
    [
      'reports a certificate as served before Envoy acknowledges it',
      {
        secrets: secretsMachine.provide({
          actions: {
            reportCertificateAcknowledged: sendTo(peer('xds-proxy'), ({ context: { held } }) => ({
              type: 'certificate.served' as const,
              serialNumber: held.find(({ name }) => name === identityName)?.serialNumber ?? '',
            })),
          },
        }),
      },
      bounds(1, 0),
      'no workload is disconnected',
    ],
    [
      'issues a certificate before its root is trusted',
      { secrets: secretsMachine.provide({ guards: { awaitsRoots: () => false, canDistribute: () => true } }) },
      bounds(1, 0),
      'no workload has a certificate before its root is trusted',
    ],
    [
      'repeats a request without a delay',
      { secret: secretMachine.provide({ delays: { pause: 0 } }) },
      bounds(0, 1, 1),
      'a failed request is repeated after a delay',
    ],
    [
      'signs before all workloads trust the next root',
      {
        authority: authorityMachine.provide({
          actions: { awaitBundle: raise({ type: 'roots.trusted', roots: [] }) },
          guards: { isCurrentBundle: () => true, isSignerBundle: () => true },
        }),
      },
      bounds(1, 0),
      'no workload is disconnected',
    ],
    [
      'never renews a certificate',
      {
        secret: secretMachine.provide({
          guards: { isRenewalDue: () => false, isTainted: () => false, isTaintedBy: () => false },
        }),
      },
      bounds(1, 1, 1),
      goalIsReached,
    ],
  ])(
    'violates an invariant if the authority %s',
    (_, machines, worldBounds, invariant) => {
      expectCaught(worldFactory(worldBounds, machines), invariant);
    },
    300_000,
  );
});
