/** Builds the push context from the previous one, indexing only changed objects again. */

import { isDeepStrictEqual } from 'node:util';
import { runToEnd, type Steps } from '../../runtime/turns.ts';
import { type Config, type ConfigKey, configKeyOf } from '../config/config.ts';
import type { ConfigSet } from '../config/config-set.ts';
import { HostNames } from '../fields/hostname.ts';
import type { SpecOfKind } from '../kinds/index.ts';
import { ClusterLocalHosts } from '../mesh/cluster-local-hosts.ts';
import { defaultFeatures, type Features } from '../mesh/features.ts';
import type { MeshConfig } from '../mesh/mesh-config.ts';
import type { Proxy } from '../node/proxy.ts';
import { NetworkGateways } from '../services/network-gateways.ts';
import { type KnownWorkload, type LookupSubject, noLookup, type ProxyLookup } from '../services/proxy-lookup.ts';
import type { Endpoint, Service, ServiceTarget } from '../services/service.ts';
import { ServiceIndex } from '../services/service-index.ts';
import type { EndpointIndex } from '../services/service-registry.ts';
import { serviceTargets } from '../services/service-targets.ts';
import { BackendTlsIndex } from './backend-tls.ts';
import { CredentialIndex } from './credential-index.ts';
import { DestinationRuleIndex, hasPriorities } from './destination-rule-index.ts';
import { GatewayIndex, type GatewaySubject } from './gateway-index.ts';
import { disablesAnyMutualTls, type PeerModes, peerModes } from './mutual-tls-mode.ts';
import { envoyFilterIndex, PolicyIndex } from './policy-index.ts';
import type { PushContext } from './push-context.ts';
import { ReferenceGrants } from './reference-grants.ts';
import type { MergedDestinationRule, ResolvedVirtualService } from './resolved-rules.ts';
import type { RuleRevision } from './rule-revision.ts';
import { SidecarIndex, SidecarScopes } from './sidecar-index.ts';
import type { SidecarScope } from './sidecar-scope.ts';
import { VirtualServiceIndex } from './virtual-service-index.ts';
import {
  type PolicyIndexes,
  type WorkloadPolicies,
  WorkloadPolicyIndex,
  type WorkloadSubject,
} from './workload-policies.ts';

export interface PushContextInput {
  readonly version: string;
  readonly mesh: MeshConfig;
  readonly domain: string;
  readonly features?: Features;
  /** Whether services come from Kubernetes, which determines how short names are qualified. Default true. */
  readonly kubernetes?: boolean;
  readonly configs: ConfigSet;
  readonly services: readonly Service[];
  readonly endpoints: EndpointIndex;
  readonly workloads?: ProxyLookup;
  /** If absent, all workloads are reached directly. */
  readonly gateways?: NetworkGateways;
}

/** All other objects are reused without comparison. */
export interface PreviousContext {
  readonly context: PushContext;
  readonly changedKeys: Iterable<ConfigKey>;
}

/** @param previous absent to index everything (a forced push) */
export function buildPushContext(input: PushContextInput, previous?: PreviousContext): PushContext {
  return runToEnd(buildPushContextInSteps(input, previous));
}

export function* buildPushContextInSteps(input: PushContextInput, previous?: PreviousContext): Steps<PushContext> {
  const indexes = yield* indexInSteps(input, reusableIndexesOf(input, previous));
  return new IndexedPushContext(input, previous, indexes);
}

const policyKinds = [
  ...(['PeerAuthentication', 'RequestAuthentication', 'AuthorizationPolicy', 'Telemetry'] as const),
  ...(['WasmPlugin', 'EnvoyFilter'] as const),
];

type ReuseUnchanged = <T>(kinds: readonly string[], index: (previousContext: IndexedPushContext) => T) => T | undefined;

interface ReusableIndexes {
  readonly context: IndexedPushContext;
  readonly changedKinds: ReadonlySet<string>;
}

const indexReuserFor =
  (reusableIndexes: ReusableIndexes | undefined): ReuseUnchanged =>
  (kinds, index) =>
    reusableIndexes !== undefined && !kinds.some((kind) => reusableIndexes.changedKinds.has(kind))
      ? index(reusableIndexes.context)
      : undefined;

