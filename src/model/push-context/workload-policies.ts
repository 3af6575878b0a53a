import { identityText, WeakValues } from '../collections/weak-values.ts';
import type { Config } from '../config/config.ts';
import type { EnvoyFilter } from '../kinds/envoy-filter/envoy-filter.ts';
import type { Telemetry } from '../kinds/extensions/telemetry.ts';
import type { WasmPlugin } from '../kinds/extensions/wasm-plugin.ts';
import type { Gateway } from '../kinds/gateway/gateway.ts';
import type { AuthorizationPolicy } from '../kinds/policies/authorization-policy.ts';
import type { PeerAuthentication } from '../kinds/policies/peer-authentication.ts';
import type { RequestAuthentication } from '../kinds/policies/request-authentication.ts';
import type { Sidecar } from '../kinds/workloads/sidecar.ts';
import type { GatewaySubject } from './gateway-index.ts';
import type { PolicyIndex, PolicySubject, TargetableObject } from './policy-index.ts';
import type { SidecarIndex } from './sidecar-index.ts';

/** Two equal results are the same object in all contexts, so compare them by identity and use `id` in cache keys. */
export interface WorkloadPolicies {
  /** Short and stable while the same objects apply, for cache keys. Empty if no policy applies. */
  readonly id: string;
  /** At most one per level: mesh, namespace, workload. */
  readonly peerAuthentications: readonly Config<PeerAuthentication>[];
  readonly requestAuthentications: readonly Config<RequestAuthentication>[];
  readonly authorizationPolicies: readonly Config<AuthorizationPolicy>[];
  readonly telemetries: readonly Config<Telemetry>[];
  readonly wasmPlugins: readonly Config<WasmPlugin>[];
  /** In the order in which their patches apply. */
  readonly envoyFilters: readonly Config<EnvoyFilter>[];
}

export type WorkloadSubject = GatewaySubject;

export interface PolicyIndexes {
  readonly PeerAuthentication: PolicyIndex<PeerAuthentication>;
  readonly RequestAuthentication: PolicyIndex<RequestAuthentication>;
  readonly AuthorizationPolicy: PolicyIndex<AuthorizationPolicy>;
  readonly Telemetry: PolicyIndex<Telemetry>;
  readonly WasmPlugin: PolicyIndex<WasmPlugin>;
  readonly EnvoyFilter: PolicyIndex<EnvoyFilter>;
}

export const noPolicies: WorkloadPolicies = {
  id: '',
  peerAuthentications: [],
  requestAuthentications: [],
  authorizationPolicies: [],
  telemetries: [],
  wasmPlugins: [],
  envoyFilters: [],
};

export class WorkloadPolicyIndex {
  readonly indexes: PolicyIndexes;
  private readonly gatewaysOf: (subject: WorkloadSubject) => readonly Config<Gateway>[];
  private readonly results = new WeakMap<WorkloadSubject, WorkloadPolicies>();

  /** `undefined` if no policy is a placeholder for a Sidecar. Then no policy depends on a Sidecar. */
  private readonly sidecars: SidecarIndex | undefined;

  /** @param sidecars only valid Sidecars */
  constructor(
    indexes: PolicyIndexes,
    gatewaysOf: (subject: WorkloadSubject) => readonly Config<Gateway>[],
    sidecars: SidecarIndex,
  ) {
    this.indexes = indexes;
    this.gatewaysOf = gatewaysOf;
    this.sidecars = indexes.AuthorizationPolicy.policies.some(isSidecarPolicy) ? sidecars : undefined;
  }

  isCurrent(sidecars: SidecarIndex): boolean {
    return this.sidecars === undefined || this.sidecars === sidecars;
  }

  policiesFor(workload: WorkloadSubject): WorkloadPolicies {
    let result = this.results.get(workload);
    if (result === undefined) {
      const { configNamespace: namespace, labels } = workload;
      const targetableAs = workload.type === 'router' ? gatewayReferences(workload, this.gatewaysOf(workload)) : [];
      const lists = this.listsFor({ namespace, labels, targetableAs });
      result = internPolicies(this.omitReplaced(lists, workload));
      this.results.set(workload, result);
    }
    return result;
  }

