import { isDeepStrictEqual } from 'node:util';
import { defaultProxyConfig, proxyConfigToJson } from '../../model/mesh/proxy-config.ts';
import {
  annotationOf,
  type Container,
  type EnvironmentVariable,
  isSidecarContainer,
  type Json,
  labelOf,
  type Pod,
  proxyContainerName,
  type Volume,
} from '../pod/pod.ts';
import {
  addedEnvironment,
  annotationOrSetting,
  booleanAnnotationOrSetting,
  envoyMetricsPort,
  fieldVariable,
  healthPort,
  imageOf,
  interceptionModeOf,
  resourcesOf,
  type TemplateInput,
} from './template-input.ts';

export type ProxyContainerRole = 'sidecar' | 'router';

const bootstrapOverrideFolder = '/etc/istio/custom-bootstrap';
const bootstrapOverrideFile = 'custom_bootstrap.json';

export function proxyContainer(input: TemplateInput, role: ProxyContainerRole): Container {
  const { settings } = input;
  const { values } = settings;
  return {
    name: proxyContainerName,
    image: imageOf(input, values.image),
    ...(values.imagePullPolicy && { imagePullPolicy: values.imagePullPolicy }),
    ports: [{ containerPort: envoyMetricsPort, name: 'http-envoy-prom', protocol: 'TCP' }],
    args: proxyArgs(input, role),
    env: proxyEnvironment(input),
    ...probesOf(input),
    resources: resourcesOf(input),
    volumeMounts: mountsOf(input),
  };
}

function proxyArgs({ pod, settings }: TemplateInput, role: ProxyContainerRole): string[] {
  const { values } = settings;
  const componentLevels = annotationOrSetting(pod, 'sidecar.istio.io/componentLogLevel', values.componentLogLevel);
  return [
    ...['proxy', role, '--domain', `$(POD_NAMESPACE).svc.${values.clusterDomain}`],
    `--proxyLogLevel=${annotationOrSetting(pod, 'sidecar.istio.io/logLevel', values.logLevel)}`,
    ...(componentLevels === '' ? [] : [`--proxyComponentLogLevel=${componentLevels}`]),
    `--log_output_level=${annotationOrSetting(pod, 'sidecar.istio.io/agentLogLevel', values.agentLogLevel)}`,
    ...(values.logAsJson ? ['--log_as_json'] : []),
  ];
}

/** Order matters: the last variable of a name applies, and `$(NAME)` refers to earlier variables. */
function proxyEnvironment(input: TemplateInput): readonly EnvironmentVariable[] {
  const { pod, namespace, workload, settings, mesh, proxyConfig } = input;
  const { values, revision } = settings;
  const network = labelOf(pod, 'topology.istio.io/network') ?? values.network;
  const caAddress = values.caAddress || `istiod${revision ? `-${revision}` : ''}.${values.istioNamespace}.svc:15012`;
  const override = annotationOf(pod, 'sidecar.istio.io/bootstrapOverride');
  const limitVariable = (name: string, resource: string): EnvironmentVariable => ({
    name,
    valueFrom: { resourceFieldRef: { resource, divisor: '1' } },
  });
  const metaVariable = (name: string, value: string): EnvironmentVariable => ({ name: `ISTIO_META_${name}`, value });
  const { apiVersion, kind, name } = workload;
  return [
    { name: 'PILOT_CERT_PROVIDER', value: values.pilotCertProvider },
    { name: 'CA_ADDR', value: caAddress },
    fieldVariable('POD_NAME', 'metadata.name'),
    fieldVariable('POD_NAMESPACE', 'metadata.namespace'),
    fieldVariable('INSTANCE_IP', 'status.podIP'),
    fieldVariable('SERVICE_ACCOUNT', 'spec.serviceAccountName'),
    fieldVariable('HOST_IP', 'status.hostIP'),
    limitVariable('ISTIO_CPU_LIMIT', 'limits.cpu'),
    { name: 'PROXY_CONFIG', value: JSON.stringify(changedFields(proxyConfig)) },
    metaVariable('POD_PORTS', JSON.stringify(declaredPorts(pod))),
    metaVariable(
      'APP_CONTAINERS',
      pod.spec.containers
        .filter((container) => !isSidecarContainer(container))
        .map((container) => container.name)
        .join(','),
    ),
    limitVariable('GOMEMLIMIT', 'limits.memory'),
    metaVariable('CLUSTER_ID', values.clusterName),
    fieldVariable('ISTIO_META_NODE_NAME', 'spec.nodeName'),
    metaVariable('INTERCEPTION_MODE', interceptionModeOf(input)),
    ...(network ? [metaVariable('NETWORK', network)] : []),
    metaVariable('WORKLOAD_NAME', labelOf(pod, 'service.istio.io/workload-name') ?? name),
    metaVariable(
      'OWNER',
      `kubernetes://apis/${apiVersion}/namespaces/${namespace || 'default'}/${kind.toLowerCase()}s/${name}`,
    ),
    metaVariable('MESH_ID', values.meshId || mesh.trustDomain),
    { name: 'TRUST_DOMAIN', value: mesh.trustDomain },
    ...(override
      ? [{ name: 'ISTIO_BOOTSTRAP_OVERRIDE', value: `${bootstrapOverrideFolder}/${bootstrapOverrideFile}` }]
      : []),
    ...addedEnvironment(input),
  ];
}

function changedFields(config: TemplateInput['proxyConfig']): Json {
  const changedEntries = Object.entries(config).filter(
    ([field, value]) => !isDeepStrictEqual(value, (defaultProxyConfig as unknown as Json)[field]),
  );
  return proxyConfigToJson(Object.fromEntries(changedEntries));
}

