/** Lists services and their endpoints in the format of the first Pilots. */
import { compareText } from '../../../model/config/config.ts';
import type { MeshState } from '../../push/contexts/mesh-state.ts';
import type { HttpReply } from '../http/http-server.ts';

interface Host {
  readonly ip_address: string;
  readonly port: number;
}

/** Excludes external services. Responds with 503 before the first push context. */
export function registration({ context }: Pick<MeshState, 'context'>): HttpReply {
  if (context === undefined) return { status: 503, body: 'not ready: services are not synced yet\n' };
  const hosts = new Map<string, Host[]>();
  const seenKeys = new Set<string>();
  for (const { hostname, namespace, ports, meshExternal } of context.services) {
    if (meshExternal || seenKeys.has(`${namespace}/${hostname}`)) continue;
    seenKeys.add(`${namespace}/${hostname}`);
    const endpoints = context.endpointsOf(hostname, namespace);
    for (const { name } of ports) {
      const key = name === '' ? hostname : `${hostname}|${name}`;
      const portEndpoints = endpoints.filter(({ servicePortName }) => servicePortName === name);
      const hostList = hosts.get(key) ?? [];
      hosts.set(key, [...hostList, ...portEndpoints.map(({ address, port }) => ({ ip_address: address, port }))]);
    }
  }
  const sortedHosts = [...hosts].sort(([a], [b]) => compareText(a, b));
  const list = sortedHosts.map(([key, serviceHosts]) => ({ 'service-key': key, hosts: serviceHosts }));
  return { status: 200, body: `${JSON.stringify(list, undefined, 2)}\n`, contentType: 'application/json' };
}
