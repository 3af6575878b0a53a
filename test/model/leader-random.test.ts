/** Candidates for one duty under random faults (test/simulation/leader-random.ts); deliberate errors are detected. */
import { describe, expect, it } from 'vitest';
import type { ApiRequest, KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';
import { randomElection } from '../simulation/leader-random.ts';
import type { ReplicaOptions } from '../simulation/leader-world.ts';

const schedules = sized({ short: 20, full: 20_000 });
const firstSeed = Number(process.env.LEADER_SEED ?? 1);

it(`leader election never has two leaders, and eventually has one, in ${schedules} random schedules`, async () => {
  let terms = 0;
  for (let seed = firstSeed; seed < firstSeed + schedules; seed++) {
    const election = await randomElection(seed);
    expect(election.violations, `LEADER_SEED=${seed}\n${election.steps.join('\n')}`).toEqual([]);
    terms += election.terms;
  }
  console.info(`${schedules} schedules, ${terms} terms`);
  expect(terms).toBeGreaterThan(2 * schedules);
}, 36_000_000);

type Port = NonNullable<ReplicaOptions['port']>;

const specOf = (object: unknown) => (object as { spec?: Record<string, unknown> }).spec;

/** Other candidates read a Lease duration of 5 s. */
const truncatingPort: Port = (forward) => async (request, signal) => {
  const response = await forward(request, signal);
  return { ...response, spec: { ...specOf(response), leaseDurationSeconds: 5 } } as KubernetesObject;
};

/** Writes overwrite any version. */
const createUnversionedPort = (): Port => {
  let last = '';
  return (forward) => async (request, signal) => {
    const body = request.body as { metadata: object } | undefined;
    const changedRequest: ApiRequest =
      body === undefined || request.method !== 'PUT'
        ? request
        : { ...request, body: { ...body, metadata: { ...body.metadata, resourceVersion: last } } };
    const response = await forward(changedRequest, signal);
    last = response.metadata.resourceVersion ?? '';
    return response;
  };
};

describe.skipIf(isQuick)('random schedules of leader election', () => {
  it.each<readonly [string, () => Partial<ReplicaOptions>]>([
    ['candidates wait for less than a term', () => ({ port: truncatingPort })],
    ['a claim names a version that another replica has read', () => ({ port: sharedPort })],
    ['the wall clock is not read, and a machine is suspended', () => ({ clocks: onlyMonotonic })],
  ])(
    'detect that %s',
    async (_, brokenOptions) => {
      for (let seed = 1; seed <= 400; seed++) {
        const { violations } = await randomElection(seed, brokenOptions());
        if (violations.some((text) => text.includes('lead at'))) return;
      }
      expect.unreachable('nothing was found in 400 schedules');
    },
    300_000,
  );
});

const sharedPort = createUnversionedPort();
const onlyMonotonic: NonNullable<ReplicaOptions['clocks']> = ({ monotonicMs }) => ({
  monotonicMs,
  wallMs: monotonicMs,
});
