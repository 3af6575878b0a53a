/** Diagnostics are computed object by object, so that the caller can pause. */

import { configKeyText } from '../../../model/config/config.ts';
import { placeholderText } from '../../../model/config/refused.ts';
import { crossNamespaceReach } from '../../../model/isolation/cross-namespace-reach.ts';
import { closedKinds } from '../../../model/kinds/closed.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { isUnspecified } from '../../../runtime/addresses/unspecified-address.ts';
import { runToEnd, type Steps, Turns } from '../../../runtime/turns.ts';
import { selectKeySources } from '../../jwks/key-sources.ts';
import type { MeshState } from '../../push/contexts/mesh-state.ts';
import { addressConflicts, conflictText } from '../../references/routes/address-conflicts.ts';
import { sharedHosts } from '../../references/routes/shared-hosts.ts';
import { maxSliceMs } from '../../xds/turns/slices.ts';
import { findWarningsAcrossObjects } from './config-warnings.ts';
import {
  findEndpointsWithoutAddress,
  findHostNameEndpoints,
  findPlaintextAcrossNetworks,
  findReplacedDefaultEndpoints,
} from './endpoint-diagnostics.ts';
import { findUnsupportedEnvoys, findWithheldWasm } from './envoy-diagnostics.ts';
import type {
  DiagnosticSubject,
  FindDiagnostics,
  FinderInput,
  NoteDiagnostic,
  ServedProxy,
} from './find-diagnostics.ts';
import {
  findBackendTlsProblems,
  findOverlappingServers,
  findRejectedServers,
  findRevocationListProblems,
  findServersWithoutHttp3,
  findUnservedCredentials,
} from './gateway-diagnostics.ts';
import { patchReports } from './patch-status.ts';
import { findSubsetsBeyondLimit } from './subset-diagnostics.ts';
import { findUnappliedPolicies } from './unapplied-policies.ts';

/** Diagnostics by metric name, then subject. */
export type PushStatus = Readonly<Record<string, Readonly<Record<string, Diagnostic>>>>;

export interface Diagnostic extends DiagnosticSubject {
  readonly message: string;
}

