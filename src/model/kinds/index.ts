import { ownValue } from '../../runtime/json-object.ts';
import { decodeWith } from '../fields/decode.ts';
import {
  decodeDestinationRule,
  destinationRule,
  destinationRuleWarnings,
} from './destinations/destination-rule.decode.ts';
import type { DestinationRule } from './destinations/destination-rule.ts';
import { envoyFilter } from './envoy-filter/envoy-filter.decode.ts';
import { envoyFilterWarnings } from './envoy-filter/envoy-filter.rules.ts';
import type { EnvoyFilter } from './envoy-filter/envoy-filter.ts';
import { proxyConfigObject } from './extensions/proxy-config-object.decode.ts';
import type { ProxyConfigObject } from './extensions/proxy-config-object.ts';
import { telemetry } from './extensions/telemetry.decode.ts';
import type { Telemetry } from './extensions/telemetry.ts';
import { trafficExtension } from './extensions/traffic-extension.decode.ts';
import type { TrafficExtension } from './extensions/traffic-extension.ts';
import { wasmPlugin } from './extensions/wasm-plugin.decode.ts';
import type { WasmPlugin } from './extensions/wasm-plugin.ts';
import { labelErrors } from './field-rules.ts';
import { gateway, gatewayWarnings } from './gateway/gateway.decode.ts';
import type { Gateway } from './gateway/gateway.ts';
import { gatewayApiKinds, type SpecOfGatewayApiKind } from './gateway-api/index.ts';
import type { Kind } from './kind.ts';
import { kubernetesKinds, type SpecOfKubernetesKind } from './kubernetes/index.ts';
import { authorizationPolicy } from './policies/authorization-policy.decode.ts';
import { authorizationPolicyWarnings } from './policies/authorization-policy.rules.ts';
import type { AuthorizationPolicy } from './policies/authorization-policy.ts';
import { dryRunErrors } from './policies/dry-run.ts';
import { peerAuthentication } from './policies/peer-authentication.decode.ts';
import type { PeerAuthentication } from './policies/peer-authentication.ts';
import { decodeWithScope, scopeWarnings, targetWarnings } from './policies/policy-target.decode.ts';
import { requestAuthentication, requestAuthenticationWarnings } from './policies/request-authentication.decode.ts';
import type { RequestAuthentication } from './policies/request-authentication.ts';
import { toleratingUnknownFields } from './unknown-fields.ts';
import { disableMatches, virtualService } from './virtual-service/virtual-service.decode.ts';
import type { VirtualService } from './virtual-service/virtual-service.ts';
import { virtualServiceWarnings } from './virtual-service/virtual-service.warnings.ts';
import { serviceEntry, serviceEntryWarnings, waypointErrors } from './workloads/service-entry.decode.ts';
import type { ServiceEntry } from './workloads/service-entry.ts';
import { sidecar, sidecarWarnings } from './workloads/sidecar.decode.ts';
import type { Sidecar } from './workloads/sidecar.ts';
import { workloadEntry } from './workloads/workload-entry.decode.ts';
import type { WorkloadEntry } from './workloads/workload-entry.ts';
import { workloadGroup } from './workloads/workload-group.decode.ts';
import type { WorkloadGroup } from './workloads/workload-group.ts';

export interface SpecOfKind extends SpecOfKubernetesKind, SpecOfGatewayApiKind {
  readonly AuthorizationPolicy: AuthorizationPolicy;
  readonly DestinationRule: DestinationRule;
  readonly EnvoyFilter: EnvoyFilter;
  readonly Gateway: Gateway;
  readonly PeerAuthentication: PeerAuthentication;
  readonly ProxyConfig: ProxyConfigObject;
  readonly RequestAuthentication: RequestAuthentication;
  readonly ServiceEntry: ServiceEntry;
  readonly Sidecar: Sidecar;
  readonly Telemetry: Telemetry;
  readonly TrafficExtension: TrafficExtension;
  readonly VirtualService: VirtualService;
  readonly WasmPlugin: WasmPlugin;
  readonly WorkloadEntry: WorkloadEntry;
  readonly WorkloadGroup: WorkloadGroup;
}

export type KindName = keyof SpecOfKind;

const networking = {
  group: 'networking.istio.io',
  versions: ['v1', 'v1beta1', 'v1alpha3'],
  scope: 'Namespaced',
  body: 'spec',
} as const;

const security = { ...networking, group: 'security.istio.io', versions: ['v1', 'v1beta1'] } as const;

