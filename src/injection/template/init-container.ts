/** The init container redirects the traffic of a pod, or checks the redirection by a CNI plugin. */
import type { Container, Json } from '../pod/pod.ts';
import { annotationOf, initContainerName, validationContainerName } from '../pod/pod.ts';
import {
  addedEnvironment,
  annotationOrSetting,
  envoyMetricsPort,
  healthPort,
  imageOf,
  interceptionModeOf,
  resourcesOf,
  restrictedSecurityContext,
  type TemplateInput,
} from './template-input.ts';

const trafficPrefix = 'traffic.sidecar.istio.io';

export function initContainer(input: TemplateInput): Container | undefined {
  if (interceptionModeOf(input) === 'NONE') return undefined;
  const { settings } = input;
  const { values } = settings;
  const { enabled: usesCni } = values.cni;
  const environment = addedEnvironment(input);
  return {
    name: usesCni ? validationContainerName : initContainerName,
    image: imageOf(input, values.initImage),
    ...(values.imagePullPolicy && { imagePullPolicy: values.imagePullPolicy }),
    args: [
      ...redirectionArgs(input),
      `--log_output_level=${annotationOrSetting(input.pod, 'sidecar.istio.io/agentLogLevel', values.agentLogLevel)}`,
      ...(values.logAsJson ? ['--log_as_json'] : []),
      ...(usesCni ? ['--run-validation', '--skip-rule-apply'] : []),
    ],
    ...(environment.length > 0 && { env: environment }),
    resources: resourcesOf(input),
    securityContext: usesCni ? restrictedSecurityContext(input) : initSecurityContext(values.privileged),
  };
}

function redirectionArgs(input: TemplateInput): string[] {
  const { pod, settings, statusPort } = input;
  const { values } = settings;
  const optional = (flag: string, value: string): string[] => (value === '' ? [] : [flag, value]);
  const excludedPorts = annotationOrSetting(
    pod,
    `${trafficPrefix}/excludeInboundPorts`,
    values.excludeInboundPorts,
  ).split(',');
  const localPorts = [envoyMetricsPort, healthPort, statusPort].filter((port) => port > 0).map(String);
  const virtualInterfaces =
    annotationOf(pod, 'istio.io/reroute-virtual-interfaces') ??
    annotationOrSetting(pod, `${trafficPrefix}/kubevirtInterfaces`, '');
  return [
    ...['istio-iptables', '-p', '15001', '-z', '15006', '-u', String(redirectedUid(input))],
    ...['-m', interceptionModeOf(input)],
    ...['-i', annotationOrSetting(pod, `${trafficPrefix}/includeOutboundIPRanges`, values.includeIPRanges)],
    ...['-x', annotationOrSetting(pod, `${trafficPrefix}/excludeOutboundIPRanges`, values.excludeIPRanges)],
    ...['-b', annotationOrSetting(pod, `${trafficPrefix}/includeInboundPorts`, values.includeInboundPorts)],
    ...['-d', [...new Set([...localPorts, ...excludedPorts.map((port) => port.trim()).filter(Boolean)])].join(',')],
    ...optional('-q', annotationOrSetting(pod, `${trafficPrefix}/includeOutboundPorts`, values.includeOutboundPorts)),
    ...optional('-o', annotationOrSetting(pod, `${trafficPrefix}/excludeOutboundPorts`, values.excludeOutboundPorts)),
    ...optional('-k', virtualInterfaces),
    ...optional('-c', annotationOrSetting(pod, `${trafficPrefix}/excludeInterfaces`, '')),
    ...(values.nativeNftables ? ['--native-nftables'] : []),
  ];
}

/** With TPROXY the proxy runs as root, so its group is excluded from redirection. */
function redirectedUid(input: TemplateInput): number {
  return interceptionModeOf(input) === 'TPROXY' ? input.proxyGid : input.proxyUid;
}

/** iptables needs both capabilities and uid 0. A `restartPolicy` would make the container a sidecar. */
function initSecurityContext(privileged: boolean): Json {
  return {
    allowPrivilegeEscalation: privileged,
    capabilities: { add: ['NET_ADMIN', 'NET_RAW'], drop: ['ALL'] },
    privileged,
    readOnlyRootFilesystem: false,
    runAsGroup: 0,
    runAsNonRoot: false,
    runAsUser: 0,
  };
}

export function cniAnnotations(input: TemplateInput): Readonly<Record<string, string>> {
  const { pod, settings, statusPort } = input;
  const { values } = settings;
  if (!values.cni.enabled) return {};
  const excludedPorts = annotationOrSetting(pod, `${trafficPrefix}/excludeInboundPorts`, values.excludeInboundPorts)
    .split(',')
    .map((port) => port.trim())
    .filter(Boolean);
  const writtenAnnotations = {
    'sidecar.istio.io/interceptionMode': interceptionModeOf(input),
    [`${trafficPrefix}/includeOutboundIPRanges`]: annotationOrSetting(
      pod,
      `${trafficPrefix}/includeOutboundIPRanges`,
      values.includeIPRanges,
    ),
    [`${trafficPrefix}/excludeOutboundIPRanges`]: annotationOrSetting(
      pod,
      `${trafficPrefix}/excludeOutboundIPRanges`,
      values.excludeIPRanges,
    ),
    [`${trafficPrefix}/includeInboundPorts`]: annotationOrSetting(
      pod,
      `${trafficPrefix}/includeInboundPorts`,
      values.includeInboundPorts,
    ),
    [`${trafficPrefix}/excludeInboundPorts`]: [
      ...new Set([...(statusPort > 0 ? [String(statusPort)] : []), ...excludedPorts]),
    ].join(','),
  };
  const optional = {
    [`${trafficPrefix}/includeOutboundPorts`]: annotationOrSetting(
      pod,
      `${trafficPrefix}/includeOutboundPorts`,
      values.includeOutboundPorts,
    ),
    [`${trafficPrefix}/excludeOutboundPorts`]: annotationOrSetting(
      pod,
      `${trafficPrefix}/excludeOutboundPorts`,
      values.excludeOutboundPorts,
    ),
    ...(values.cni.provider === 'multus' && { 'k8s.v1.cni.cncf.io/networks': multusNetworks(pod) }),
  };
  return { ...writtenAnnotations, ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== '')) };
}

/** Adds the CNI plugin to the networks, because Multus runs only listed plugins. The annotation has names separated by commas, or JSON. */
function multusNetworks(pod: TemplateInput['pod']): string {
  const networks = annotationOf(pod, 'k8s.v1.cni.cncf.io/networks')?.trim() ?? '';
  if (networks === '') return 'default/istio-cni';
  if (/(^|[\s,"/])istio-cni($|[\s,"])/.test(networks)) return networks;
  if (!networks.startsWith('[')) return `${networks}, default/istio-cni`;
  return `${networks.slice(0, -1)}, {"name": "istio-cni", "namespace": "default"}]`;
}