const finders: Readonly<Record<string, FindDiagnostics>> = {
  pilot_eds_no_instances: function* ({ context }, reportDiagnostic) {
    yield* reportWithoutEndpoints(context, ['ClientSideLB'], reportDiagnostic);
  },
  pilot_dns_cluster_without_endpoints: function* ({ context }, reportDiagnostic) {
    yield* reportWithoutEndpoints(context, ['DNSLB', 'DNSRoundRobinLB'], reportDiagnostic);
  },
  pilot_endpoint_not_ready: function* ({ context }, reportDiagnostic) {
    for (const { hostname, namespace } of context.services) {
      yield;
      for (const { address, port, health } of context.endpointsOf(hostname, namespace)) {
        if (health === 'unhealthy')
          reportDiagnostic(`${address}:${port}`, `endpoint of ${namespace}/${hostname} is not ready`);
      }
    }
  },
  pilot_host_name_endpoints: findHostNameEndpoints,
  pilot_endpoints_without_address: findEndpointsWithoutAddress,
  pilot_default_endpoints_replaced: findReplacedDefaultEndpoints,
  pilot_plaintext_across_networks: findPlaintextAcrossNetworks,
  pilot_no_ip: function* ({ proxies }, reportDiagnostic) {
    for (const { proxy } of proxies) {
      yield;
      if (proxy.ipAddresses.length === 0)
        reportDiagnostic(proxy.id, 'the proxy has no IP address', { proxy: proxy.id });
    }
  },
  pilot_gateway_servers_rejected: findRejectedServers,
  pilot_gateway_servers_overlap: findOverlappingServers,
  pilot_http3_not_offered: findServersWithoutHttp3,
  pilot_sds_certificate_errors_total: findUnservedCredentials,
  pilot_revocation_list_problems: findRevocationListProblems,
  pilot_backend_tls_policy_problems: findBackendTlsProblems,
  pilot_unsupported_envoys: findUnsupportedEnvoys,
  pilot_wasm_withheld: findWithheldWasm,
  pilot_policies_without_workload: findUnappliedPolicies,
  pilot_jwks_sources_rejected: function* ({ configs }, reportDiagnostic) {
    const { rejectionReasons } = yield* selectKeySources(configs.RequestAuthentication);
    for (const [object, reason] of rejectionReasons) reportDiagnostic(object, reason, { objects: [object] });
  },
  pilot_refused_restrictions: function* ({ configs, context }, reportDiagnostic) {
    for (const kind of closedKinds) {
      for (const config of configs[kind]) {
        yield;
        if (config.standsFor !== undefined)
          reportDiagnostic(config.standsFor.objectName, placeholderText(config, context.mesh.rootNamespace));
      }
    }
  },
  pilot_cross_namespace_objects: function* ({ configs, context: { mesh, features, domain } }, reportDiagnostic) {
    for (const reachWarning of crossNamespaceReach(configs, {
      mesh,
      scopesGateways: features.gatewaysOfOwnNamespace,
      domain,
    })) {
      if (reachWarning === undefined) yield;
      else
        reportDiagnostic(
          `${configKeyText(reachWarning.config)} ${reachWarning.code} ${reachWarning.field}`,
          reachWarning.message,
        );
    }
  },
  pilot_unreadable_config_files: function* ({ unreadable }, reportDiagnostic) {
    for (const [file, reason] of unreadable) {
      yield;
      reportDiagnostic(file, `has rejected objects of unknown kind or name: ${reason}`);
    }
  },
  pilot_config_warnings: findWarningsAcrossObjects,
  pilot_vservice_dup_domain: findSharedDomains,
  pilot_destrule_subsets: findSharedSubsets,
  pilot_destrule_subsets_beyond_limit: findSubsetsBeyondLimit,
  pilot_duplicate_envoy_clusters: function* ({ context }, reportDiagnostic) {
    const origins = new Map<string, string>();
    for (const { hostname, namespace, ports, origin } of context.services) {
      yield;
      for (const { number } of ports) {
        const cluster = `outbound|${number}||${hostname}`;
        const originName = `${origin.kind} ${origin.namespace}/${origin.name}`;
        const firstOrigin = origins.get(`${namespace} ${cluster}`);
        if (firstOrigin === undefined) origins.set(`${namespace} ${cluster}`, originName);
        else if (firstOrigin !== originName)
          reportDiagnostic(cluster, `${firstOrigin} and ${originName} have this cluster: the older one applies`, {
            objects: [configKeyText(origin)],
          });
      }
    }
  },
  pilot_conflict_outbound_listener_tcp_over_current_tcp: function* ({ context }, reportDiagnostic) {
    for (const addressConflict of addressConflicts(context.services)) {
      yield;
      if (addressConflict === undefined || !isUnspecified(addressConflict.address)) continue;
      reportDiagnostic(`${addressConflict.address}:${addressConflict.port}`, conflictText(addressConflict, context), {
        objects: [configKeyText(addressConflict.service.origin)],
      });
    }
  },
  pilot_conflict_inbound_listener: function* ({ proxies }, reportDiagnostic) {
    for (const { proxy, context } of proxies) {
      yield;
      const firstByPort = new Map<number, string>();
      for (const { targetPort, port, service } of context.serviceTargetsOf(proxy)) {
        const portText = `${port.protocol} of ${service.hostname}`;
        const olderTarget = firstByPort.get(targetPort);
        if (olderTarget === undefined) firstByPort.set(targetPort, portText);
        else if (olderTarget.split(' ')[0] !== port.protocol) {
          reportDiagnostic(`${proxy.id}:${targetPort}`, `port ${targetPort} is ${olderTarget} and ${portText}`, {
            proxy: proxy.id,
          });
        }
      }
    }
  },
};

/** Diagnostics that the page shows, but whose metrics have another source. */
const labelledMetrics: Readonly<Record<string, FindDiagnostics>> = {
  pilot_envoy_filter_status: function* ({ configs }, reportDiagnostic) {
    for (const filter of configs.EnvoyFilter) {
      yield;
      for (const { name, field, problem } of patchReports([filter])) {
        if (problem !== undefined) reportDiagnostic(`${name} ${field}`, problem);
      }
    }
  },
};

