/** An indexed snapshot of the mesh for the generators. Immutable, but some indexes are built on first use. */
import type { Config, ConfigKey } from '../config/config.ts';
import type { HostNames } from '../fields/hostname.ts';
import type { Gateway } from '../kinds/gateway/gateway.ts';
import type { Features } from '../mesh/features.ts';
import type { MeshConfig } from '../mesh/mesh-config.ts';
import type { Proxy } from '../node/proxy.ts';
import type { NetworkGateways } from '../services/network-gateways.ts';
import type { KnownWorkload, LookupSubject } from '../services/proxy-lookup.ts';
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
  /** `<RFC 3339 time>/<counter>`, used as version_info of the resources generated from this context. */
  readonly version: string;
  readonly mesh: MeshConfig;
  /** The same object in all contexts of a process. */
  readonly features: Features;
  readonly domain: string;
  readonly hostNames: HostNames;
  /** Unchanged objects whose short names resolve to other hosts than before. They are treated as changed. */
  readonly renamedConfigKeys: readonly ConfigKey[];
  /** Oldest first. A host and namespace may occur several times, because a ServiceEntry produces one service per address. */
  readonly services: readonly Service[];
  /** Oldest first. */
  servicesVisibleTo(namespace: string): readonly Service[];
  servicesOf(hostname: string, namespace: string): readonly Service[];
  /** Prefers the service of the namespace, then of Kubernetes, then the oldest. */
  serviceFor(hostname: string, clientNamespace: string): Service | undefined;
  /** Endpoints of all ports, in a stable order. Select those of a port by `servicePortName`. */
  endpointsOf(hostname: string, namespace: string): readonly Endpoint[];
  /**
   * In precedence order (`precedenceOrderFor`). The routes of delegates are merged into the VirtualServices that refer to them.
   * @param gateway `mesh`, or `namespace/name`.
   */
  virtualServicesFor(gateway: string, namespace: string): readonly ResolvedVirtualService[];
  /** @param labels of the client's workload, for rules with a `workloadSelector` */
  destinationRuleFor(
    clientNamespace: string,
    service: Service,
    labels?: Readonly<Record<string, string>>,
  ): MergedDestinationRule | undefined;
  /** Names of the rules whose selectors match these labels, as a key that distinguishes workloads. */
  destinationRulesSelecting(clientNamespace: string, labels: Readonly<Record<string, string>>): string;
  /** Hosts, including wildcards, for which workloads with these labels may have other rules than {@link publicViewNamespace}. */
  ownDestinationRuleHosts(clientNamespace: string, labels: Readonly<Record<string, string>>): readonly string[];
  /** Reports the hosts whose rules changed since another context; the same object while no rule changes. */
  readonly destinationRuleRevision: RuleRevision;
  hostOfRule(key: ConfigKey): string | undefined;
  readonly ordersEndpointsByLabels: boolean;
  gatewaysFor(proxy: GatewaySubject): readonly Config<Gateway>[];
  readonly credentials: CredentialIndex;
  readonly backendTls: BackendTlsIndex;
  readonly referenceGrants: ReferenceGrants;
  /** Two contexts return the same object if the same policies apply. */
  policiesFor(workload: WorkloadSubject): WorkloadPolicies;
  /** mTLS modes of a workload's inbound connections. The same object while the same PeerAuthentications apply. */
  peerModesFor(namespace: string, labels: Readonly<Record<string, string>>): PeerModes;
  /** If false, no PeerAuthentication disables mutual TLS, so endpoints need not be checked. */
  readonly disablesMutualTls: boolean;
  /** The same object as in the previous context if its services and virtual services are unchanged. */
  sidecarScopeFor(proxy: Pick<Proxy, 'type' | 'configNamespace' | 'labels'>): SidecarScope;
  scopeDependsOn(scope: SidecarScope, key: ConfigKey): boolean;
  serviceTargetsOf(proxy: LookupSubject): readonly ServiceTarget[];
  workloadOf(proxy: LookupSubject): KnownWorkload | undefined;
  readonly networkGateways: NetworkGateways;
  isClusterLocal(hostname: string): boolean;
}
