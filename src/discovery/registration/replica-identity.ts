import { hostname } from 'node:os';

/** Of this process, and of no other one: a container that is started again in its pod has another, for it knows nothing of its connections. */
const identity = `${process.env.POD_NAME || hostname()}_${crypto.randomUUID().slice(0, 8)}`;

/** Who writes: the pod, and a part by chance. */
export function replicaIdentity(): string {
  return identity;
}
