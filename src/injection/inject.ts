import * as E from 'fp-ts/lib/Either.js';
import { type Decoded, fail } from '../model/fields/decode.ts';
import * as violation from '../model/fields/violation.ts';
import type { MeshConfig } from '../model/mesh/mesh-config.ts';
import { defaultProxyConfig, type ProxyConfig } from '../model/mesh/proxy-config.ts';
import type { ProxyConfigWorkload } from '../model/push-context/workload-proxy-config.ts';
import { isObject } from '../runtime/json-object.ts';
import { annotationErrors, parseProxyConfig } from './decision/annotations.ts';
import { MergeError, mergeContainer, mergePod } from './merge/strategic-merge.ts';
import {
  type ContainerOverrides,
  type InjectionStatus,
  metricsVariable,
  overridesKey,
  probesVariable,
  replacedTexts,
  statusKey,
  withoutEarlierInjection,
} from './pod/earlier-injection.ts';
import {
  allContainersOf,
  annotationOf,
  applicationContainersOf,
  type Container,
  initContainerName,
  isSidecarContainer,
  type Json,
  type Pod,
  proxyContainerName,
  type SecurityContext,
  type Texts,
  userOf,
  validationContainerName,
  withAnnotations,
} from './pod/pod.ts';
import { workloadOf } from './pod/pod-controller.ts';
import { type RedirectedProbes, redirectProbes } from './pod/probes.ts';
import { mergesMetrics, scrapeSettingsOf, withMergedMetrics } from './pod/prometheus.ts';
import { duplicateErrors, podErrors, redirectsTraffic } from './pod-checks.ts';
import type { InjectionSettings } from './settings.ts';
import { goTemplateCall, type RenderGoTemplate, rejectGoTemplate } from './template/go-template.ts';
import { initContainer } from './template/init-container.ts';
import {
  booleanAnnotationOrSetting,
  interceptionModeOf,
  type TemplateInput,
  type TemplatePod,
} from './template/template-input.ts';
import { builtInTemplates } from './template/templates.ts';

export interface InjectionRequest {
  readonly pod: Pod;
  readonly namespace: string;
  readonly settings: InjectionSettings;
  readonly mesh: MeshConfig;
  /** Merges the mesh default, the ProxyConfig objects that apply to the pod, and the pod's annotation. */
  readonly proxyConfigFor: ProxyConfigSource;
  readonly addedEnvironment?: Texts;
  /** The default is 1337; OpenShift assigns each namespace a range. */
  readonly proxyUid?: number;
  readonly proxyGid?: number;
  /** If absent, pods with a Go template are rejected. */
  readonly renderGoTemplate?: RenderGoTemplate;
  /** Used if no setting decides; the default is true. */
  readonly supportsNativeSidecars?: (nodeName: string | undefined) => boolean;
}

export type ProxyConfigSource = (workload: ProxyConfigWorkload) => ProxyConfig;

/** User and group of the proxy in Istio's images. */
export const defaultProxyUid = 1337;

/**
 * Merges the templates into the pod. Injecting the result again returns the same pod.
 *
 * @returns the pod, or all errors; the API server shows them in the events of the ReplicaSet
 */
export function injectPod(request: InjectionRequest): Decoded<Pod> {
  const [firstError, ...otherErrors] = annotationErrors(request.pod);
  if (firstError !== undefined) return E.left([firstError, ...otherErrors]);
  const { pod: uninjectedPod, injectedVolumes } = withoutEarlierInjection(request.pod);
  const input = templateInputOf(request, uninjectedPod);
  const names = templateNamesOf(input.pod, request.settings);
  const builtTemplates = buildTemplates(names, input, request.renderGoTemplate ?? rejectGoTemplate);
  if (E.isLeft(builtTemplates)) return builtTemplates;
  try {
    const template = builtTemplates.right.reduce<TemplatePod>((pod, part) => mergePod(pod, part), {});
    const [error, ...otherPodErrors] = podErrors(input, template, injectedVolumes);
    if (error !== undefined) return E.left([error, ...otherPodErrors]);
    const pod = patchedPod(input, template, request);
    const [duplicate, ...otherDuplicates] = duplicateErrors(pod);
    return duplicate === undefined ? E.right(pod) : E.left([duplicate, ...otherDuplicates]);
  } catch (error) {
    if (error instanceof MergeError)
      return fail('metadata.annotations["inject.istio.io/templates"]', violation.malformedValue(error.message));
    throw error;
  }
}

