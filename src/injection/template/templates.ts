import { revisionLabel } from '../../model/kinds/metadata-keys.ts';
import { type Container, isSidecarContainer, labelOf } from '../pod/pod.ts';
import { cniAnnotations, initContainer } from './init-container.ts';
import { proxyContainer, proxySecurityContext, proxyVolumes, sidecarLifecycle } from './proxy-container.ts';
import {
  imageOf,
  labelValue,
  restrictedSecurityContext,
  type TemplateInput,
  type TemplatePod,
} from './template-input.ts';

export const builtInTemplates: Readonly<Record<string, (input: TemplateInput) => TemplatePod>> = {
  sidecar: sidecarTemplate,
  gateway: gatewayTemplate,
  'grpc-agent': grpcAgentTemplate,
};

function sidecarTemplate(input: TemplateInput): TemplatePod {
  const { isNative } = input;
  const proxy: Container = {
    ...proxyContainer(input, 'sidecar'),
    ...sidecarLifecycle(input),
    securityContext: proxySecurityContext(input),
    ...(isNative && { restartPolicy: 'Always' }),
  };
  const init = initContainer(input);
  const initContainers = [...(init ? [init] : []), ...(isNative ? [proxy] : [])];
  return {
    metadata: {
      labels: { ...tlsModeLabel(input), ...canonicalLabels(input) },
      annotations: { ...commonAnnotations(input), ...cniAnnotations(input) },
    },
    spec: {
      ...(initContainers.length > 0 && { initContainers }),
      ...(!isNative && { containers: [proxy] }),
      ...podFields(input),
    },
  };
}

/** Envoy is the only container of a gateway; the pod has a container `istio-proxy` with image `auto`. */
function gatewayTemplate(input: TemplateInput): TemplatePod {
  const { gateways } = input.settings.values;
  const proxy: Container = {
    ...proxyContainer(input, 'router'),
    securityContext: restrictedSecurityContext(input),
  };
  return {
    metadata: { labels: canonicalLabels(input), annotations: commonAnnotations(input) },
    spec: {
      containers: [proxy],
      // Allows ports below 1024 without a capability.
      securityContext: gateways.securityContext ?? {
        sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
        ...(gateways.seccompProfile && { seccompProfile: gateways.seccompProfile }),
      },
      ...podFields(input),
    },
  };
}

const grpcFolder = '/etc/istio/proxy';
const grpcBootstrapFile = `${grpcFolder}/grpc-bootstrap.json`;
const certificateFolder = '/var/lib/istio/data';

/** Runs the agent without Envoy, and adds the environment for gRPC to the application. */
function grpcAgentTemplate(input: TemplateInput): TemplatePod {
  const proxy = proxyContainer(input, 'sidecar');
  const agent: Container = {
    ...proxy,
    env: [
      ...(proxy.env ?? []),
      { name: 'ISTIO_META_GENERATOR', value: 'grpc' },
      { name: 'OUTPUT_CERTS', value: certificateFolder },
      { name: 'GRPC_XDS_BOOTSTRAP', value: grpcBootstrapFile },
    ],
    ...agentReadinessProbe(input),
    ...sidecarLifecycle(input),
    securityContext: proxySecurityContext(input),
    ...(input.isNative && { restartPolicy: 'Always' }),
  };
  const applications = input.pod.spec.containers
    .filter((container) => !isSidecarContainer(container))
    .map(({ name }) => ({
      name,
      env: [{ name: 'GRPC_XDS_BOOTSTRAP', value: grpcBootstrapFile }],
      volumeMounts: [
        { name: 'istio-envoy', mountPath: grpcFolder, readOnly: true },
        { name: 'istio-data', mountPath: certificateFolder, readOnly: true },
      ],
    }));
  return {
    metadata: {
      labels: { ...tlsModeLabel(input), ...canonicalLabels(input) },
      annotations: commonAnnotations(input),
    },
    spec: {
      containers: [...(input.isNative ? [] : [agent]), ...applications],
      ...(input.isNative && { initContainers: [agent] }),
      ...podFields(input),
    },
  };
}

/** Without Envoy, there is no readiness listener. */
function agentReadinessProbe({ statusPort }: TemplateInput): object {
  if (statusPort === 0) return {};
  const httpGet = { path: '/healthz/ready', port: statusPort };
  return {
    readinessProbe: { httpGet, periodSeconds: 15, timeoutSeconds: 3, failureThreshold: 4 },
    startupProbe: { httpGet, periodSeconds: 1, timeoutSeconds: 3, failureThreshold: 600 },
  };
}

function podFields(input: TemplateInput): object {
  const { imagePullSecrets } = input.settings.values;
  return {
    volumes: proxyVolumes(input),
    ...(imagePullSecrets.length > 0 && { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) }),
  };
}

/** The label makes clients use mutual TLS. */
function tlsModeLabel({ pod }: TemplateInput): Readonly<Record<string, string>> {
  const name = 'security.istio.io/tlsMode';
  return { [name]: labelOf(pod, name) || 'istio' };
}

function canonicalLabels({ pod, workload, settings }: TemplateInput): Readonly<Record<string, string>> {
  const firstLabelValue = (...names: readonly string[]): string | undefined =>
    names.map((name) => labelOf(pod, name)).find((value) => value !== undefined && value !== '');
  const { network } = settings.values;
  return {
    'service.istio.io/canonical-name': labelValue(
      firstLabelValue('service.istio.io/canonical-name', 'app.kubernetes.io/name', 'app') ?? workload.name,
    ),
    'service.istio.io/canonical-revision': labelValue(
      firstLabelValue('service.istio.io/canonical-revision', 'app.kubernetes.io/version', 'version') ?? 'latest',
    ),
    ...(network && { 'topology.istio.io/network': labelOf(pod, 'topology.istio.io/network') ?? network }),
  };
}

function commonAnnotations({ pod, settings }: TemplateInput): Readonly<Record<string, string>> {
  const [firstContainer] = pod.spec.containers.filter((container) => !isSidecarContainer(container));
  const keys = ['kubectl.kubernetes.io/default-container', 'kubectl.kubernetes.io/default-logs-container'];
  const namedTemplates = keys.flatMap((key) => {
    const name = pod.metadata.annotations?.[key] ?? firstContainer?.name;
    return name === undefined ? [] : [[key, name] as const];
  });
  return { [revisionLabel]: settings.revision || 'default', ...Object.fromEntries(namedTemplates) };
}

/** The image identifies proxies among application containers. */
export function proxyImageOf(input: TemplateInput): string {
  return imageOf(input, input.settings.values.image);
}
