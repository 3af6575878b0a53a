/** Clients that connect to workloads in a way that their PeerAuthentications reject (spec/discovery.md §8.10). */
import type { Config } from '../../model/config/config.ts';
import { isWildcard } from '../../model/fields/hostname.ts';
import type { DestinationRule } from '../../model/kinds/destination-rule.ts';
import type { ClientTlsSettings } from '../../model/kinds/traffic-policy.ts';
import { peerModeOf } from '../../model/push-context/mutual-tls-mode.ts';
import type { Service } from '../../model/services/service.ts';
import { type CheckSources, type ConfigCheck, isWritten } from './config-warning.ts';

/** Endpoints of a service that a rule is compared with. */
const maxEndpoints = 32;

export const checkMutualTls: ConfigCheck = function* ({ context, configs, hosts }) {
  for (const config of configs.DestinationRule) {
    yield undefined;
    const mode = config.spec.trafficPolicy?.tls?.mode;
    const host = context.hostNames.qualified(config.spec.host, config.namespace);
    if (mode === undefined || !isWritten(config) || isWildcard(host)) continue;
    for (const service of hosts.of(host)) {
      const policy = conflictingPolicy(mode, service, config, context);
      if (policy === undefined) continue;
      const [rejected, accepted] =
        mode === 'ISTIO_MUTUAL' ? ['mutual TLS', 'DISABLE'] : [mode === 'DISABLE' ? 'plaintext' : 'this TLS', 'STRICT'];
      yield {
        ...{ code: 'MTLS_CONFLICT', config, field: 'spec.trafficPolicy.tls.mode' },
        message: `clients of ${host} send ${rejected}, and PeerAuthentication ${policy.namespace}/${policy.name} (${accepted}) rejects it: ${advice(mode)}`,
        other: { config: policy },
      };
      break;
    }
  }
};

function advice(mode: ClientTlsSettings['mode']): string {
  return mode === 'ISTIO_MUTUAL'
    ? 'remove the mode here, or set PERMISSIVE there'
    : 'remove the tls settings here, or set PERMISSIVE there';
}

/** The policy that rejects the connections; undefined if none does at the first endpoints. */
function conflictingPolicy(
  mode: ClientTlsSettings['mode'],
  { hostname, namespace }: Service,
  rule: Config<DestinationRule>,
  context: CheckSources['context'],
): Config | undefined {
  const wanted = mode === 'ISTIO_MUTUAL' ? 'DISABLE' : 'STRICT';
  for (const endpoint of context.endpointsOf(hostname, namespace).slice(0, maxEndpoints)) {
    if (endpoint.tlsMode !== 'istio') continue;
    const modes = context.peerModesFor(endpoint.namespace, endpoint.labels);
    const isOwnPort = rule.spec.trafficPolicy?.portLevelSettings !== undefined;
    if (isOwnPort || peerModeOf(modes, endpoint.port) !== wanted) continue;
    const policies = context.policiesFor({
      type: 'sidecar',
      configNamespace: endpoint.namespace,
      labels: endpoint.labels,
    });
    const policy = policies.peerAuthentications.findLast(
      ({ spec }) => spec.mtls === wanted || isPortOf(spec.portLevelMtls, endpoint.port, wanted),
    );
    if (policy !== undefined) return policy;
  }
  return undefined;
}

function isPortOf(ports: Readonly<Record<string, string>> | undefined, port: number, mode: string): boolean {
  return ports?.[String(port)] === mode;
}
