import type { KindName } from './index.ts';

export const revisionLabel = 'istio.io/rev';

export interface MetadataKey {
  /** Kinds on which this control plane or an agent reads the key. */
  readonly kindsThatReadIt?: readonly KindName[];
  readonly belongsToOtherProgram?: true;
  /** Completes "has no effect: …". By default, the message names the kinds. */
  readonly reason?: string;
  /** Values that request the default behaviour and cause no warning. */
  readonly harmless?: RegExp;
}

type MetadataKeys = Readonly<Record<string, MetadataKey>>;

const injectionKey: MetadataKey = { kindsThatReadIt: ['Pod'] };
const notInjectedKey: MetadataKey = { reason: 'the injector of this control plane does not read it' };
const ambientKey: MetadataKey = { reason: 'ambient mode is not supported', harmless: /^(?:none|false)$/i };
const deployerKey: MetadataKey = { kindsThatReadIt: ['KubernetesGateway'] };
const otherProgramKey: MetadataKey = { belongsToOtherProgram: true };
const agentKey: MetadataKey = { kindsThatReadIt: ['Pod'] };
const registrationKey: MetadataKey = { kindsThatReadIt: ['WorkloadEntry'] };
const workloadKey: MetadataKey = { kindsThatReadIt: ['Pod', 'WorkloadEntry'] };

function keysFor(keys: readonly string[], key: MetadataKey): MetadataKeys {
  return Object.fromEntries(keys.map((name) => [name, key]));
}

function keysInDomain(domain: string, names: readonly string[], key: MetadataKey): MetadataKeys {
  return keysFor(
    names.map((name) => `${domain}/${name}`),
    key,
  );
}

export const annotationKeys: MetadataKeys = {
  'networking.istio.io/exportTo': { kindsThatReadIt: ['Service'] },
  'alpha.istio.io/kubernetes-serviceaccounts': { kindsThatReadIt: ['Service'] },
  'alpha.istio.io/canonical-serviceaccounts': { kindsThatReadIt: ['Service'] },
  'traffic.istio.io/nodeSelector': { kindsThatReadIt: ['Service'] },
  'networking.istio.io/traffic-distribution': { reason: 'only spec.trafficDistribution of a Service is read' },
  'istio.io/dry-run': { kindsThatReadIt: ['AuthorizationPolicy'] },
  'kubernetes.io/ingress.class': { kindsThatReadIt: ['Ingress'] },
  'topology.istio.io/controlPlaneClusters': {
    reason: 'this control plane serves all clusters that it has access to',
  },
  ...keysInDomain(
    'istio.io',
    ['autoRegistrationGroup', 'connectedAt', 'disconnectedAt', 'workloadController'],
    registrationKey,
  ),
  'proxy.istio.io/health-checks-enabled': registrationKey,
  ...keysFor(['proxy.istio.io/config', 'status.sidecar.istio.io/port'], agentKey),
  ...keysInDomain(
    'sidecar.istio.io',
    [
      ...['discoveryAddress', 'extraStatTags', 'statsCompression', 'statsEvictionInterval', 'statsFlushInterval'],
      ...['statsHistogramBuckets', 'statsInclusionPrefixes', 'statsInclusionRegexps', 'statsInclusionSuffixes'],
    ],
    agentKey,
  ),
  'traffic.sidecar.istio.io/excludeInterfaces': agentKey,
  ...keysInDomain(
    'traffic.sidecar.istio.io',
    [
      ...['excludeInboundPorts', 'excludeOutboundIPRanges', 'excludeOutboundPorts', 'includeInboundPorts'],
      ...['includeOutboundIPRanges', 'includeOutboundPorts', 'kubevirtInterfaces'],
    ],
    injectionKey,
  ),
  ...keysInDomain(
    'sidecar.istio.io',
    [
      ...['agentLogLevel', 'bootstrapOverride', 'capNetBindService', 'componentLogLevel'],
      ...['interceptionMode', 'logLevel', 'nativeSidecar', 'proxyCPU', 'proxyCPULimit', 'proxyImage'],
      ...['proxyImageType', 'proxyMemory', 'proxyMemoryLimit', 'rewriteAppHTTPProbers', 'userVolume'],
      'userVolumeMount',
    ],
    injectionKey,
  ),
  ...keysInDomain(
    'sidecar.istio.io',
    ['controlPlaneAuthPolicy', 'enableCoreDump', 'containerPorts', 'targetRef'],
    notInjectedKey,
  ),
  'sidecar.istio.io/inject': { ...injectionKey, harmless: /^false$/i },
  ...keysInDomain(
    'readiness.status.sidecar.istio.io',
    ['failureThreshold', 'initialDelaySeconds', 'periodSeconds'],
    injectionKey,
  ),
  'readiness.status.sidecar.istio.io/applicationPorts': notInjectedKey,
  ...keysFor(
    [
      ...['inject.istio.io/templates', 'proxy.istio.io/overrides', 'prometheus.istio.io/merge-metrics'],
      'istio.io/reroute-virtual-interfaces',
    ],
    injectionKey,
  ),
  ...keysInDomain(
    'ambient.istio.io',
    ['bypass-inbound-capture', 'dns-capture', 'waypoint-inbound-binding', 'connect-strategy'],
    ambientKey,
  ),
  ...keysFor(
    [...['gateway.istio.io/name-override', 'gateway.istio.io/service-account', 'networking.istio.io/service-type']],
    deployerKey,
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

export const labelKeys: MetadataKeys = {
  'topology.istio.io/network': {
    kindsThatReadIt: ['Pod', 'WorkloadEntry', 'Service', 'Namespace', 'KubernetesGateway'],
  },
  'topology.istio.io/subzone': { kindsThatReadIt: ['Pod', 'WorkloadEntry', 'Node'] },
  'topology.istio.io/cluster': {
    kindsThatReadIt: ['WorkloadEntry'],
    reason: 'the ID of the cluster is the one of its registry',
  },
  'security.istio.io/tlsMode': workloadKey,
  'service.istio.io/canonical-name': workloadKey,
  'service.istio.io/canonical-revision': workloadKey,
  'service.istio.io/workload-name': { reason: 'the name of a workload follows from the name of its Pod' },
  'networking.istio.io/enable-autoallocate-ip': { kindsThatReadIt: ['ServiceEntry'] },
  'networking.istio.io/gatewayPort': { kindsThatReadIt: ['Service', 'KubernetesGateway'] },
  'experimental.istio.io/disable-gateway-port-translation': { kindsThatReadIt: ['Service', 'ServiceEntry'] },
  'istio.io/persistent-session': { kindsThatReadIt: ['Service', 'ServiceEntry'] },
  'istio.io/draining': workloadKey,
  'gateway.networking.k8s.io/gateway-name': { kindsThatReadIt: ['Service', 'Pod', 'WorkloadEntry'] },
  'sidecar.istio.io/inject': { ...injectionKey, harmless: /^false$/i },
  ...keysInDomain(
    'istio.io',
    [
      ...['dataplane-mode', 'global', 'ingress-use-waypoint', 'use-waypoint', 'use-waypoint-namespace'],
      ...['waypoint-for', 'use-waypoint-cross-namespace'],
    ],
    ambientKey,
  ),
  'networking.istio.io/tunnel': ambientKey,
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
