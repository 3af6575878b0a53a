/** What is odd about what was last pushed (spec/discovery.md §9.1 `push_status`, §9.2). Looked up when somebody asks. */

import type { ConfigSet } from '../../model/config/config-set.ts';
import { standInText } from '../../model/config/refused.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Service } from '../../model/services/service.ts';
import type { MeshState } from '../push/mesh-state.ts';
import type { FindDiagnostics, ServedProxy, StatusSources } from './find-diagnostics.ts';
import { findRejectedServers, findUnservedCredentials } from './gateway-diagnostics.ts';
import { patchReports } from './patch-status.ts';
import { findUnheldPolicies } from './unheld-policies.ts';

/** By the name of the metric that counts it and by what it is about. */
export type PushStatus = Readonly<Record<string, Readonly<Record<string, Diagnostic>>>>;

interface Diagnostic {
  /** The proxy that it is about; absent: not only one. */
  readonly proxy?: string;
  readonly message: string;
}

/** Kinds of what stands in force for objects that are refused. */
const closedKinds = ['AuthorizationPolicy', 'PeerAuthentication', 'RequestAuthentication', 'DestinationRule'] as const;

const finders: Readonly<Record<string, FindDiagnostics>> = {
  pilot_eds_no_instances: ({ context }, note) => {
    for (const service of withoutEndpoints(context, ['ClientSideLB'])) noteService(service, 'has no endpoints', note);
  },
  pilot_dns_cluster_without_endpoints: ({ context }, note) => {
    for (const service of withoutEndpoints(context, ['DNSLB', 'DNSRoundRobinLB'])) {
      noteService(service, 'has no endpoints', note);
    }
  },
  pilot_endpoint_not_ready: ({ context }, note) => {
    for (const { hostname, namespace } of context.services) {
      for (const { address, port, health } of context.endpointsOf(hostname, namespace)) {
        if (health === 'unhealthy') note(`${address}:${port}`, `endpoint of ${namespace}/${hostname} is not ready`);
      }
    }
  },
  pilot_no_ip: ({ proxies }, note) => {
    for (const { proxy } of proxies) {
      if (proxy.ipAddresses.length === 0) note(proxy.id, 'the proxy has no IP address', proxy.id);
    }
  },
  pilot_gateway_servers_rejected: findRejectedServers,
  pilot_sds_certificate_errors_total: findUnservedCredentials,
  pilot_policies_without_workload: findUnheldPolicies,
  pilot_refused_restrictions: ({ configs, context }, note) => {
    for (const kind of closedKinds) {
      for (const config of configs[kind]) {
        if (config.standsFor !== undefined)
          note(config.standsFor.object, standInText(config, context.mesh.rootNamespace));
      }
    }
  },
  pilot_unreadable_config_files: ({ unreadable }, note) => {
    for (const [file, reason] of unreadable) note(file, `has objects that nobody can tell: ${reason}`);
  },
  pilot_vservice_dup_domain: findSharedDomains,
  pilot_destrule_subsets: findSharedSubsets,
  pilot_duplicate_envoy_clusters: ({ context }, note) => {
    const origins = new Map<string, string>();
    for (const { hostname, namespace, ports, origin } of context.services) {
      for (const { number } of ports) {
        const cluster = `outbound|${number}||${hostname}`;
        const own = `${origin.kind} ${origin.namespace}/${origin.name}`;
        const first = origins.get(`${namespace} ${cluster}`);
        if (first === undefined) origins.set(`${namespace} ${cluster}`, own);
        else if (first !== own) note(cluster, `of ${first} and ${own}: the older one holds`);
      }
    }
  },
  pilot_conflict_outbound_listener_tcp_over_current_tcp: ({ context }, note) => {
    const first = new Map<string, Service>();
    for (const service of context.services) {
      if (service.defaultAddress !== '0.0.0.0') continue;
      for (const { number, protocol } of service.ports) {
        // A service without an address shares its port with all others without one; HTTP can tell them by their hosts.
        if (protocol !== 'TCP') continue;
        const key = `0.0.0.0:${number}`;
        const older = first.get(key);
        if (older === undefined) first.set(key, service);
        else if (older.hostname !== service.hostname) {
          note(key, `TCP of ${service.hostname} cannot be told from TCP of ${older.hostname}, which is older`);
        }
      }
    }
  },
  pilot_conflict_inbound_listener: ({ proxies }, note) => {
    for (const { proxy, context } of proxies) {
      const first = new Map<number, string>();
      for (const { targetPort, port, service } of context.serviceTargetsOf(proxy)) {
        const own = `${port.protocol} of ${service.hostname}`;
        const older = first.get(targetPort);
        if (older === undefined) first.set(targetPort, own);
        else if (older.split(' ')[0] !== port.protocol) {
          note(`${proxy.id}:${targetPort}`, `port ${targetPort} is ${older} and ${own}`, proxy.id);
        }
      }
    }
  },
};