function templateInputOf(request: InjectionRequest, uninjectedPod: Pod): TemplateInput {
  const { settings, mesh, namespace } = request;
  const annotationConfig = parseProxyConfig(annotationOf(request.pod, 'proxy.istio.io/config') ?? '');
  const proxyConfig = request.proxyConfigFor({
    namespace,
    labels: request.pod.metadata.labels ?? {},
    ...(E.isRight(annotationConfig) && { annotation: annotationConfig.right }),
  });
  const meshStatusPort =
    proxyConfig.statusPort === defaultProxyConfig.statusPort ? settings.values.statusPort : proxyConfig.statusPort;
  const statusPort = Number(annotationOf(request.pod, 'status.sidecar.istio.io/port') ?? meshStatusPort);
  const pod = withSidecarLast(uninjectedPod);
  const proxyUid = request.proxyUid ?? defaultProxyUid;
  const isNativeSidecar =
    booleanAnnotationOrSetting(pod, 'sidecar.istio.io/nativeSidecar', nativeByDefault(request)) &&
    // A pod needs at least one regular container.
    pod.spec.containers.some(({ name }) => name !== proxyContainerName);
  return {
    ...{ pod, namespace, settings, mesh, proxyUid, isNative: isNativeSidecar, statusPort },
    workload: workloadOf(pod),
    proxyConfig: { ...proxyConfig, statusPort },
    proxyGid: request.proxyGid ?? proxyUid,
  };
}

function nativeByDefault({ pod, settings, supportsNativeSidecars = () => true }: InjectionRequest): boolean {
  const { nativeSidecars } = settings.values;
  return nativeSidecars === 'auto' ? supportsNativeSidecars(pod.spec.nodeName) : nativeSidecars;
}

