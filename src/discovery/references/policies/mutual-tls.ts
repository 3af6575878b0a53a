/** Reports DestinationRules with a TLS mode that a PeerAuthentication of the destination's workloads rejects. */
import type { Config } from '../../../model/config/config.ts';
import { isWildcard, mostSpecificKey } from '../../../model/fields/hostname.ts';
import type { DestinationRule } from '../../../model/kinds/destinations/destination-rule.ts';
import type { ClientTlsSettings, TrafficPolicy } from '../../../model/kinds/destinations/traffic-policy.ts';
import { peerModeOf } from '../../../model/push-context/mutual-tls-mode.ts';
import { matchesSelector } from '../../../model/services/label-match.ts';
import type { Service } from '../../../model/services/service.ts';
import { type CheckSources, type ConfigCheck, isWrittenConfig } from '../config-warning.ts';
import { isInjected } from '../services/injected-pods.ts';
import { PodsOfServices } from '../services/pods-of-services.ts';

type Labels = Readonly<Record<string, string>>;
type TlsMode = ClientTlsSettings['mode'];

const maxEndpoints = 32;

const maxServices = 1_000;

/** Maximum number of conflicts per wildcard host. One conflict is not enough, because a subset or port level may apply only to some servers. */
const maxConflicts = 32;

export const checkMutualTls: ConfigCheck = function* (sources) {
  const { context, configs } = sources;
  const conflicts = new Conflicts(sources, yield* hostsOfRules(sources));
  for (const config of configs.DestinationRule) {
    yield undefined;
    const tlsLocations = isWrittenConfig(config) ? tlsPlaces(config.spec) : [];
    if (tlsLocations.length === 0) continue;
    const host = context.hostNames.qualify(config.spec.host, config.namespace);
    for (const { mode, field, labels, hasPort } of tlsLocations) {
      yield undefined;
      const allConflicts = yield* conflicts.conflictsOf(
        host,
        config.namespace,
        mode === 'ISTIO_MUTUAL' ? 'DISABLE' : 'STRICT',
      );
      const conflictingServer = allConflicts.find(
        ({ server }) => matchesSelector(labels, server.labels) && hasPort(server.servicePort),
      );
      if (conflictingServer === undefined) continue;
      const { policy, server } = conflictingServer;
      const [rejectedMode, acceptedMode] =
        mode === 'ISTIO_MUTUAL' ? ['mutual TLS', 'DISABLE'] : [mode === 'DISABLE' ? 'plaintext' : 'this TLS', 'STRICT'];
      yield {
        ...{ code: 'MTLS_CONFLICT', config, field },
        message: `clients of ${server.host} send ${rejectedMode}, and PeerAuthentication ${policy.namespace}/${policy.name} (${acceptedMode}) rejects it: ${advice(mode)}`,
        other: { config: policy },
      };
    }
  }
};

type RejectingMode = 'STRICT' | 'DISABLE';

interface Conflict {
  readonly server: ServerPort;
  readonly policy: Config;
}

class Conflicts {
  readonly #sources: CheckSources;
  readonly #rules: HostsByNamespace;
  readonly #pods: PodsOfServices;
  readonly #servers = new Map<string, readonly ServerPort[]>();
  readonly #conflicts = new Map<string, readonly Conflict[]>();

  constructor(sources: CheckSources, rules: HostsByNamespace) {
    this.#sources = sources;
    this.#rules = rules;
    this.#pods = new PodsOfServices(sources.configs);
  }

