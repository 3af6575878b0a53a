/** The kinds of configuration that are known: how each is recognised and decoded (spec/discovery.md §4.2). */
import { decodeWith } from '../decode.ts';
import { decodeDestinationRule, destinationRuleWarnings } from './destination-rule.decode.ts';
import type { DestinationRule } from './destination-rule.ts';
import { gateway, gatewayWarnings } from './gateway.decode.ts';
import type { Gateway } from './gateway.ts';
import type { Kind } from './kind.ts';
import { kubernetesKinds, type SpecOfKubernetesKind } from './kubernetes/index.ts';
import { serviceEntry, serviceEntryWarnings } from './service-entry.decode.ts';
import type { ServiceEntry } from './service-entry.ts';
import { sidecar, sidecarWarnings } from './sidecar.decode.ts';
import type { Sidecar } from './sidecar.ts';
import { virtualService } from './virtual-service.decode.ts';
import { virtualServiceWarnings } from './virtual-service.rules.ts';
import type { VirtualService } from './virtual-service.ts';
import { workloadEntry } from './workload-entry.decode.ts';
import type { WorkloadEntry } from './workload-entry.ts';

/** The specs by kind. */
export interface SpecOfKind extends SpecOfKubernetesKind {
  readonly DestinationRule: DestinationRule;
  readonly Gateway: Gateway;
  readonly ServiceEntry: ServiceEntry;
  readonly Sidecar: Sidecar;
  readonly VirtualService: VirtualService;
  readonly WorkloadEntry: WorkloadEntry;
}

export type KindName = keyof SpecOfKind;

const networking = {
  group: 'networking.istio.io',
  versions: ['v1', 'v1beta1', 'v1alpha3'],
  scope: 'Namespaced',
  body: 'spec',
} as const;

export const kinds: { readonly [K in KindName]: Kind<K, SpecOfKind[K]> } = {
  ...kubernetesKinds,
  DestinationRule: {
    kind: 'DestinationRule',
    ...networking,
    plural: 'destinationrules',
    decode: decodeDestinationRule,
    warnings: destinationRuleWarnings,
  },
  Gateway: {
    kind: 'Gateway',
    ...networking,
    plural: 'gateways',
    decode: (spec) => decodeWith(gateway, spec),
    warnings: gatewayWarnings,
  },
  ServiceEntry: {
    kind: 'ServiceEntry',
    ...networking,
    plural: 'serviceentries',
    decode: (spec) => decodeWith(serviceEntry, spec),
    warnings: serviceEntryWarnings,
  },
  Sidecar: {
    kind: 'Sidecar',
    ...networking,
    plural: 'sidecars',
    decode: (spec) => decodeWith(sidecar, spec),
    warnings: sidecarWarnings,
  },
  VirtualService: {
    kind: 'VirtualService',
    ...networking,
    plural: 'virtualservices',
    decode: (spec) => decodeWith(virtualService, spec),
    warnings: virtualServiceWarnings,
  },
  WorkloadEntry: {
    kind: 'WorkloadEntry',
    ...networking,
    plural: 'workloadentries',
    decode: (spec) => decodeWith(workloadEntry, spec),
    warnings: () => [],
  },
};
