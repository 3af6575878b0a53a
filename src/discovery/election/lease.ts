/** What a Lease says, and what one of ours writes in it (coordination.k8s.io/v1, as client-go's electors use it). */
import type { LeaseSighting } from '../../../machines/discovery/election/leader.machine.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';

type Fields = Readonly<Record<string, unknown>>;
type Seen = Omit<Extract<LeaseSighting, { outcome: 'seen' }>, 'draw'>;

/** The longest duration of a Lease that is believed: nobody would lead for so long after the end of that one, and a timer has an end. */
const longestLeaseMs = 3_600_000;

/** The API's type has no greater number (int32): a Lease that says it could be claimed by nobody any more. */
const mostTransitions = 2 ** 31 - 1;

/**
 * As the type MicroTime wants it: six decimals, neither more nor fewer. With three, as `toISOString` gives, each write is refused
 * (kubernetes/kubernetes#89156).
 */
export function microTime(unixMs: number): string {
  return `${new Date(unixMs).toISOString().slice(0, -1)}000Z`;
}

/** @param usualLeaseMs where it does not say how long its holder has it */
export function sightingOf(lease: KubernetesObject, identity: string, usualLeaseMs: number): Seen {
  const spec = specOf(lease);
  const { holderIdentity, leaseDurationSeconds: seconds, acquireTime, renewTime, leaseTransitions } = spec;
  const holder = typeof holderIdentity === 'string' ? holderIdentity : '';
  const leaseMs = typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : usualLeaseMs;
  return {
    outcome: 'seen',
    version: lease.metadata.resourceVersion ?? '',
    record: JSON.stringify([holder, seconds, acquireTime, renewTime, leaseTransitions]),
    holder: holder === '' ? 'nobody' : holder === identity ? 'this one' : 'another',
    identity: holder,
    leaseMs: Math.min(leaseMs, longestLeaseMs),
  };
}

export interface LeaseWord {
  readonly identity: string;
  readonly leaseMs: number;
  /** Unix time. Nobody compares it; it is for people. */
  readonly nowMs: number;
  /** To be set; others stay. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The Lease as its holder writes it; `before`: as it was seen, absent where there was none. Whoever has had it all along goes on having it. */
export function heldLease(
  before: KubernetesObject | undefined,
  { identity, leaseMs, nowMs, annotations }: LeaseWord,
): Fields {
  const spec = before === undefined ? {} : specOf(before);
  const isHolder = spec.holderIdentity === identity;
  const transitions = typeof spec.leaseTransitions === 'number' ? spec.leaseTransitions : 0;
  const held = {
    ...spec,
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(leaseMs / 1_000),
    acquireTime: isHolder && spec.acquireTime !== undefined ? spec.acquireTime : microTime(nowMs),
    renewTime: microTime(nowMs),
    leaseTransitions: isHolder || before === undefined ? transitions : Math.min(transitions + 1, mostTransitions),
  };
  return written(before && withAnnotations(before, annotations), held);
}

/** The Lease as its holder leaves it: nobody need wait. */
export function releasedLease(before: KubernetesObject, nowMs: number): Fields {
  const time = microTime(nowMs);
  return written(before, {
    ...specOf(before),
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

function written(before: KubernetesObject | undefined, spec: Fields): Fields {
  if (before === undefined) return { spec };
  const { managedFields: _, ...metadata } = before.metadata;
  return { ...before, metadata, spec };
}

function specOf({ spec }: KubernetesObject): Fields {
  return isObject(spec) ? spec : {};
}