/** Metrics that are 0 without diagnostics. */
export const pushStatusMetrics: readonly string[] = Object.keys(finders);

type DiagnosedState = Pick<MeshState, 'context' | 'configs' | 'unreadable'> &
  Partial<Pick<MeshState, 'translationProblems' | 'objects'>>;

/** Empty before the first push context. */
export function diagnosticsOf(state: DiagnosedState, proxies: Iterable<ServedProxy>): PushStatus {
  return runToEnd(diagnosticSteps(state, proxies));
}

export function diagnosticsInTurns(state: DiagnosedState, proxies: Iterable<ServedProxy>): Promise<PushStatus> {
  return new Turns(maxSliceMs).runSteps(diagnosticSteps(state, proxies));
}

export function* diagnosticSteps(
  { context, configs, objects = configs.set, unreadable, translationProblems = [] }: DiagnosedState,
  proxies: Iterable<ServedProxy>,
): Steps<PushStatus> {
  if (context === undefined) return {};
  const sources = { context, configs: objects, proxies, unreadable, translationProblems };
  const status = new Map<string, PushStatus[string]>();
  for (const [metric, find] of Object.entries({ ...finders, ...labelledMetrics })) {
    const diagnosticsByKey = new Map<string, Diagnostic>();
    const objects = new Map<string, Set<string>>();
    yield* find(sources, (key, message, subject) => {
      if (!diagnosticsByKey.has(key)) diagnosticsByKey.set(key, { ...subject, message });
      if (subject?.objects === undefined) return;
      // Copied into the diagnostics at the end, because many objects can have the same key.
      const objectsOfKey = objects.get(key) ?? new Set();
      for (const object of subject.objects) objectsOfKey.add(object);
      objects.set(key, objectsOfKey);
    });
    for (const [key, objectsOfKey] of objects)
      diagnosticsByKey.set(key, { ...diagnosticsByKey.get(key)!, objects: [...objectsOfKey] });
    status.set(metric, Object.fromEntries(diagnosticsByKey));
  }
  return Object.fromEntries(status);
}

function* reportWithoutEndpoints(
  context: PushContext,
  resolutions: readonly string[],
  reportDiagnostic: NoteDiagnostic,
): Iterable<void> {
  for (const { hostname, namespace, resolution } of context.services) {
    yield;
    if (!resolutions.includes(resolution) || context.endpointsOf(hostname, namespace).length > 0) continue;
    reportDiagnostic(`${hostname}.${namespace}`, `${namespace}/${hostname} has no endpoints`);
  }
}

/** Only one of two mesh VirtualServices with a common host applies at a client to which both are visible. */
function* findSharedDomains(sources: FinderInput, reportDiagnostic: NoteDiagnostic): Iterable<void> {
  for (const sharedHost of sharedHosts(sources)) {
    yield;
    if (sharedHost === undefined) continue;
    const { host, olderConfig, newerConfig, overridden } = sharedHost;
    const winnerAge = overridden === 'older' ? 'newer' : 'older';
    reportDiagnostic(
      host,
      `${olderConfig.namespace}/${olderConfig.name} and ${newerConfig.namespace}/${newerConfig.name}: the ${winnerAge} one applies to clients of ${olderConfig.namespace}`,
      { objects: [configKeyText(overridden === 'older' ? olderConfig : newerConfig)] },
    );
  }
}

function* findSharedSubsets({ context, configs }: FinderInput, reportDiagnostic: NoteDiagnostic): Iterable<void> {
  const firstByName = new Map<string, string>();
  for (const { namespace, name, spec } of configs.DestinationRule) {
    yield;
    if (spec.workloadSelector !== undefined) continue;
    const host = context.hostNames.qualify(spec.host, namespace);
    for (const subset of spec.subsets ?? []) {
      const key = `${namespace} ${host} ${subset.name}`;
      const olderObject = firstByName.get(key);
      if (olderObject === undefined) firstByName.set(key, name);
      else
        reportDiagnostic(
          host,
          `${namespace}/${olderObject} and ${namespace}/${name} define subset ${subset.name}: the older one applies`,
          {
            objects: [`DestinationRule/${namespace}/${name}`],
          },
        );
    }
  }
}