/** Indexes whose build time grows with the number of objects. */
interface Indexes {
  readonly serviceIndex: ServiceIndex;
  readonly hostNames: HostNames;
  readonly virtualServices: VirtualServiceIndex;
  readonly destinationRules: DestinationRuleIndex;
  readonly gateways: GatewayIndex;
  readonly credentials: CredentialIndex;
  readonly referenceGrants: ReferenceGrants;
  readonly backendTls: BackendTlsIndex;
  readonly sidecars: SidecarIndex;
}

function* indexInSteps(input: PushContextInput, reusableIndexes: ReusableIndexes | undefined): Steps<Indexes> {
  const { mesh, domain, configs, features = defaultFeatures, kubernetes = true } = input;
  const reuseIndex = indexReuserFor(reusableIndexes);
  const serviceIndex =
    reuseIndex(['ServiceEntry'], (previousContext) => previousContext.serviceIndex) ??
    (yield* ServiceIndex.buildInSteps(input.services, reusableIndexes?.context.serviceIndex));
  yield;
  const hostNames = new HostNames(domain, kubernetes ? undefined : serviceExistsIn(serviceIndex));
  const current = <T extends { isCurrent(names: HostNames): boolean }>(index: T): T | undefined =>
    index.isCurrent(hostNames) ? index : undefined;
  const virtualServices =
    reuseIndex(['VirtualService'], (previousContext) => current(previousContext.virtualServices)) ??
    (yield* VirtualServiceIndex.buildInSteps(
      configs.VirtualService,
      hostNames,
      mesh,
      reusableIndexes?.context.virtualServices,
    ));
  yield;
  const destinationRules =
    reuseIndex(['DestinationRule'], (previousContext) => current(previousContext.destinationRules)) ??
    (yield* DestinationRuleIndex.buildInSteps(
      configs.DestinationRule,
      { hostNames, mesh },
      reusableIndexes?.context.destinationRules,
    ));
  yield;
  const gateways =
    reuseIndex(['Gateway'], (previousContext) => previousContext.gateways) ??
    new GatewayIndex(configs.Gateway, { ownNamespaceOnly: features.gatewaysOfOwnNamespace, rule: mesh });
  const credentials =
    reuseIndex(['Secret', 'ConfigMap'], (previousContext) => previousContext.credentials) ??
    new CredentialIndex(configs, reusableIndexes?.context.credentials);
  const backendTls =
    reuseIndex(['BackendTLSPolicy', 'ConfigMap'], (previousContext) => previousContext.backendTls) ??
    new BackendTlsIndex(configs.BackendTLSPolicy, credentials, reusableIndexes?.context.backendTls);
  const referenceGrants =
    reuseIndex(['ReferenceGrant'], (previousContext) => previousContext.referenceGrants) ??
    new ReferenceGrants(configs.ReferenceGrant);
  yield;
  const sidecars =
    reuseIndex(['Sidecar'], (previousContext) => previousContext.sidecars) ??
    new SidecarIndex(configs.Sidecar, mesh.rootNamespace);
  return {
    serviceIndex,
    hostNames,
    virtualServices,
    destinationRules,
    gateways,
    credentials,
    referenceGrants,
    backendTls,
    sidecars,
  };
}

class IndexedPushContext implements PushContext {
  readonly version: string;
  readonly mesh: MeshConfig;
  readonly features: Features;
  readonly domain: string;
  readonly hostNames: HostNames;
  readonly renamedConfigKeys: readonly ConfigKey[];
  private readonly endpoints: EndpointIndex;
  readonly serviceIndex: ServiceIndex;
  readonly virtualServices: VirtualServiceIndex;
  readonly destinationRules: DestinationRuleIndex;
  readonly gateways: GatewayIndex;
  readonly credentials: CredentialIndex;
  readonly referenceGrants: ReferenceGrants;
  readonly backendTls: BackendTlsIndex;
  readonly sidecars: SidecarIndex;
  private readonly policies: WorkloadPolicyIndex;
  readonly disablesMutualTls: boolean;
  private readonly scopes: SidecarScopes;
  private readonly workloads: ProxyLookup;
  readonly networkGateways: NetworkGateways;
  private readonly clusterLocal: ClusterLocalHosts;