/** The control plane reads the ports of all containers from the node metadata. */
function declaredPorts({ spec }: Pod): Json[] {
  return spec.containers.flatMap(({ ports = [] }) =>
    ports.map(({ name, containerPort, protocol }) => ({
      ...(name && { name }),
      containerPort,
      ...(protocol && { protocol }),
    })),
  );
}

function probesOf({ pod, settings, statusPort }: TemplateInput): Json {
  if (statusPort === 0) return {};
  const { readiness, startupProbe, startupFailureThreshold } = settings.values;
  const number = (name: string, setting: number): number =>
    Number(annotationOf(pod, `readiness.status.sidecar.istio.io/${name}`) ?? setting);
  const httpGet = { path: '/healthz/ready', port: healthPort };
  return {
    readinessProbe: {
      httpGet,
      initialDelaySeconds: number('initialDelaySeconds', readiness.initialDelaySeconds),
      periodSeconds: number('periodSeconds', readiness.periodSeconds),
      timeoutSeconds: 3,
      failureThreshold: number('failureThreshold', readiness.failureThreshold),
    },
    ...(startupProbe && {
      startupProbe: { httpGet, periodSeconds: 1, timeoutSeconds: 3, failureThreshold: startupFailureThreshold },
    }),
  };
}

/** The hooks drain after the applications have ended, or delay the start of the applications until the proxy is ready. */
export function sidecarLifecycle({ settings, isNative, proxyConfig, statusPort }: TemplateInput): Json {
  const { lifecycle } = settings.values;
  const exec = (...command: readonly string[]): Json => ({ exec: { command: ['pilot-agent', ...command] } });
  if (lifecycle !== undefined) return { lifecycle };
  if (isNative) {
    return { lifecycle: { preStop: exec('request', `--debug-port=${statusPort}`, 'POST', 'drain') } };
  }
  return proxyConfig.holdApplicationUntilProxyStarts === true ? { lifecycle: { postStart: exec('wait') } } : {};
}

export function proxySecurityContext(input: TemplateInput): Json {
  const { pod, settings, proxyUid, proxyGid } = input;
  const { privileged } = settings.values;
  const isTproxy = interceptionModeOf(input) === 'TPROXY';
  const bindsPorts = booleanAnnotationOrSetting(pod, 'sidecar.istio.io/capNetBindService', false);
  const addedCapabilities = [...(isTproxy ? ['NET_ADMIN'] : []), ...(bindsPorts ? ['NET_BIND_SERVICE'] : [])];
  const runsAsRoot = isTproxy || bindsPorts;
  return {
    allowPrivilegeEscalation: privileged,
    capabilities: { ...(addedCapabilities.length > 0 && { add: addedCapabilities }), drop: ['ALL'] },
    privileged,
    readOnlyRootFilesystem: true,
    runAsGroup: proxyGid,
    runAsNonRoot: !runsAsRoot,
    runAsUser: runsAsRoot ? 0 : proxyUid,
  };
}

const fixedMounts = [
  { name: 'workload-socket', mountPath: '/var/run/secrets/workload-spiffe-uds' },
  { name: 'credential-socket', mountPath: '/var/run/secrets/credential-uds' },
  { name: 'workload-certs', mountPath: '/var/run/secrets/workload-spiffe-credentials' },
  { name: 'istiod-ca-cert', mountPath: '/var/run/secrets/istio' },
  { name: 'istio-ca-crl', mountPath: '/var/run/secrets/istio/crl' },
  { name: 'istio-data', mountPath: '/var/lib/istio/data' },
  { name: 'istio-envoy', mountPath: '/etc/istio/proxy' },
  { name: 'istio-token', mountPath: '/var/run/secrets/tokens' },
  { name: 'istio-podinfo', mountPath: '/etc/istio/pod' },
];

function mountsOf({ pod }: TemplateInput): Json[] {
  const override = annotationOf(pod, 'sidecar.istio.io/bootstrapOverride');
  return [
    ...fixedMounts,
    ...(override ? [{ name: 'custom-bootstrap-volume', mountPath: bootstrapOverrideFolder }] : []),
    ...namedObjects(pod, 'sidecar.istio.io/userVolumeMount'),
  ];
}

const podInfo = (path: string): Json => ({ path, fieldRef: { fieldPath: `metadata.${path}` } });

/** The names of these volumes are reserved in injected pods. */
export function proxyVolumes({ pod }: TemplateInput): readonly Volume[] {
  const override = annotationOf(pod, 'sidecar.istio.io/bootstrapOverride');
  const token = { path: 'istio-token', expirationSeconds: 43_200, audience: 'istio-ca' };
  return [
    { name: 'workload-socket', emptyDir: {} },
    { name: 'credential-socket', emptyDir: {} },
    { name: 'workload-certs', emptyDir: {} },
    { name: 'istio-envoy', emptyDir: { medium: 'Memory' } },
    { name: 'istio-data', emptyDir: {} },
    { name: 'istio-podinfo', downwardAPI: { items: [podInfo('labels'), podInfo('annotations')] } },
    { name: 'istio-token', projected: { sources: [{ serviceAccountToken: token }] } },
    { name: 'istiod-ca-cert', configMap: { name: 'istio-ca-root-cert' } },
    { name: 'istio-ca-crl', configMap: { name: 'istio-ca-crl', optional: true } },
    ...(override ? [{ name: 'custom-bootstrap-volume', configMap: { name: override } }] : []),
    ...(namedObjects(pod, 'sidecar.istio.io/userVolume') as Volume[]),
  ];
}

function namedObjects(pod: Pod, annotation: string): Json[] {
  const value = annotationOf(pod, annotation);
  if (value === undefined) return [];
  return Object.entries(JSON.parse(value) as Json).map(([name, fields]) => ({ name, ...(fields as Json) }));
}
