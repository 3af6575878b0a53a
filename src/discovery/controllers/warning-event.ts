/** Kubernetes Events about objects that this control plane rejects or cannot write, shown by `kubectl describe`. */
import { createHash } from 'node:crypto';
import type { KubernetesObject } from '../kubernetes/api-server.ts';

/** Of an object name. */
const maxNameLength = 253;
/** Of the API server. */
const maxMessageLength = 1024;

export interface WarningSubject {
  readonly kind: string;
  readonly message: string;
  /** A single word. */
  readonly reason: string;
  readonly identity: string;
  /** ISO 8601. */
  readonly at: string;
}

/** The name is a digest of object and message, so that replicas and restarts do not repeat an Event. */
export function warningEventOf(
  { apiVersion, metadata }: KubernetesObject,
  { kind, message, reason, identity, at }: WarningSubject,
) {
  const { namespace, name, uid, resourceVersion } = metadata;
  const about = createHash('sha256').update(`${uid} ${message}`).digest('hex').slice(0, 16);
  const component = 'chartpilot';
  return {
    ...{ apiVersion: 'v1', kind: 'Event' },
    metadata: { namespace, name: `${name.slice(0, maxNameLength - about.length - 1)}.${about}` },
    involvedObject: { apiVersion, kind, namespace, name, uid, resourceVersion },
    type: 'Warning',
    reason,
    message: message.slice(0, maxMessageLength),
    source: { component },
    ...{ reportingComponent: component, reportingInstance: identity },
    ...{ firstTimestamp: at, lastTimestamp: at, count: 1 },
  };
}