  constructor(input: PushContextInput, previous: PreviousContext | undefined, indexes: Indexes) {
    const { mesh, domain, configs } = input;
    this.version = input.version;
    this.mesh = mesh;
    this.features = input.features ?? defaultFeatures;
    this.domain = domain;
    this.endpoints = input.endpoints;
    const reusableIndexes = reusableIndexesOf(input, previous);
    const reuseIndex = indexReuserFor(reusableIndexes);
    this.serviceIndex = indexes.serviceIndex;
    this.hostNames = indexes.hostNames;
    this.virtualServices = indexes.virtualServices;
    this.destinationRules = indexes.destinationRules;
    this.gateways = indexes.gateways;
    this.credentials = indexes.credentials;
    this.referenceGrants = indexes.referenceGrants;
    this.backendTls = indexes.backendTls;
    this.sidecars = indexes.sidecars;
    this.scopes =
      reuseIndex(['ServiceEntry', 'VirtualService', 'Sidecar'], (previousContext) => previousContext.scopes) ??
      this.newScopes(reusableIndexes?.context.scopes);
    this.policies =
      reuseIndex([...policyKinds, 'Gateway'], (previousContext) =>
        previousContext.policies.isCurrent(this.sidecars) ? previousContext.policies : undefined,
      ) ??
      new WorkloadPolicyIndex(
        this.policyIndexes(configs, reuseIndex),
        gatewaySelectorFor(this.gateways),
        this.sidecars,
      );
    this.disablesMutualTls =
      reuseIndex(['PeerAuthentication'], (previousContext) => previousContext.disablesMutualTls) ??
      configs.PeerAuthentication.some(disablesAnyMutualTls);
    this.renamedConfigKeys = reusableIndexes === undefined ? [] : this.renamedSince(reusableIndexes.context);
    this.workloads = input.workloads ?? noLookup;
    const gateways = input.gateways ?? NetworkGateways.empty;
    // Keeps the identity of unchanged gateways, because all endpoints depend on it.
    const previousGateways = previous?.context.networkGateways;
    this.networkGateways =
      previousGateways !== undefined && isDeepStrictEqual(previousGateways.allGateways, gateways.allGateways)
        ? previousGateways
        : gateways;
    this.clusterLocal = reusableIndexes?.context.clusterLocal ?? new ClusterLocalHosts(mesh, domain);
  }

  private policyIndexes(configs: ConfigSet, reuseIndex: ReuseUnchanged): PolicyIndexes {
    const { rootNamespace } = this.mesh;
    const index = <K extends Exclude<keyof PolicyIndexes, 'EnvoyFilter'>>(kind: K): PolicyIndexes[K] =>
      reuseIndex([kind], (previousContext) => previousContext.policies.indexes[kind]) ??
      (new PolicyIndex<object>(configs[kind], rootNamespace) as unknown as PolicyIndexes[K]);
    return {
      PeerAuthentication: index('PeerAuthentication'),
      RequestAuthentication: index('RequestAuthentication'),
      AuthorizationPolicy: index('AuthorizationPolicy'),
      Telemetry: index('Telemetry'),
      WasmPlugin: index('WasmPlugin'),
      EnvoyFilter:
        reuseIndex(['EnvoyFilter'], (previousContext) => previousContext.policies.indexes.EnvoyFilter) ??
        envoyFilterIndex(configs.EnvoyFilter, rootNamespace),
    };
  }

  private renamedSince(previous: IndexedPushContext): readonly ConfigKey[] {
    if (this.hostNames.isFixed) return [];
    const { virtualServices, destinationRules, sidecars } = this;
    const renamedSidecars = sidecars.allSidecars.filter(({ namespace, spec: { outboundTrafficPolicy } }) => {
      const { host } = outboundTrafficPolicy?.egressProxy ?? { host: '' };
      return this.hostNames.qualify(host, namespace) !== previous.hostNames.qualify(host, namespace);
    });
    return [
      ...(virtualServices === previous.virtualServices ? [] : virtualServices.renamedConfigKeys),
      ...(destinationRules === previous.destinationRules ? [] : destinationRules.renamedConfigKeys),
      ...renamedSidecars.map(configKeyOf),
    ];
  }

  private newScopes(previous: SidecarScopes | undefined): SidecarScopes {
    const sources = {
      services: this.serviceIndex,
      virtualServices: this.virtualServices,
      meshPolicy: this.mesh.outboundTrafficPolicy,
      hostNames: this.hostNames,
    };
    return new SidecarScopes(sources, this.sidecars, previous);
  }

  get services(): readonly Service[] {
    return this.serviceIndex.services;
  }

  servicesVisibleTo(namespace: string): readonly Service[] {
    return this.serviceIndex.visibleTo(namespace);
  }

