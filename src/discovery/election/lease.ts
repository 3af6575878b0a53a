/** Leases are used as in client-go. */
import type { LeaseSighting } from '../../../machines/discovery/election/leader.machine.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';

type Fields = Readonly<Record<string, unknown>>;
type SeenLease = Omit<Extract<LeaseSighting, { outcome: 'seen' }>, 'draw'>;

/** Longer durations are reduced: they would prevent a new election for too long, and timers have a limit. */
const maxLeaseMs = 3_600_000;

/** Maximum of the API's int32. A Lease with a greater value could no longer be acquired. */
const maxTransitions = 2 ** 31 - 1;

/** A MicroTime has exactly six decimals. With three, as in `toISOString`, each write is rejected (kubernetes/kubernetes#89156). */
export function microTime(unixMs: number): string {
  return `${new Date(unixMs).toISOString().slice(0, -1)}000Z`;
}

/** @param defaultLeaseMs for a Lease without a duration */
export function sightingOf(lease: KubernetesObject, identity: string, defaultLeaseMs: number): SeenLease {
  const spec = specOf(lease);
  const { holderIdentity, leaseDurationSeconds: seconds, acquireTime, renewTime, leaseTransitions } = spec;
  const holderName = typeof holderIdentity === 'string' ? holderIdentity : '';
  const leaseMs = typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : defaultLeaseMs;
  return {
    outcome: 'seen',
    version: lease.metadata.resourceVersion ?? '',
    record: JSON.stringify([holderName, seconds, acquireTime, renewTime, leaseTransitions]),
    holder: holderName === '' ? 'nobody' : holderName === identity ? 'this one' : 'another',
    identity: holderName,
    leaseMs: Math.min(leaseMs, maxLeaseMs),
  };
}

export interface LeaseHolder {
  readonly identity: string;
  readonly leaseMs: number;
  /** Unix time, only informative for operators. */
  readonly nowMs: number;
  /** Annotations to set. Others are kept. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/**
 * If the holder is unchanged, the acquire time is kept.
 *
 * @param previous as last read; absent for a new Lease
 */
export function buildHeldLease(
  previous: KubernetesObject | undefined,
  { identity, leaseMs, nowMs, annotations }: LeaseHolder,
): Fields {
  const spec = previous === undefined ? {} : specOf(previous);
  const isHolder = spec.holderIdentity === identity;
  const transitions = typeof spec.leaseTransitions === 'number' ? spec.leaseTransitions : 0;
  const leaseSpec = {
    ...spec,
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(leaseMs / 1_000),
    acquireTime: isHolder && spec.acquireTime !== undefined ? spec.acquireTime : microTime(nowMs),
    renewTime: microTime(nowMs),
    leaseTransitions: isHolder || previous === undefined ? transitions : Math.min(transitions + 1, maxTransitions),
  };
  return updatedLease(previous && withAnnotations(previous, annotations), leaseSpec);
}

/** Returns a Lease that other replicas can acquire without waiting for its expiry. */
export function releasedLease(previous: KubernetesObject, nowMs: number): Fields {
  const time = microTime(nowMs);
  return updatedLease(previous, {
    ...specOf(previous),
    ...{ holderIdentity: '', leaseDurationSeconds: 1, acquireTime: time, renewTime: time },
  });
}

function withAnnotations(
  lease: KubernetesObject,
  annotations: Readonly<Record<string, string>> | undefined,
): KubernetesObject {
  if (annotations === undefined) return lease;
  return { ...lease, metadata: { ...lease.metadata, annotations: { ...lease.metadata.annotations, ...annotations } } };
}

function updatedLease(previous: KubernetesObject | undefined, spec: Fields): Fields {
  if (previous === undefined) return { spec };
  const { managedFields: _, ...metadata } = previous.metadata;
  return { ...previous, metadata, spec };
}

function specOf({ spec }: KubernetesObject): Fields {
  return isObject(spec) ? spec : {};
}
