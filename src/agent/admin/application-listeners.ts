/** Readiness check of early Istio releases: whether the serving Envoy accepts connections for the workload's ports. */
import { isObject } from '../../runtime/json-object.ts';
import type { AdminClient } from './admin-client.ts';

export interface ApplicationPorts {
  readonly ports: readonly number[];
  /** Listeners at other addresses are for outbound traffic. */
  readonly addresses: readonly string[];
}

const limitMs = 2_000;
const listenersPath = '/listeners?format=json';
/** The listener of redirected inbound connections (src/networking/traffic/resource-names.ts). */
const inboundPath = '/config_dump?resource=dynamic_listeners&name_regex=%5EvirtualInbound%24';

/** One served port suffices, as in Istio, because a workload may have ports without a service. Never rejects. */
export async function whyNoApplicationPort(
  admin: Pick<AdminClient, 'get'>,
  { ports, addresses }: ApplicationPorts,
): Promise<string | undefined> {
  if (ports.length === 0) return undefined;
  const proxyAddresses = new Set(addresses);
  const applicationPorts = new Set(ports);
  const isServed =
    someItemMatches(await getJson(admin, listenersPath), 'listener_statuses', (listener) =>
      [listener.local_address, ...listOf(listener.additional_local_addresses)].some((address) => {
        const socket = objectField(address, 'socket_address');
        return proxyAddresses.has(String(socket.address)) && applicationPorts.has(Number(socket.port_value));
      }),
    ) ||
    someItemMatches(await getJson(admin, inboundPath), 'configs', (listener) => {
      const { filter_chains: chains } = objectField(objectField(listener, 'active_state'), 'listener');
      return listOf(chains).some((chain) =>
        applicationPorts.has(Number(objectField(chain, 'filter_chain_match').destination_port ?? Number.NaN)),
      );
    });
  return isServed ? undefined : `no inbound listener for any application port (${ports.join(', ')})`;
}

async function getJson(admin: Pick<AdminClient, 'get'>, path: string): Promise<unknown> {
  try {
    const { status, body } = await admin.get(path, limitMs);
    return status === 200 ? JSON.parse(body) : undefined;
  } catch {
    return undefined;
  }
}

/** Validates the response, because another program may use the port. */
function someItemMatches(
  response: unknown,
  field: string,
  matches: (item: Record<string, unknown>) => boolean,
): boolean {
  return isObject(response) && listOf(response[field]).some((item) => isObject(item) && matches(item));
}

function objectField(value: unknown, field: string): Record<string, unknown> {
  const fieldValue = isObject(value) ? value[field] : undefined;
  return isObject(fieldValue) ? fieldValue : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
