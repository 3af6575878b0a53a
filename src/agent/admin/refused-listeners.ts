/**
 * Finds rejected listeners without an active or warming version. `/ready` is LIVE nevertheless (measured with 1.40: `error_state` without
 * `active_state`).
 */
import type { RefusedListener } from '../../../machines/agent/status-protocol.ts';
import type { AdminClient } from './admin-client.ts';

/** Limits the response to a few bytes per listener. */
const fields = ['name', 'error_state.details', 'error_state.last_update_attempt', 'active_state.version_info'];
const path = `/config_dump?resource=dynamic_listeners&mask=${[...fields, 'active_state.last_updated', 'warming_state.last_updated'].join(',')}`;
const limitMs = 2_000;
const maxReasonLength = 300;
/** Limits of the event for gateways with thousands of listeners. Names are sorted first, so that the selection is stable. */
const maxNames = 1_000;
const maxReasons = 100;

/** Never rejects; returns `undefined` without a valid response. */
export async function getRejectedListeners(admin: Pick<AdminClient, 'get'>): Promise<RefusedListener[] | undefined> {
  try {
    const { status, body } = await admin.get(path, limitMs);
    return status === 200 ? rejectedListenersIn(JSON.parse(body)) : undefined;
  } catch {
    return undefined;
  }
}

function rejectedListenersIn(configDump: unknown): RefusedListener[] | undefined {
  const configs = fieldOf(configDump, 'configs');
  // Proto JSON omits an empty list.
  if (configs === undefined) return typeof configDump === 'object' && configDump !== null ? [] : undefined;
  if (!Array.isArray(configs)) return undefined;
  const rejectedListeners = configs.flatMap((listener: unknown) => {
    const name = fieldOf(listener, 'name');
    const error = fieldOf(listener, 'error_state');
    if (typeof name !== 'string' || name === '' || typeof error !== 'object' || error === null) return [];
    const isServing =
      fieldOf(listener, 'active_state') !== undefined || fieldOf(listener, 'warming_state') !== undefined;
    return isServing ? [] : [{ name, reason: String(fieldOf(error, 'details') ?? '').slice(0, maxReasonLength) }];
  });
  return rejectedListeners
    .sort((listener, other) => (listener.name < other.name ? -1 : 1))
    .slice(0, maxNames)
    .map(({ name, reason }, i) => ({ name, reason: i < maxReasons ? reason : '' }));
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
