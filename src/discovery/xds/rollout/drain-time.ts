/** Determines how long a node's Envoy drains connections of a replaced listener. */
import { durationMsOf } from '../../../model/fields/duration.ts';
import type { NodeIdentity } from '../resource-source.ts';
import type { RemovalTimes } from './draining-listeners.ts';

/** Agents apply the same maximum (src/model/mesh/mesh-config-rules.ts). It also limits how long a client can keep clusters. */
const maxDrainMs = 3_600_000;

/** @param defaults for a node that does not report its drain time */
export function removalTimesOf(node: NodeIdentity | undefined, defaults: RemovalTimes): RemovalTimes {
  const drainMs = drainMsOf(node?.metadata.PROXY_CONFIG);
  return drainMs === undefined ? defaults : { ...defaults, drainMs };
}

/** Reads `drainDuration` of a ProxyConfig that an agent sent, at most {@link maxDrainMs}. */
function drainMsOf(config: unknown): number | undefined {
  const { drainDuration } = (typeof config === 'object' && config !== null ? config : {}) as {
    drainDuration?: unknown;
  };
  const ms = typeof drainDuration === 'string' ? durationMsOf(drainDuration) : undefined;
  return ms !== undefined && ms > 0 ? Math.min(ms, maxDrainMs) : undefined;
}