/** Metrics that the page shows the diagnostics of, and whose values come from elsewhere. */
const labelledMetrics: Readonly<Record<string, FindDiagnostics>> = {
  pilot_envoy_filter_status: ({ configs }, note) => {
    for (const { name, field, problem } of patchReports(configs.EnvoyFilter)) {
      if (problem !== undefined) note(`${name} ${field}`, problem);
    }
  },
};

/** Names of the metrics that this page can show: their gauges are set even when nothing is odd. */
export const pushStatusMetrics: readonly string[] = Object.keys(finders);

/** What is odd now; nothing before there is a context. */
export function statusOf(
  { context, configs, unreadable }: Pick<MeshState, 'context' | 'configs' | 'unreadable'>,
  proxies: Iterable<ServedProxy>,
): PushStatus {
  return context === undefined ? {} : pushStatus({ context, configs: configs.set, proxies, unreadable });
}

function pushStatus(sources: StatusSources): PushStatus {
  return Object.fromEntries(
    Object.entries({ ...finders, ...labelledMetrics }).map(([metric, find]) => {
      const found = new Map<string, Diagnostic>();
      find(sources, (key, message, proxy) => {
        if (!found.has(key)) found.set(key, { ...(proxy !== undefined && { proxy }), message });
      });
      return [metric, Object.fromEntries(found)];
    }),
  );
}

function* withoutEndpoints(context: PushContext, resolutions: readonly string[]): Iterable<Service> {
  for (const service of context.services) {
    if (!resolutions.includes(service.resolution)) continue;
    if (context.endpointsOf(service.hostname, service.namespace).length === 0) yield service;
  }
}

function noteService({ hostname, namespace }: Service, what: string, note: Parameters<FindDiagnostics>[1]): void {
  note(`${hostname}.${namespace}`, `${namespace}/${hostname} ${what}`);
}

/** Two virtual services of the mesh for one host, where a client sees both: one of them has no effect there. */
function findSharedDomains({ context, configs }: StatusSources, note: Parameters<FindDiagnostics>[1]): void {
  const byHost = new Map<string, ConfigSet['VirtualService'][number][]>();
  for (const config of configs.VirtualService) {
    const { hosts, gateways = ['mesh'] } = config.spec;
    if (!gateways.includes('mesh')) continue;
    for (const host of hosts) {
      const qualified = context.hostNames.qualified(host, config.namespace);
      byHost.set(qualified, [...(byHost.get(qualified) ?? []), config]);
    }
  }
  for (const [host, [first, ...others]] of byHost) {
    if (first === undefined || others.length === 0) continue;
    const seen = context.virtualServicesFor('mesh', first.namespace);
    const isSeen = ({ name, namespace }: typeof first): boolean =>
      seen.some(({ config }) => config.name === name && config.namespace === namespace);
    for (const other of others.filter(isSeen)) {
      note(host, `${first.namespace}/${first.name} and ${other.namespace}/${other.name}: the older one holds`);
    }
  }
}

function findSharedSubsets({ context, configs }: StatusSources, note: Parameters<FindDiagnostics>[1]): void {
  const first = new Map<string, string>();
  for (const { namespace, name, spec } of configs.DestinationRule) {
    if (spec.workloadSelector !== undefined) continue;
    const host = context.hostNames.qualified(spec.host, namespace);
    for (const subset of spec.subsets ?? []) {
      const key = `${namespace} ${host} ${subset.name}`;
      const older = first.get(key);
      if (older === undefined) first.set(key, name);
      else
        note(host, `subset ${subset.name} is in ${namespace}/${older} and ${namespace}/${name}: the older one holds`);
    }
  }
}
