/**
 * Annotations and labels of Istio, the Gateway API and this project, with the kinds on which each is read. Warnings (`metadata-warnings.ts`) are
 * derived from this table; `test/fields/metadata.test.ts` compares it with the generated configuration.
 */
import type { KindName } from './index.ts';

/** Label of objects, namespaces and pods that selects their control plane revision. */
export const revisionLabel = 'istio.io/rev';

export interface MetadataKey {
  /** Kinds on which this control plane or an agent reads the key. */
  readonly readOn?: readonly KindName[];
  /** Another program writes or reads the key, so it causes no warning. */
  readonly ofAnotherProgram?: true;
  /** Completes "has no effect: …". By default, the message names the kinds. */
  readonly reason?: string;
  /** Values that request the default behaviour and cause no warning. */
  readonly harmless?: RegExp;
}

type Keys = Readonly<Record<string, MetadataKey>>;

const injection: MetadataKey = { readOn: ['Pod'] };
const notInjected: MetadataKey = { reason: 'the injector of this control plane does not read it' };
const ambient: MetadataKey = { reason: 'ambient mode is not supported', harmless: /^(?:none|false)$/i };
const deployer: MetadataKey = { readOn: ['KubernetesGateway'] };
const otherProgramKey: MetadataKey = { ofAnotherProgram: true };
const agent: MetadataKey = { readOn: ['Pod'] };
const registration: MetadataKey = { readOn: ['WorkloadEntry'] };
const workload: MetadataKey = { readOn: ['Pod', 'WorkloadEntry'] };

function keysFor(keys: readonly string[], key: MetadataKey): Keys {
  return Object.fromEntries(keys.map((name) => [name, key]));
}

function keysInDomain(domain: string, names: readonly string[], key: MetadataKey): Keys {
  return keysFor(
    names.map((name) => `${domain}/${name}`),
    key,
  );
}

export const annotationKeys: Keys = {
  'networking.istio.io/exportTo': { readOn: ['Service'] },
  'alpha.istio.io/kubernetes-serviceaccounts': { readOn: ['Service'] },
  'alpha.istio.io/canonical-serviceaccounts': { readOn: ['Service'] },
  'traffic.istio.io/nodeSelector': { readOn: ['Service'] },
  'networking.istio.io/traffic-distribution': { reason: 'only spec.trafficDistribution of a Service is read' },
  'istio.io/dry-run': { readOn: ['AuthorizationPolicy'] },
  'kubernetes.io/ingress.class': { readOn: ['Ingress'] },
  'topology.istio.io/controlPlaneClusters': {
    reason: 'this control plane serves all clusters that it has access to',
  },
  ...keysInDomain(
    'istio.io',
    ['autoRegistrationGroup', 'connectedAt', 'disconnectedAt', 'workloadController'],
    registration,
  ),
  'proxy.istio.io/health-checks-enabled': registration,
  ...keysFor(['proxy.istio.io/config', 'status.sidecar.istio.io/port'], agent),
  ...keysInDomain(
    'sidecar.istio.io',
    [
      ...['discoveryAddress', 'extraStatTags', 'statsCompression', 'statsEvictionInterval', 'statsFlushInterval'],
      ...['statsHistogramBuckets', 'statsInclusionPrefixes', 'statsInclusionRegexps', 'statsInclusionSuffixes'],
    ],
    agent,
  ),
  'traffic.sidecar.istio.io/excludeInterfaces': agent,
  ...keysInDomain(
    'traffic.sidecar.istio.io',
    [
      ...['excludeInboundPorts', 'excludeOutboundIPRanges', 'excludeOutboundPorts', 'includeInboundPorts'],
      ...['includeOutboundIPRanges', 'includeOutboundPorts', 'kubevirtInterfaces'],
    ],
    injection,
  ),
  ...keysInDomain(
    'sidecar.istio.io',
    [
      ...['agentLogLevel', 'bootstrapOverride', 'capNetBindService', 'componentLogLevel'],
      ...['interceptionMode', 'logLevel', 'nativeSidecar', 'proxyCPU', 'proxyCPULimit', 'proxyImage'],
      ...['proxyImageType', 'proxyMemory', 'proxyMemoryLimit', 'rewriteAppHTTPProbers', 'userVolume'],
      'userVolumeMount',
    ],
    injection,
  ),
  ...keysInDomain(
    'sidecar.istio.io',
    ['controlPlaneAuthPolicy', 'enableCoreDump', 'containerPorts', 'targetRef'],
    notInjected,
  ),
  'sidecar.istio.io/inject': { ...injection, harmless: /^false$/i },
  ...keysInDomain(
    'readiness.status.sidecar.istio.io',
    ['failureThreshold', 'initialDelaySeconds', 'periodSeconds'],
    injection,
  ),
  'readiness.status.sidecar.istio.io/applicationPorts': notInjected,
  ...keysFor(
    [
      ...['inject.istio.io/templates', 'proxy.istio.io/overrides', 'prometheus.istio.io/merge-metrics'],
      'istio.io/reroute-virtual-interfaces',
    ],
    injection,
  ),
  ...keysInDomain(
    'ambient.istio.io',
    ['bypass-inbound-capture', 'dns-capture', 'waypoint-inbound-binding', 'connect-strategy'],
    ambient,
  ),
  ...keysFor(
    [...['gateway.istio.io/name-override', 'gateway.istio.io/service-account', 'networking.istio.io/service-type']],
    deployer,
  ),
  'networking.istio.io/address-type': { reason: 'the addresses of a Gateway are all those of its Service' },
  ...keysFor(
    [
      ...['ambient.istio.io/redirection', 'galley.istio.io/analyze-suppress', 'gateway.istio.io/controller-version'],
      ...['install.operator.istio.io/chart-owner', 'install.operator.istio.io/owner-generation'],
      ...['install.operator.istio.io/version', revisionLabel, 'sidecar.istio.io/status'],
      ...['gateway.networking.k8s.io/bundle-version', 'gateway.networking.k8s.io/channel'],
      // Keys on the Secret of the shared CA (src/discovery/ca/shared-root).
      ...['chartpilot/order', 'chartpilot/rotation', 'chartpilot/stands-for'],
    ],
    otherProgramKey,
  ),
};

