/**
 * Whether the Envoy that serves takes connections for the workload's own ports: G1's readiness check (spec/agent.md §6.3, row
 * "application"). In G1 each port had a listener at the proxy's address; today all come to one, with a filter chain for each port.
 */
import { isObject } from '../../runtime/json-object.ts';
import type { AdminClient } from './admin-client.ts';

export interface ApplicationPorts {
  readonly ports: readonly number[];
  /** The addresses of this proxy: a listener elsewhere is for what the workload sends. */
  readonly addresses: readonly string[];
}

const limitMs = 2_000;
const listenersPath = '/listeners?format=json';
/** Where inbound connections come to that were redirected (src/networking/traffic/resource-names.ts). */
const inboundPath = '/config_dump?resource=dynamic_listeners&name_regex=%5EvirtualInbound%24';

/**
 * One port is enough, as in the reference: a workload may have ports that no service has.
 *
 * @returns what to say when none is served; undefined: one is. Never rejects
 */
export async function whyNoApplicationPort(
  admin: Pick<AdminClient, 'get'>,
  { ports, addresses }: ApplicationPorts,
): Promise<string | undefined> {
  if (ports.length === 0) return undefined;
  const own = new Set(addresses);
  const wanted = new Set(ports);
  const isServed =
    anyOf(await ask(admin, listenersPath), 'listener_statuses', (listener) =>
      [listener.local_address, ...listOf(listener.additional_local_addresses)].some((address) => {
        const socket = child(address, 'socket_address');
        return own.has(String(socket.address)) && wanted.has(Number(socket.port_value));
      }),
    ) ||
    anyOf(await ask(admin, inboundPath), 'configs', (listener) => {
      const { filter_chains: chains } = child(child(listener, 'active_state'), 'listener');
      return listOf(chains).some((chain) =>
        wanted.has(Number(child(chain, 'filter_chain_match').destination_port ?? Number.NaN)),
      );
    });
  return isServed ? undefined : `no inbound listener for any application port (${ports.join(', ')})`;
}

/** Undefined where there is no answer that makes sense. */
async function ask(admin: Pick<AdminClient, 'get'>, path: string): Promise<unknown> {
  try {
    const { status, body } = await admin.get(path, limitMs);
    return status === 200 ? JSON.parse(body) : undefined;
  } catch {
    return undefined;
  }
}

/** Nothing is taken for granted of what answers at the port. */
function anyOf(answer: unknown, field: string, holds: (item: Record<string, unknown>) => boolean): boolean {
  return isObject(answer) && listOf(answer[field]).some((item) => isObject(item) && holds(item));
}

function child(value: unknown, field: string): Record<string, unknown> {
  const found = isObject(value) ? value[field] : undefined;
  return isObject(found) ? found : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