export const kinds: { readonly [K in KindName]: Kind<K, SpecOfKind[K]> } = {
  ...kubernetesKinds,
  ...gatewayApiKinds,
  AuthorizationPolicy: {
    kind: 'AuthorizationPolicy',
    ...security,
    plural: 'authorizationpolicies',
    decoder: authorizationPolicy,
    decode: (spec, namespace) => decodeWithScope(authorizationPolicy, spec, namespace),
    metadataErrors: dryRunErrors,
    warnings: (spec) => [...scopeWarnings(spec), ...authorizationPolicyWarnings(spec)],
  },
  DestinationRule: toleratingUnknownFields({
    kind: 'DestinationRule',
    ...networking,
    plural: 'destinationrules',
    decoder: destinationRule,
    decode: decodeDestinationRule,
    warnings: destinationRuleWarnings,
  }),
  EnvoyFilter: toleratingUnknownFields({
    kind: 'EnvoyFilter',
    ...networking,
    versions: ['v1alpha3'],
    plural: 'envoyfilters',
    decoder: envoyFilter,
    decode: (spec, namespace) => decodeWithScope(envoyFilter, spec, namespace),
    warnings: (spec) => [...envoyFilterWarnings(spec), ...targetWarnings(spec.targetRefs)],
  }),
  Gateway: toleratingUnknownFields({
    kind: 'Gateway',
    ...networking,
    plural: 'gateways',
    decoder: gateway,
    decode: (spec) => decodeWith(gateway, spec),
    warnings: gatewayWarnings,
  }),
  PeerAuthentication: {
    kind: 'PeerAuthentication',
    ...security,
    plural: 'peerauthentications',
    decoder: peerAuthentication,
    decode: (spec) => decodeWith(peerAuthentication, spec),
    warnings: scopeWarnings,
  },
  ProxyConfig: toleratingUnknownFields({
    kind: 'ProxyConfig',
    ...networking,
    versions: ['v1beta1'],
    plural: 'proxyconfigs',
    decoder: proxyConfigObject,
    decode: (spec) => decodeWith(proxyConfigObject, spec),
    warnings: scopeWarnings,
  }),
  RequestAuthentication: {
    kind: 'RequestAuthentication',
    ...security,
    plural: 'requestauthentications',
    decoder: requestAuthentication,
    decode: (spec, namespace) => decodeWithScope(requestAuthentication, spec, namespace),
    warnings: (spec) => [...scopeWarnings(spec), ...requestAuthenticationWarnings(spec)],
  },
  ServiceEntry: toleratingUnknownFields({
    kind: 'ServiceEntry',
    ...networking,
    plural: 'serviceentries',
    decoder: serviceEntry,
    decode: (spec) => decodeWith(serviceEntry, spec),
    metadataErrors: waypointErrors,
    warnings: serviceEntryWarnings,
  }),
  Sidecar: toleratingUnknownFields({
    kind: 'Sidecar',
    ...networking,
    plural: 'sidecars',
    decoder: sidecar,
    decode: (spec) => decodeWith(sidecar, spec),
    warnings: sidecarWarnings,
  }),
  Telemetry: toleratingUnknownFields({
    kind: 'Telemetry',
    ...networking,
    group: 'telemetry.istio.io',
    versions: ['v1', 'v1alpha1'],
    plural: 'telemetries',
    decoder: telemetry,
    decode: (spec, namespace) => decodeWithScope(telemetry, spec, namespace),
    warnings: scopeWarnings,
  }),
  TrafficExtension: toleratingUnknownFields({
    kind: 'TrafficExtension',
    ...networking,
    group: 'extensions.istio.io',
    versions: ['v1alpha1'],
    plural: 'trafficextensions',
    decoder: trafficExtension,
    decode: (spec, namespace) => decodeWithScope(trafficExtension, spec, namespace),
    warnings: scopeWarnings,
  }),
  VirtualService: toleratingUnknownFields(
    {
      kind: 'VirtualService',
      ...networking,
      plural: 'virtualservices',
      decoder: virtualService,
      decode: (spec) => decodeWith(virtualService, spec),
      warnings: virtualServiceWarnings,
    },
    disableMatches,
  ),
  WasmPlugin: toleratingUnknownFields<'WasmPlugin', WasmPlugin>({
    kind: 'WasmPlugin',
    ...networking,
    group: 'extensions.istio.io',
    versions: ['v1alpha1'],
    plural: 'wasmplugins',
    decoder: wasmPlugin,
    decode: (spec, namespace) => decodeWithScope(wasmPlugin, spec, namespace),
    warnings: scopeWarnings,
  }),
  WorkloadEntry: toleratingUnknownFields({
    kind: 'WorkloadEntry',
    ...networking,
    plural: 'workloadentries',
    decoder: workloadEntry,
    decode: (spec) => decodeWith(workloadEntry, spec),
    metadataErrors: (_, { labels }) => labelErrors(labels, 'labels'),
    warnings: () => [],
  }),
  WorkloadGroup: toleratingUnknownFields({
    kind: 'WorkloadGroup',
    ...networking,
    plural: 'workloadgroups',
    decoder: workloadGroup,
    decode: (spec) => decodeWith(workloadGroup, spec),
    warnings: () => [],
  }),
};

export function originalKindName(kind: string): string {
  return ownValue(kinds as Readonly<Record<string, Kind<string, unknown>>>, kind)?.writtenAs ?? kind;
}