export const labelKeys: Keys = {
  'topology.istio.io/network': { readOn: ['Pod', 'WorkloadEntry', 'Service', 'Namespace', 'KubernetesGateway'] },
  'topology.istio.io/subzone': { readOn: ['Pod', 'WorkloadEntry', 'Node'] },
  'topology.istio.io/cluster': {
    readOn: ['WorkloadEntry'],
    reason: 'the ID of the cluster is the one of its registry',
  },
  'security.istio.io/tlsMode': workload,
  'service.istio.io/canonical-name': workload,
  'service.istio.io/canonical-revision': workload,
  'service.istio.io/workload-name': { reason: 'the name of a workload follows from the name of its Pod' },
  'networking.istio.io/enable-autoallocate-ip': { readOn: ['ServiceEntry'] },
  'networking.istio.io/gatewayPort': { readOn: ['Service', 'KubernetesGateway'] },
  'experimental.istio.io/disable-gateway-port-translation': { readOn: ['Service', 'ServiceEntry'] },
  'istio.io/persistent-session': { readOn: ['Service', 'ServiceEntry'] },
  'istio.io/draining': workload,
  'gateway.networking.k8s.io/gateway-name': { readOn: ['Service', 'Pod', 'WorkloadEntry'] },
  'sidecar.istio.io/inject': { ...injection, harmless: /^false$/i },
  ...keysInDomain(
    'istio.io',
    [
      ...['dataplane-mode', 'global', 'ingress-use-waypoint', 'use-waypoint', 'use-waypoint-namespace'],
      ...['waypoint-for', 'use-waypoint-cross-namespace'],
    ],
    ambient,
  ),
  'networking.istio.io/tunnel': ambient,
  'gateway.networking.k8s.io/gateway-class-name': otherProgramKey,
  ...keysFor(
    [
      ...['gateway.istio.io/managed', 'istio.io/config', 'istio.io/gateway-name', revisionLabel, 'istio.io/tag'],
      ...['install.operator.istio.io/owning-resource', 'install.operator.istio.io/owning-resource-namespace'],
      ...['operator.istio.io/component', 'operator.istio.io/managed', 'operator.istio.io/version'],
    ],
    otherProgramKey,
  ),
};