/** Sorts containers, because injecting a pod again must not change their order. */
function withSidecarLast(pod: Pod): Pod {
  const { containers, initContainers } = pod.spec;
  const key = (container: Container): string => (isSidecarContainer(container) ? container.name : '');
  const sortContainers = (list: readonly Container[]): Container[] =>
    list.toSorted((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
  return {
    ...pod,
    spec: {
      ...pod.spec,
      containers: sortContainers(containers),
      ...(initContainers && { initContainers: sortContainers(initContainers) }),
    },
  };
}

/** An alias names several templates. */
function templateNamesOf(pod: Pod, { config }: InjectionSettings): readonly string[] {
  const writtenTemplates = annotationOf(pod, 'inject.istio.io/templates');
  const names =
    writtenTemplates === undefined ? config.defaultTemplates : writtenTemplates.split(',').map((name) => name.trim());
  return names
    .filter(Boolean)
    .flatMap((name) => (Object.hasOwn(config.aliases, name) ? config.aliases[name]! : [name]));
}

function buildTemplates(
  names: readonly string[],
  input: TemplateInput,
  render: RenderGoTemplate,
): Decoded<readonly TemplatePod[]> {
  const { config, writtenValues } = input.settings;
  const { templates, goTemplates } = config;
  const templateNames = [
    ...new Set([...Object.keys(builtInTemplates), ...Object.keys(templates), ...Object.keys(goTemplates)]),
  ];
  const unknownName = names.find((name) => !templateNames.includes(name));
  if (unknownName !== undefined) {
    return fail(
      'metadata.annotations["inject.istio.io/templates"]',
      violation.unknownValue(templateNames, unknownName),
    );
  }
  const templateResults = names.map((name) => {
    if (Object.hasOwn(goTemplates, name))
      return render(goTemplateCall(name, goTemplates[name]!, input, writtenValues ?? {}));
    return E.right(Object.hasOwn(templates, name) ? templates[name]! : builtInTemplates[name]!(input));
  });
  return E.sequenceArray(templateResults);
}

function patchedPod(input: TemplateInput, template: TemplatePod, request: InjectionRequest): Pod {
  const overrides = overridesIn(input.pod, template);
  const base = withoutContainers(input.pod, overrides);
  const mergedPod = mergePod(base, template);
  const withNames = withUserOverrides(
    mergedPod,
    redirectsTraffic(template) ? withUsableUser(overrides, input) : overrides,
  );
  const withUrl = withProxyEnvironment(withNames, request.addedEnvironment ?? {});
  const podWithMetrics = mergedMetrics(withUrl, input);
  const podWithProbes = redirectedProbes(podWithMetrics, input);
  const podWithUser = redirectsTraffic(template) ? withRedirectedUser(podWithProbes, input) : podWithProbes;
  return withReportedInjection(orderContainers(podWithUser, input), template, overrides, input);
}

function overridesIn({ spec }: Pod, template: TemplatePod): ContainerOverrides {
  const { containers = [], initContainers = [] } = (template.spec ?? {}) as Partial<Pod['spec']>;
  const addedNames = new Set([...containers, ...initContainers].filter(isSidecarContainer).map(({ name }) => name));
  const overridingContainers = (list: readonly Container[] = []): Container[] =>
    list.filter(({ name }) => addedNames.has(name));
  return {
    containers: overridingContainers(spec.containers),
    initContainers: overridingContainers(spec.initContainers),
  };
}

function withoutContainers(pod: Pod, { containers, initContainers }: ContainerOverrides): Pod {
  const { initContainers: podInitContainers, ...spec } = pod.spec;
  const keptContainers = podInitContainers?.filter((container) => !initContainers.includes(container));
  return {
    ...pod,
    spec: {
      ...spec,
      containers: spec.containers.filter((container) => !containers.includes(container)),
      ...(keptContainers && keptContainers.length > 0 && { initContainers: keptContainers }),
    },
  };
}

/**
 * TPROXY needs root (istio#51012), and an application with the proxy's user would bypass the proxy (istio#52614; OpenShift assigns one user to all
 * containers).
 */
function withUsableUser({ containers, initContainers }: ContainerOverrides, input: TemplateInput): ContainerOverrides {
  const { pod } = input;
  const isTproxy = interceptionModeOf(input) === 'TPROXY';
  const users = applicationContainersOf(pod).map((container) => userOf(container, pod));
  const withoutUnusableUser = (container: Container): Container => {
    const { securityContext } = container;
    if (container.name !== proxyContainerName || securityContext === undefined) return container;
    const { runAsUser, runAsGroup: _group, runAsNonRoot: _nonRoot, ...otherFields } = securityContext;
    if (isTproxy) return { ...container, securityContext: otherFields };
    if (!runAsUser || !users.includes(runAsUser)) return container;
    const { runAsUser: _user, ...fieldsWithoutUser } = securityContext;
    return { ...container, securityContext: fieldsWithoutUser };
  };
  return { containers: containers.map(withoutUnusableUser), initContainers: initContainers.map(withoutUnusableUser) };
}

function withUserOverrides(pod: Pod, { containers, initContainers }: ContainerOverrides): Pod {
  const containerByName = new Map([...initContainers, ...containers].map((container) => [container.name, container]));
  if (containerByName.size === 0) return pod;
  return withEachContainer(pod, (container) => {
    const override = containerByName.get(container.name);
    if (override === undefined) return container;
    return mergeContainer(withoutReplacedParts(container, override), withoutAutomaticImage(override));
  });
}

/** For an image without tag, such as `auto`, the API server sets the pull policy `Always`, so it is not the user's choice. */
function withoutAutomaticImage(container: Container): Partial<Container> {
  const { image, imagePullPolicy, ...fields } = container;
  if (image && image !== 'auto') return container;
  return imagePullPolicy === 'Always'
    ? fields
    : { ...fields, ...(imagePullPolicy !== undefined && { imagePullPolicy }) };
}

const handlers: ReadonlySet<string> = new Set(['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep']);

/** Kubernetes allows only one of the alternatives, such as the handlers of a probe or hook and the sources of a variable. */
function withoutReplacedParts(container: Container, override: Container): Container {
  const omitReplaced = (base: unknown, overridingValue: unknown): unknown =>
    isObject(base) && isObject(overridingValue) && Object.keys(overridingValue).some((key) => handlers.has(key))
      ? Object.fromEntries(Object.entries(base).filter(([key]) => !handlers.has(key)))
      : base;
  const { env, lifecycle, securityContext } = container;
  const replacedNames = new Set((override.env ?? []).map(({ name }) => name));
  const probes = (['livenessProbe', 'readinessProbe', 'startupProbe'] as const).flatMap((key) =>
    container[key] === undefined ? [] : [[key, omitReplaced(container[key], override[key])] as const],
  );
  return {
    ...container,
    ...Object.fromEntries(probes),
    ...(securityContext && {
      securityContext: withoutPrivilegeConflict(securityContext, override.securityContext ?? {}),
    }),
    ...(env && { env: env.filter(({ name }) => !replacedNames.has(name)) }),
    ...(lifecycle && {
      lifecycle: Object.fromEntries(
        Object.entries(lifecycle).map(([hook, value]) => [hook, omitReplaced(value, override.lifecycle?.[hook])]),
      ),
    }),
  };
}

/** Kubernetes rejects privileged containers with `allowPrivilegeEscalation: false`, which the template sets. */
function withoutPrivilegeConflict(
  context: SecurityContext,
  { privileged, capabilities }: SecurityContext,
): SecurityContext {
  const addedCapabilities = isObject(capabilities) && Array.isArray(capabilities.add) ? capabilities.add : [];
  if (privileged !== true && !addedCapabilities.some((name) => name === 'SYS_ADMIN' || name === 'CAP_SYS_ADMIN'))
    return context;
  const { allowPrivilegeEscalation: _, ...otherFields } = context;
  return otherFields;
}

function withEachContainer(pod: Pod, change: (container: Container) => Container): Pod {
  const { containers, initContainers } = pod.spec;
  return {
    ...pod,
    spec: {
      ...pod.spec,
      containers: containers.map(change),
      ...(initContainers && { initContainers: initContainers.map(change) }),
    },
  };
}

function withProxyEnvironment(pod: Pod, values: Texts): Pod {
  const names = Object.keys(values);
  if (names.length === 0) return pod;
  return withEachContainer(pod, (container) => {
    if (container.name !== proxyContainerName) return container;
    const variables = (container.env ?? []).map((variable) =>
      Object.hasOwn(values, variable.name) ? { name: variable.name, value: values[variable.name] } : variable,
    );
    const missingNames = names.filter((name) => !variables.some((variable) => variable.name === name));
    return {
      ...container,
      env: [...variables, ...missingNames.map((name) => ({ name, value: values[name] }))],
    } as Container;
  });
}

function mergedMetrics(pod: Pod, { mesh, statusPort }: TemplateInput): Pod {
  const isEnabled = booleanAnnotationOrSetting(pod, 'prometheus.istio.io/merge-metrics', mesh.enablePrometheusMerge);
  const settings = scrapeSettingsOf(pod);
  if (!isEnabled || statusPort === 0 || !mergesMetrics(settings, statusPort)) return pod;
  const podWithMetrics = withMergedMetrics(pod, statusPort);
  return Object.keys(settings).length === 0
    ? podWithMetrics
    : withProxyEnvironment(podWithMetrics, { [metricsVariable]: JSON.stringify(settings) });
}

function redirectedProbes(pod: Pod, { settings, statusPort }: TemplateInput): Pod {
  const isEnabled = booleanAnnotationOrSetting(
    pod,
    'sidecar.istio.io/rewriteAppHTTPProbers',
    settings.values.rewriteAppHTTPProbe,
  );
  const hasProxy = allContainersOf(pod).some(({ name }) => name === proxyContainerName);
  if (!isEnabled || statusPort === 0 || !hasProxy) return pod;
  const { pod: redirectedPod, probes } = redirectProbes(pod, statusPort);
  return Object.keys(probes).length === 0 ? redirectedPod : withStoredProbes(redirectedPod, probes);
}

function withStoredProbes(pod: Pod, probes: RedirectedProbes): Pod {
  const sortedProbes = Object.fromEntries(Object.entries(probes).sort(([a], [b]) => (a < b ? -1 : 1)));
  return withProxyEnvironment(pod, { [probesVariable]: JSON.stringify(sortedProbes) });
}

/** Redirection must exclude the user that the pod's owner set for the proxy. */
function withRedirectedUser(pod: Pod, input: TemplateInput): Pod {
  const proxy = allContainersOf(pod).find(({ name }) => name === proxyContainerName);
  const { runAsUser, runAsGroup } = proxy?.securityContext ?? {};
  // Applications may run as root too, so the group identifies the proxy's traffic.
  const user = runAsUser === 0 ? runAsGroup : runAsUser;
  if (!user || user === input.proxyUid) return pod;
  const init = initContainer({ ...input, proxyUid: user, proxyGid: runAsGroup ?? user });
  if (init === undefined) return pod;
  return withEachContainer(pod, (container) =>
    container.name === init.name
      ? mergeContainer(container, { args: init.args ?? [], securityContext: init.securityContext ?? {} })
      : container,
  );
}

/**
 * The init container that checks the redirection is first; the one that sets it up is last. A native proxy runs before the user's init containers,
 * which then have network access.
 */
function orderContainers(pod: Pod, { isNative, proxyConfig, pod: originalPod }: TemplateInput): Pod {
  const startsProxyFirst = !isNative && proxyConfig.holdApplicationUntilProxyStarts === true;
  const { containers, initContainers, ...spec } = pod.spec;
  const originalItems = allContainersOf(originalPod).map(({ name }) => name);
  const rank = (container: Container, sidecarRanks: Readonly<Record<string, number>>): number => {
    if (isSidecarContainer(container)) return sidecarRanks[container.name] ?? 0;
    const originalIndex = originalItems.indexOf(container.name);
    return 10 + (originalIndex < 0 ? originalItems.length : originalIndex);
  };
  const sortContainers = (list: readonly Container[], sidecarRanks: Readonly<Record<string, number>>): Container[] =>
    list.toSorted((a, b) => rank(a, sidecarRanks) - rank(b, sidecarRanks));
  const lastRank = Number.POSITIVE_INFINITY;
  return {
    ...pod,
    spec: {
      ...spec,
      containers: sortContainers(containers, { [proxyContainerName]: startsProxyFirst ? 0 : lastRank }),
      ...(initContainers && {
        initContainers: sortContainers(initContainers, {
          [validationContainerName]: 0,
          [initContainerName]: isNative ? 1 : lastRank,
          [proxyContainerName]: 2,
        }),
      }),
    },
  };
}

/** The annotations record the injection, so that it can be undone and repeated. */
function withReportedInjection(
  pod: Pod,
  template: TemplatePod,
  overrides: ContainerOverrides,
  { settings, pod: originalPod }: TemplateInput,
): Pod {
  const spec = (template.spec ?? {}) as Readonly<Record<string, unknown>>;
  const replacedNames = new Set([...overrides.containers, ...overrides.initContainers].map(({ name }) => name));
  const { containers, initContainers = [], volumes = [], imagePullSecrets = [] } = originalPod.spec;
  const containersBefore = [...containers, ...initContainers].filter(({ name }) => !replacedNames.has(name));
  const addedItemNames = (field: string, originalItems: readonly { readonly name?: string }[]): string[] | null => {
    const items = Array.isArray(spec[field]) ? spec[field].filter(isObject) : [];
    const names = items
      .map(({ name }) => String(name))
      .filter((name) => !originalItems.some((originalItem) => originalItem.name === name));
    return names.length > 0 ? names : null;
  };
  const annotations = { ...settings.config.injectedAnnotations, ...pod.metadata.annotations };
  const status: InjectionStatus = {
    initContainers: addedItemNames('initContainers', containersBefore),
    containers: addedItemNames('containers', containersBefore),
    volumes: addedItemNames('volumes', volumes),
    imagePullSecrets: addedItemNames('imagePullSecrets', imagePullSecrets),
    revision: settings.revision || 'default',
    original: {
      labels: replacedTexts(originalPod.metadata.labels, pod.metadata.labels),
      annotations: replacedTexts(originalPod.metadata.annotations, annotations),
    },
  };
  const hasOverrides = overrides.containers.length + overrides.initContainers.length > 0;
  return withAnnotations(pod, {
    ...annotations,
    ...(hasOverrides && { [overridesKey]: JSON.stringify(savedOverrides(overrides), sortKeys) }),
    [statusKey]: JSON.stringify(status),
  });
}

function savedOverrides({ containers, initContainers }: ContainerOverrides): Json {
  return {
    ...(containers.length > 0 && { containers }),
    ...(initContainers.length > 0 && { initContainers }),
  };
}

/** Repeated injection must write the same annotation. */
function sortKeys(_key: string, value: unknown): unknown {
  return isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value;
}