  /** Omits placeholders for rejected Sidecars that could not apply to the workload. */
  private omitReplaced(lists: PolicyLists, workload: WorkloadSubject): PolicyLists {
    const { authorizationPolicies: allPolicies } = lists;
    if (this.sidecars === undefined || !allPolicies.some(isSidecarPolicy)) return lists;
    const sidecar = this.sidecars.sidecarFor(workload);
    const remainingPolicies = allPolicies.filter(
      (policy) => !isSidecarPolicy(policy) || mayHaveApplied(policy, workload, sidecar),
    );
    return { ...lists, authorizationPolicies: remainingPolicies };
  }

  private listsFor(subject: PolicySubject): PolicyLists {
    const { indexes } = this;
    return {
      peerAuthentications: indexes.PeerAuthentication.layersFor(subject),
      requestAuthentications: indexes.RequestAuthentication.policiesFor(subject),
      authorizationPolicies: indexes.AuthorizationPolicy.policiesFor(subject),
      telemetries: indexes.Telemetry.layersFor(subject),
      wasmPlugins: indexes.WasmPlugin.policiesFor(subject),
      envoyFilters: indexes.EnvoyFilter.policiesFor(subject),
    };
  }
}

/**
 * Returns the Gateways that a router implements: those that select it or name its Service, and the Gateway of the Gateway API that its label names.
 */
function gatewayReferences(
  { configNamespace, labels }: WorkloadSubject,
  gateways: readonly Config<Gateway>[],
): TargetableObject[] {
  const kind = 'Gateway';
  const gatewayName = labels['gateway.networking.k8s.io/gateway-name'];
  const kubernetes = new Map(
    gateways
      .flatMap(({ partOrigins }) => partOrigins?.['servers[0]'] ?? [])
      .filter(({ key }) => key.kind === 'KubernetesGateway')
      .map(({ key: { namespace, name } }) => [`${namespace}/${name}`, { namespace, name }]),
  );
  if (gatewayName !== undefined)
    kubernetes.set(`${configNamespace}/${gatewayName}`, { namespace: configNamespace, name: gatewayName });
  return [
    ...gateways.map(({ namespace, name }) => ({ group: 'networking.istio.io', kind, namespace, name })),
    ...[...kubernetes.values()].map((gateway) => ({ group: 'gateway.networking.k8s.io', kind, ...gateway })),
  ];
}

type PolicyLists = Omit<WorkloadPolicies, 'id'>;

/** False for routers, and if a valid Sidecar with a narrower scope applies (`SidecarIndex.sidecarFor`). */
function mayHaveApplied(
  { namespace, spec, standsFor }: Config<AuthorizationPolicy>,
  { type, configNamespace }: WorkloadSubject,
  appliedSidecar: Config<Sidecar> | undefined,
): boolean {
  if (type !== 'sidecar') return false;
  // The object's namespace could not be read.
  if (namespace === '') return true;
  const isScopeKnown = standsFor?.isScopeKnown !== false;
  const usesSelector = isScopeKnown && spec.selector !== undefined;
  if (namespace !== configNamespace) return !usesSelector && appliedSidecar?.namespace !== configNamespace;
  return (
    !isScopeKnown ||
    usesSelector ||
    !(appliedSidecar?.namespace === configNamespace && appliedSidecar.spec.workloadSelector !== undefined)
  );
}

function isSidecarPolicy({ standsFor }: Config): boolean {
  return standsFor?.kind === 'Sidecar';
}

const internedPolicies = new WeakValues<WorkloadPolicies>();
let lastId = 0;

function internPolicies(lists: PolicyLists): WorkloadPolicies {
  const allLists = Object.values(lists) as (readonly Config[])[];
  if (allLists.every((list) => list.length === 0)) return noPolicies;
  const text = allLists.map(identityText).join(';');
  const internedEntry = internedPolicies.get(text);
  if (internedEntry !== undefined) return internedEntry;
  const policies = { id: `p${++lastId}`, ...lists };
  internedPolicies.set(text, policies);
  return policies;
}
