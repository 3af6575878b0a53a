/**
 * The mesh at one moment, indexed for those who make resources (spec/discovery.md §6.3). Immutable: what it answers
 * never changes, although some of it is computed when first asked for.
 */
import type { Config, ConfigKey } from '../config/config.ts';
import type { HostNames } from '../fields/hostname.ts';
import type { Gateway } from '../kinds/gateway/gateway.ts';
import type { Features } from '../mesh/features.ts';
import type { MeshConfig } from '../mesh/mesh-config.ts';
import type { Proxy } from '../node/proxy.ts';
import type { NetworkGateways } from '../services/network-gateways.ts';
import type { KnownWorkload, LookedUp } from '../services/proxy-lookup.ts';
import type { Endpoint, Service, ServiceTarget } from '../services/service.ts';
import type { BackendTlsIndex } from './backend-tls.ts';
import type { CredentialIndex } from './credential-index.ts';
import type { GatewaySubject } from './gateway-index.ts';
import type { PeerModes } from './mutual-tls-mode.ts';
import type { ReferenceGrants } from './reference-grants.ts';
import type { MergedDestinationRule, ResolvedVirtualService } from './resolved-rules.ts';
import type { RuleRevision } from './rule-revision.ts';
import type { SidecarScope } from './sidecar-scope.ts';
import type { WorkloadPolicies, WorkloadSubject } from './workload-policies.ts';

export interface PushContext {
  /** `<RFC 3339 time>/<counter>`: the version_info of what is made from this context. */
  readonly version: string;
  readonly mesh: MeshConfig;
  /** What the environment says; of all contexts of a program the same object. */
  readonly features: Features;
  /** Suffix of host names, `cluster.local`. */
  readonly domain: string;
  /** What short names in objects mean. */
  readonly hostNames: HostNames;
  /**
   * Objects that are what they were in the context that this one was built from, and mean something else: short names
   * in them do, because services came or went. They count as changed.
   */
  readonly renamed: readonly ConfigKey[];
  /**
   * All, oldest first. A ServiceEntry with several addresses makes one service for each (§5.5), so the same host and
   * namespace may come more than once.
   */
  readonly services: readonly Service[];
  /** Services whose `exportTo` shows them to a namespace, oldest first. */
  servicesVisibleTo(namespace: string): readonly Service[];
  /** The services of one host in one namespace: empty when there is none. */
  servicesOf(hostname: string, namespace: string): readonly Service[];
  /** The service that a host name means to a client of a namespace: its own namespace's, else Kubernetes', else the oldest. */
  serviceFor(hostname: string, clientNamespace: string): Service | undefined;
  /** Endpoints of all ports, in a stable order. Match them to a port by `servicePortName`. */
  endpointsOf(hostname: string, namespace: string): readonly Endpoint[];
  /**
   * Virtual services bound to a gateway and exported to a namespace, in the order in which they hold for it (`byHolding`).
   * Delegates are not among them: they are merged in.
   *
   * @param gateway `mesh`, or `namespace/name`.
   */
  virtualServicesFor(gateway: string, namespace: string): readonly ResolvedVirtualService[];
  /**
   * The rule for a service as seen from a namespace (§8.2: client namespace, service namespace, root namespace).
   *
   * @param labels of the client's workload: rules with a `workloadSelector` hold only for those they select.
   */
  destinationRuleFor(
    clientNamespace: string,
    service: Service,
    labels?: Readonly<Record<string, string>>,
  ): MergedDestinationRule | undefined;
  /** Names of the namespace's rules that hold for chosen workloads, and choose these: what tells workloads apart by rules. */
  destinationRulesSelecting(clientNamespace: string, labels: Readonly<Record<string, string>>): string;
  /**
   * Hosts, wildcards among them, for which a namespace's workloads of these labels may have other rules than everybody: for all
   * others {@link destinationRuleFor} gives what it gives for {@link nobodysNamespace}.
   */
  ownDestinationRuleHosts(clientNamespace: string, labels: Readonly<Record<string, string>>): readonly string[];
  /** Says of which hosts the rules are others than in another context; the same while all rules are. */
  readonly destinationRuleRevision: RuleRevision;
  /** The host that a DestinationRule object is about, in full; undefined when there is no such object. */
  hostOfRule(key: ConfigKey): string | undefined;
  /** Whether the order of any service's endpoints depends on the labels of the client's workload. */
  readonly ordersEndpointsByLabels: boolean;
  /** Gateway objects that select a proxy, oldest first (§8.7). */
  gatewaysFor(proxy: GatewaySubject): readonly Config<Gateway>[];
  /** Certificates and keys that gateways are told by name (§8.7). */
  readonly credentials: CredentialIndex;
  /** How gateways secure connections to Services (BackendTLSPolicy). */
  readonly backendTls: BackendTlsIndex;
  /** Which objects may refer to objects of other namespaces. */
  readonly referenceGrants: ReferenceGrants;
  /** Policies that hold for a workload: the same object as in another context while the very same objects hold. */
  policiesFor(workload: WorkloadSubject): WorkloadPolicies;
  /**
   * What connections a workload takes: for its own listeners, and for its clients. The same object while the very same
   * PeerAuthentication objects hold.
   */
  peerModesFor(namespace: string, labels: Readonly<Record<string, string>>): PeerModes;
  /** Whether any PeerAuthentication object switches mutual TLS off anywhere: if none does, no list of endpoints need be looked at. */
  readonly disablesMutualTls: boolean;
  /** The same object as in the context before while the same services and virtual services are in it. */
  sidecarScopeFor(proxy: Pick<Proxy, 'type' | 'configNamespace' | 'labels'>): SidecarScope;
  /** Whether what a proxy of a scope of this context gets may depend on the object (§6.5 rule 4). */
  scopeDependsOn(scope: SidecarScope, key: ConfigKey): boolean;
  /** The service ports that a proxy's own workload serves. */
  serviceTargetsOf(proxy: LookedUp): readonly ServiceTarget[];
  /** Labels and place of a proxy's workload as its registry knows them; undefined when none does (§6.5). */
  workloadOf(proxy: LookedUp): KnownWorkload | undefined;
  /** Ways into networks, from others (§5.7). */
  readonly networkGateways: NetworkGateways;
  /** Whether clients of the host must stay in their own cluster (§5.7). */
  isClusterLocal(hostname: string): boolean;
}