  servicesOf(hostname: string, namespace: string): readonly Service[] {
    return this.serviceIndex.servicesNamed(hostname, namespace);
  }

  serviceFor(hostname: string, clientNamespace: string): Service | undefined {
    return this.serviceIndex.resolveHost(hostname, clientNamespace);
  }

  endpointsOf(hostname: string, namespace: string): readonly Endpoint[] {
    return this.endpoints.get(hostname)?.get(namespace) ?? [];
  }

  virtualServicesFor(gateway: string, namespace: string): readonly ResolvedVirtualService[] {
    return this.virtualServices.servicesFor(gateway, namespace);
  }

  destinationRuleFor(
    clientNamespace: string,
    service: Service,
    labels?: Readonly<Record<string, string>>,
  ): MergedDestinationRule | undefined {
    return this.destinationRules.ruleFor(clientNamespace, service, labels);
  }

  destinationRulesSelecting(clientNamespace: string, labels: Readonly<Record<string, string>>): string {
    return this.destinationRules.selectingText(clientNamespace, labels);
  }

  ownDestinationRuleHosts(clientNamespace: string, labels: Readonly<Record<string, string>>): readonly string[] {
    return this.destinationRules.hostsVisibleTo(clientNamespace, labels);
  }

  get destinationRuleRevision(): RuleRevision {
    return this.destinationRules.revision;
  }

  hostOfRule(key: ConfigKey): string | undefined {
    return this.destinationRules.hostOf(key);
  }

  get ordersEndpointsByLabels(): boolean {
    return hasPriorities(this.mesh.localityLbSetting) || this.destinationRules.haveFailoverPriorities;
  }

  gatewaysFor(proxy: GatewaySubject): readonly Config<SpecOfKind['Gateway']>[] {
    return this.gateways.gatewaysFor(proxy);
  }

  policiesFor(workload: WorkloadSubject): WorkloadPolicies {
    return this.policies.policiesFor(workload);
  }

  peerModesFor(namespace: string, labels: Readonly<Record<string, string>>): PeerModes {
    return peerModes(this.policies.indexes.PeerAuthentication.layersFor({ namespace, labels }));
  }

  sidecarScopeFor(proxy: Pick<Proxy, 'type' | 'configNamespace' | 'labels'>): SidecarScope {
    return this.scopes.scopeFor(proxy);
  }

  scopeDependsOn(scope: SidecarScope, key: ConfigKey): boolean {
    switch (key.kind) {
      case 'VirtualService':
        return this.virtualServices
          .effectiveServices(key)
          .some((service) => scope.egressListeners.some(({ virtualServices }) => virtualServices.includes(service)));
      case 'DestinationRule':
        return this.destinationRules.mayApplyIn(scope, key);
      default:
        return scope.dependsOn(key);
    }
  }

  serviceTargetsOf(proxy: LookupSubject): readonly ServiceTarget[] {
    const refs = this.workloads.targetsOf(proxy);
    return serviceTargets(proxy.configNamespace, refs, (host, namespace) =>
      this.serviceIndex.servicesNamed(host, namespace),
    );
  }

  workloadOf(proxy: LookupSubject): KnownWorkload | undefined {
    return this.workloads.workloadOf(proxy);
  }

  isClusterLocal(hostname: string): boolean {
    return this.clusterLocal.has(hostname);
  }
}

/** Not a closure, because it may outlive this context and would retain it. */
function serviceExistsIn(services: ServiceIndex): (hostname: string, namespace: string) => boolean {
  return (hostname, namespace) => services.resolveHost(hostname, namespace) !== undefined;
}

function gatewaySelectorFor(
  gateways: GatewayIndex,
): (workload: WorkloadSubject) => readonly Config<SpecOfKind['Gateway']>[] {
  return (workload) => gateways.gatewaysFor(workload);
}

/** Everything depends on mesh configuration and domain. */
function reusableIndexesOf(
  input: PushContextInput,
  previous: PreviousContext | undefined,
): ReusableIndexes | undefined {
  if (previous === undefined || !(previous.context instanceof IndexedPushContext)) return undefined;
  const { context, changedKeys } = previous;
  if (context.mesh !== input.mesh || context.domain !== input.domain) return undefined;
  if (context.hostNames.isFixed !== (input.kubernetes ?? true)) return undefined;
  return { context, changedKinds: new Set([...changedKeys].map((key) => key.kind)) };
}
