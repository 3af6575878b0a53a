import { createHash } from 'node:crypto';
import type { KubernetesObject } from '../kubernetes/api-server.ts';

/** Maximum length of object names in Kubernetes. */
const maxNameLength = 253;
/** Maximum length that the API server accepts. */
const maxMessageLength = 1024;

export interface WarningSubject {
  readonly kind: string;
  readonly message: string;
  /** A single word. */
  readonly reason: string;
  readonly identity: string;
  /** ISO 8601. */
  readonly occurredAt: string;
}

/** Builds an Event whose name is a digest of object and message, so that replicas and restarts do not repeat it. */
export function warningEventOf(
  { apiVersion, metadata }: KubernetesObject,
  { kind, message, reason, identity, occurredAt }: WarningSubject,
) {
  const { namespace, name, uid, resourceVersion } = metadata;
  const messageHash = createHash('sha256').update(`${uid} ${message}`).digest('hex').slice(0, 16);
  const component = 'chartpilot';
  return {
    ...{ apiVersion: 'v1', kind: 'Event' },
    metadata: { namespace, name: `${name.slice(0, maxNameLength - messageHash.length - 1)}.${messageHash}` },
    involvedObject: { apiVersion, kind, namespace, name, uid, resourceVersion },
    type: 'Warning',
    reason,
    message: message.slice(0, maxMessageLength),
    source: { component },
    ...{ reportingComponent: component, reportingInstance: identity },
    ...{ firstTimestamp: occurredAt, lastTimestamp: occurredAt, count: 1 },
  };
}