  *conflictsOf(
    host: string,
    namespace: string,
    rejectingMode: RejectingMode,
  ): Generator<undefined, readonly Conflict[]> {
    const isWildcardHost = isWildcard(host);
    const key = `${rejectingMode} ${isWildcardHost ? namespace : ''} ${host}`;
    const cachedConflicts = this.#conflicts.get(key);
    if (cachedConflicts !== undefined) return cachedConflicts;
    const conflicts: Conflict[] = [];
    for (const conflictHost of isWildcardHost ? narrowHosts(host, namespace, this.#rules, this.#sources) : [host]) {
      yield undefined;
      if (conflictHost === undefined) continue;
      for (const server of this.#serversOf(conflictHost)) {
        const policy = conflictingPolicy(rejectingMode, server, this.#sources.context);
        if (policy !== undefined) conflicts.push({ server, policy });
      }
      if (isWildcardHost && conflicts.length >= maxConflicts) break;
    }
    this.#conflicts.set(key, conflicts);
    return conflicts;
  }

  #serversOf(host: string): readonly ServerPort[] {
    const { hosts } = this.#sources;
    const servers =
      this.#servers.get(host) ??
      hosts.servicesOf(host).flatMap((service) => serversOf(service, this.#pods, this.#sources));
    this.#servers.set(host, servers);
    return servers;
  }
}

function advice(mode: TlsMode): string {
  return mode === 'ISTIO_MUTUAL'
    ? 'remove the mode here, or set PERMISSIVE there'
    : 'remove the tls settings here, or set PERMISSIVE there';
}

type HostsByNamespace = ReadonlyMap<string, ReadonlySet<string>>;

/** Rules for selected clients are excluded, because other clients use wider rules. */
function* hostsOfRules({ configs, context }: CheckSources): Generator<undefined, HostsByNamespace> {
  const hostsByNamespace = new Map<string, Set<string>>();
  for (const { namespace, spec } of configs.DestinationRule) {
    yield undefined;
    if (spec.workloadSelector !== undefined) continue;
    const namespaceHosts = hostsByNamespace.get(namespace) ?? new Set<string>();
    hostsByNamespace.set(namespace, namespaceHosts.add(context.hostNames.qualify(spec.host, namespace)));
  }
  return hostsByNamespace;
}

/** Yields hosts to which the wildcard's rules in the namespace apply. Hosts with a narrower rule for the same clients are excluded. */
function* narrowHosts(
  wildcard: string,
  namespace: string,
  rules: HostsByNamespace,
  { context, hosts }: CheckSources,
): Generator<string | undefined> {
  const isMeshWide = namespace === context.mesh.rootNamespace;
  const seenServices = new Set<string>();
  for (const service of hosts.servicesWithin(wildcard).slice(0, maxServices)) {
    yield undefined;
    const { hostname, namespace: owner } = service;
    const isOverridden =
      isMeshWide && owner !== namespace && mostSpecificKey(hostname, rules.get(owner) ?? noHosts) !== undefined;
    const narrowestHost = mostSpecificKey(hostname, rules.get(namespace) ?? noHosts) ?? wildcard;
    if (isOverridden || narrowestHost !== wildcard || seenServices.has(hostname)) continue;
    seenServices.add(hostname);
    yield hostname;
  }
}

const noHosts: ReadonlySet<string> = new Set();

interface TlsScope {
  readonly mode: TlsMode;
  readonly field: string;
  readonly labels: Labels;
  hasPort(servicePort: number): boolean;
}

function tlsPlaces({ trafficPolicy, subsets = [] }: DestinationRule): readonly TlsScope[] {
  return [
    ...placesOfPolicy(trafficPolicy, 'spec.trafficPolicy', {}),
    ...subsets.flatMap((subset, index) =>
      placesOfPolicy(subset.trafficPolicy, `spec.subsets[${index}].trafficPolicy`, subset.labels ?? {}),
    ),
  ];
}

/** A port level replaces the settings of its policy, even without `tls`. The first level for a port applies. */
function placesOfPolicy(policy: TrafficPolicy | undefined, path: string, labels: Labels): TlsScope[] {
  const { tls, portLevelSettings: levels = [] } = policy ?? {};
  const firstIndexByPort = new Map<number, number>();
  for (const [index, { port }] of levels.entries())
    if (!firstIndexByPort.has(port.number)) firstIndexByPort.set(port.number, index);
  const levelModes = levels.flatMap((level, index) =>
    level.tls === undefined
      ? []
      : {
          ...{ mode: level.tls.mode, field: `${path}.portLevelSettings[${index}].tls.mode`, labels },
          hasPort: (number: number) => number === level.port.number && firstIndexByPort.get(number) === index,
        },
  );
  if (tls === undefined) return levelModes;
  return [
    { mode: tls.mode, field: `${path}.tls.mode`, labels, hasPort: (number) => !firstIndexByPort.has(number) },
    ...levelModes,
  ];
}

interface ServerPort {
  readonly host: string;
  readonly namespace: string;
  readonly labels: Labels;
  readonly servicePort: number;
  /** `undefined` for a named container port. */
  readonly port: number | undefined;
  /** Whether it is only assumed that the workload has a sidecar. In that case, only policies of its own namespace are checked. */
  readonly isAssumed: boolean;
}

/** In files without endpoints, uses the Pods that the Service selects. */
function serversOf(
  service: Service,
  pods: PodsOfServices,
  { context, knownObjects, configs }: CheckSources,
): ServerPort[] {
  const { hostname: host } = service;
  const endpoints = context.endpointsOf(host, service.namespace);
  if (endpoints.length > 0 || !knownObjects.areFromFiles) {
    return endpoints.slice(0, maxEndpoints).flatMap(({ tlsMode, namespace, labels, port, servicePortName }) => {
      const servicePort = service.ports.find(({ name }) => name === servicePortName)?.number;
      if (tlsMode !== 'istio' || servicePort === undefined) return [];
      return { host, namespace, labels, port, servicePort, isAssumed: false };
    });
  }
  const { ports = [] } = pods.objectOf(service)?.spec.spec ?? {};
  return pods
    .podsOf(service)
    .slice(0, maxEndpoints)
    .flatMap((pod) => {
      const isInjectedPod = isInjected(pod, configs);
      if (isInjectedPod === false) return [];
      const { namespace, labels } = pod;
      return ports.map(({ port: servicePort, targetPort = servicePort }) => ({
        ...{ host, namespace, labels, servicePort, isAssumed: isInjectedPod === undefined },
        port: typeof targetPort === 'number' ? targetPort : undefined,
      }));
    });
}

function conflictingPolicy(
  rejectingMode: RejectingMode,
  { namespace, labels, port, isAssumed }: ServerPort,
  context: CheckSources['context'],
): Config | undefined {
  const modes = context.peerModesFor(namespace, labels);
  if (
    port === undefined
      ? modes.ports.size > 0 || modes.mode !== rejectingMode
      : peerModeOf(modes, port) !== rejectingMode
  )
    return undefined;
  const policies = context.policiesFor({ type: 'sidecar', configNamespace: namespace, labels });
  const policy = policies.peerAuthentications.findLast(
    ({ spec }) =>
      spec.mtls === rejectingMode || (port !== undefined && spec.portLevelMtls?.[String(port)] === rejectingMode),
  );
  return policy !== undefined && (!isAssumed || policy.namespace === namespace) ? policy : undefined;
}
