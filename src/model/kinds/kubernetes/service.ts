import * as E from 'fp-ts/lib/Either.js';
import {
  boolean,
  type Decoder,
  list,
  oneOf,
  optional,
  port,
  required,
  text,
  withDefault,
} from '../../fields/decode.ts';
import { withDescription } from '../../fields/description.ts';
import { withoutEffect } from '../../fields/effect.ts';
import { labels, uncheckedHost } from '../field-rules.ts';
import { maxServiceAddresses, maxServicePorts } from '../object-limits.ts';
import { intOrText, partialStruct } from './lenient.ts';

export interface KubernetesService {
  readonly spec: ServiceSpec;
  readonly status: ServiceStatus;
}

export interface ServiceSpec {
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  /** `None` for a headless service; may be empty. */
  readonly clusterIP: string;
  readonly clusterIPs: readonly string[];
  readonly ports: readonly KubernetesServicePort[];
  /** If absent or empty, endpoints are managed externally. */
  readonly selector?: Readonly<Record<string, string>>;
  readonly externalName: string;
  readonly externalIPs: readonly string[];
  readonly internalTrafficPolicy: 'Cluster' | 'Local';
  readonly publishNotReadyAddresses: boolean;
  /** Not implemented. */
  readonly sessionAffinity?: string;
  /** `PreferClose`, `PreferSameZone` or `PreferSameNode`; other values have no effect. */
  readonly trafficDistribution?: string;
}

export interface KubernetesServicePort {
  readonly name: string;
  readonly port: number;
  readonly protocol: string;
  readonly appProtocol?: string;
  readonly targetPort?: number | string;
  readonly nodePort?: number;
}

export interface ServiceStatus {
  readonly loadBalancer: { readonly ingress: readonly LoadBalancerIngress[] };
}

export interface LoadBalancerIngress {
  readonly ip?: string;
  readonly hostname?: string;
}

const servicePort = partialStruct<KubernetesServicePort>({
  name: withDefault(text, ''),
  port: required(port),
  protocol: withDefault(text, 'TCP'),
  appProtocol: optional(text),
  targetPort: optional(intOrText),
  nodePort: optional(integerOrNone()),
});

/** Decodes 0 as absent, because API servers write 0 for an unassigned port. */
function integerOrNone(): Decoder<number> {
  return withDescription((value: unknown, path: string) => (value === 0 ? E.right(0) : port(value, path)), {
    ...{ type: 'narrowed', decoder: port, validation: {} },
  });
}

const ignoredSpecFields = [
  ...['allocateLoadBalancerNodePorts', 'externalTrafficPolicy', 'healthCheckNodePort', 'loadBalancerClass'],
  ...['loadBalancerIP', 'loadBalancerSourceRanges', 'ipFamilies', 'ipFamilyPolicy', 'sessionAffinityConfig'],
];

export const kubernetesService: Decoder<KubernetesService> = partialStruct<KubernetesService>({
  spec: required(
    partialStruct<ServiceSpec>(
      {
        type: withDefault(oneOf(['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName']), 'ClusterIP'),
        clusterIP: withDefault(text, ''),
        clusterIPs: withDefault(list(text, maxServiceAddresses), []),
        ports: withDefault(list(servicePort, maxServicePorts), []),
        selector: optional(labels),
        externalName: withDefault(uncheckedHost, ''),
        externalIPs: withDefault(list(text, maxServiceAddresses), []),
        internalTrafficPolicy: withDefault(oneOf(['Cluster', 'Local']), 'Cluster'),
        publishNotReadyAddresses: withDefault(boolean, false),
        sessionAffinity: withoutEffect(
          optional(text),
          'proxies choose an endpoint for each connection or request: a DestinationRule with consistentHash keeps clients together',
          ['None'],
        ),
        trafficDistribution: optional(text),
      },
      ignoredSpecFields,
    ),
  ),
  status: withDefault(
    partialStruct<ServiceStatus>(
      {
        loadBalancer: withDefault(
          partialStruct<ServiceStatus['loadBalancer']>({
            ingress: withDefault(
              list(
                partialStruct<LoadBalancerIngress>({ ip: optional(text), hostname: optional(text) }, [
                  'ipMode',
                  'ports',
                ]),
              ),
              [],
            ),
          }),
          { ingress: [] },
        ),
      },
      ['conditions'],
    ),
    { loadBalancer: { ingress: [] } },
  ),
});
