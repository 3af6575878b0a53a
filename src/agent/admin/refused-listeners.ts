/**
 * Listeners that an Envoy was sent and does not have, because it refused them. `/ready` says LIVE all the same: Envoy counts
 * its first configuration as received, refused or not (measured with 1.40: `error_state` without `active_state`).
 */
import type { RefusedListener } from '../../../machines/agent/status-protocol.ts';
import type { AdminClient } from './admin-client.ts';

/** What is asked for: a few bytes a listener, without the configurations themselves. */
const fields = ['name', 'error_state.details', 'error_state.last_update_attempt', 'active_state.version_info'];
const path = `/config_dump?resource=dynamic_listeners&mask=${[...fields, 'active_state.last_updated', 'warming_state.last_updated'].join(',')}`;
const limitMs = 2_000;
const longestWhy = 300;
/** Events hold them: of a gateway with thousands, these. Sorted, so that the same ones are seen each time. */
const mostNames = 1_000;
const mostWhys = 100;

/** @returns at most a thousand, by name; undefined when Envoy does not say; never rejects */
export async function askRefusedListeners(admin: Pick<AdminClient, 'get'>): Promise<RefusedListener[] | undefined> {
  try {
    const { status, body } = await admin.get(path, limitMs);
    return status === 200 ? refusedAmong(JSON.parse(body)) : undefined;
  } catch {
    return undefined;
  }
}

/** Nothing is taken for granted of what answers at the port. */
function refusedAmong(dump: unknown): RefusedListener[] | undefined {
  const configs = fieldOf(dump, 'configs');
  // Proto JSON leaves out an empty list.
  if (configs === undefined) return typeof dump === 'object' && dump !== null ? [] : undefined;
  if (!Array.isArray(configs)) return undefined;
  const refused = configs.flatMap((listener: unknown) => {
    const name = fieldOf(listener, 'name');
    const error = fieldOf(listener, 'error_state');
    if (typeof name !== 'string' || name === '' || typeof error !== 'object' || error === null) return [];
    const serves = fieldOf(listener, 'active_state') !== undefined || fieldOf(listener, 'warming_state') !== undefined;
    return serves ? [] : [{ name, why: String(fieldOf(error, 'details') ?? '').slice(0, longestWhy) }];
  });
  return refused
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .slice(0, mostNames)
    .map(({ name, why }, i) => ({ name, why: i < mostWhys ? why : '' }));
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
