import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import { buildHeldLease, microTime, releasedLease, sightingOf } from './lease.ts';

const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5, 67);
const options = { identity: 'one_1', leaseMs: 15_000, nowMs };
const now = '2026-01-02T03:04:05.067000Z';

const leaseOf = (spec: object, metadata = {}): KubernetesObject => ({
  ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', spec },
  metadata: { name: 'duty', resourceVersion: '7', ...metadata },
});

it('microTime has six decimal places', () => {
  expect(microTime(nowMs)).toBe(now);
});

describe('a Lease written by its holder', () => {
  it('is complete if it is new', () => {
    expect(buildHeldLease(undefined, options)).toEqual({
      spec: {
        ...{ holderIdentity: 'one_1', leaseDurationSeconds: 15, acquireTime: now, renewTime: now },
        leaseTransitions: 0,
      },
    });
  });

  it('keeps unknown fields, and adds the version', () => {
    const previous = leaseOf({ strategy: 'OldestEmulationVersion' }, { labels: { a: 'b' }, managedFields: [{}] });
    expect(buildHeldLease(previous, options)).toMatchObject({
      metadata: { name: 'duty', resourceVersion: '7', labels: { a: 'b' } },
      spec: { strategy: 'OldestEmulationVersion' },
    });
    expect(buildHeldLease(previous, options)).not.toHaveProperty('metadata.managedFields');
  });

  it.each([
    ['a Lease of the same holder', { holderIdentity: 'one_1', acquireTime: 'then', leaseTransitions: 3 }, 'then', 3],
    ['a Lease of another holder', { holderIdentity: 'two_2', acquireTime: 'then', leaseTransitions: 3 }, now, 4],
    ['a released Lease', { holderIdentity: '', acquireTime: 'then', leaseTransitions: 3 }, now, 4],
    ['a Lease without a transition count', { leaseTransitions: 'many' }, now, 1],
    ['a Lease with the maximum transition count', { leaseTransitions: 2_147_483_647 }, now, 2_147_483_647],
  ])(
    'keeps acquireTime only if it replaces a Lease of the same holder, and otherwise counts a transition: %s',
    (_, spec, acquireTime, leaseTransitions) => {
      expect(buildHeldLease(leaseOf(spec), options).spec).toMatchObject({
        acquireTime,
        renewTime: now,
        leaseTransitions,
      });
    },
  );

  it('has no holder after release', () => {
    const previous = leaseOf({ holderIdentity: 'one_1', leaseDurationSeconds: 15, leaseTransitions: 3 });
    expect(releasedLease(previous, nowMs).spec).toMatchObject({
      ...{ holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 3 },
    });
  });
});

describe('an observed Lease', () => {
  it.each([
    [{ holderIdentity: 'one_1', leaseDurationSeconds: 15 }, 'this one', 15_000],
    [{ holderIdentity: 'one_2', leaseDurationSeconds: 30 }, 'another', 30_000],
    [{ holderIdentity: '', leaseDurationSeconds: 1 }, 'nobody', 1_000],
    [{}, 'nobody', 15_000],
    [{ holderIdentity: 'two', leaseDurationSeconds: -1 }, 'another', 15_000],
    [{ holderIdentity: 'two', leaseDurationSeconds: 2_147_483_647 }, 'another', 3_600_000],
    [{ holderIdentity: 5 }, 'nobody', 15_000],
  ])('is parsed from the fields %j', (spec, holderIdentity, leaseMs) => {
    expect(sightingOf(leaseOf(spec), 'one_1', 15_000)).toMatchObject({ holder: holderIdentity, leaseMs, version: '7' });
  });

  it('has a new record only after its holder writes it', () => {
    const recordOf = (spec: object, metadata = {}): string => sightingOf(leaseOf(spec, metadata), 'x', 15_000).record;
    const spec = { holderIdentity: 'two', renewTime: now };
    expect(recordOf(spec, { annotations: { a: 'b' }, resourceVersion: '9' })).toBe(recordOf(spec));
    expect(recordOf({ ...spec, renewTime: 'later' })).not.toBe(recordOf(spec));
  });
});
