/**
 * The API server calls webhooks again after other webhooks changed the pod, and a namespace may move to another revision, so injecting a pod again
 * must return the same result.
 */
import { defaultProxyConfig } from '../../model/mesh/proxy-config.ts';
import { isObject, ownValue } from '../../runtime/json-object.ts';
import {
  allContainersOf,
  annotationOf,
  type Container,
  type Json,
  type Pod,
  proxyContainerName,
  type Texts,
  withAnnotations,
} from './pod.ts';
import { restoreProbes } from './probes.ts';
import { withoutMergedMetrics } from './prometheus.ts';

export const statusKey = 'sidecar.istio.io/status';
export const overridesKey = 'proxy.istio.io/overrides';
export const probesVariable = 'ISTIO_KUBE_APP_PROBERS';
export const configVariable = 'PROXY_CONFIG';
export const metricsVariable = 'ISTIO_PROMETHEUS_ANNOTATIONS';

/** The user's containers with names of template containers. Their fields have priority over the template. */
export interface ContainerOverrides {
  readonly containers: readonly Container[];
  readonly initContainers: readonly Container[];
}

export interface PristinePod {
  readonly pod: Pod;
  readonly injectedVolumes: ReadonlySet<string>;
}

/** The first five fields are Istio's; lists contain only items that the injection added. */
export interface InjectionStatus {
  readonly initContainers: readonly string[] | null;
  readonly containers: readonly string[] | null;
  readonly volumes: readonly string[] | null;
  readonly imagePullSecrets: readonly string[] | null;
  readonly revision: string;
  /** The value is `null` for labels and annotations that the injection added. */
  readonly original: { readonly labels: OriginalTexts; readonly annotations: OriginalTexts };
}

export type OriginalTexts = Readonly<Record<string, string | null>>;

/** Labels that Istio's injector added remain, because Istio does not record the original ones. */
export function withoutEarlierInjection(pod: Pod): PristinePod {
  const status = objectOf(annotationOf(pod, statusKey));
  if (status === undefined) return { pod, injectedVolumes: new Set() };
  const environment = environmentOfProxy(pod);
  const probes = objectOf(environment.get(probesVariable));
  const metrics = objectOf(environment.get(metricsVariable));
  const { annotations = {} } = pod.metadata;
  const { [statusKey]: _status, [overridesKey]: overrides, ...otherAnnotations } = annotations;
  const podWithOtherAnnotations = withAnnotations(pod, otherAnnotations);
  const podWithoutInjected = withoutInjected(podWithOtherAnnotations, status, overridesOf(overrides));
  const podWithProbes =
    probes === undefined
      ? podWithoutInjected
      : restoreProbes(podWithoutInjected, probes as Readonly<Record<string, Json>>);
  return {
    pod: isObject(status.original)
      ? withOriginalTexts(podWithProbes, status.original)
      : withoutMergedMetrics(podWithProbes, metrics as Texts | undefined, statusPortIn(environment)),
    injectedVolumes: new Set(namesIn(status.volumes)),
  };
}

export function replacedTexts(original: Texts = {}, next: Texts = {}): OriginalTexts {
  const keys = [...new Set([...Object.keys(original), ...Object.keys(next)])];
  const changedKeys = keys.filter((key) => ownValue(original, key) !== ownValue(next, key)).sort();
  return Object.fromEntries(changedKeys.map((key) => [key, ownValue(original, key) ?? null]));
}

function withOriginalTexts(pod: Pod, original: Json): Pod {
  const { labels, annotations } = pod.metadata;
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      ...(labels && { labels: originalTexts(labels, original.labels) }),
      ...(annotations && { annotations: originalTexts(annotations, original.annotations) }),
    },
  };
}

function originalTexts(texts: Texts, original: unknown): Texts {
  const restoredTexts = new Map(Object.entries(texts));
  for (const [key, value] of Object.entries(isObject(original) ? original : {})) {
    if (typeof value === 'string') restoredTexts.set(key, value);
    else restoredTexts.delete(key);
  }
  return Object.fromEntries(restoredTexts);
}

function namesIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : [];
}

function withoutInjected({ spec, ...pod }: Pod, status: Json, overrides: ContainerOverrides): Pod {
  const withoutInjectedItems = <T extends { readonly name?: string }>(
    items: readonly T[] | undefined,
    injectedItems: unknown,
  ): T[] => {
    const names = namesIn(injectedItems);
    return (items ?? []).filter(({ name = '' }) => !names.includes(name));
  };
  const lists = {
    initContainers: [...withoutInjectedItems(spec.initContainers, status.initContainers), ...overrides.initContainers],
    volumes: withoutInjectedItems(spec.volumes, status.volumes),
    imagePullSecrets: withoutInjectedItems(spec.imagePullSecrets, status.imagePullSecrets),
  };
  const { initContainers: _init, volumes: _volumes, imagePullSecrets: _secrets, ...otherFields } = spec;
  return {
    ...pod,
    spec: {
      ...otherFields,
      containers: [...withoutInjectedItems(spec.containers, status.containers), ...overrides.containers],
      ...Object.fromEntries(
        Object.entries(lists).filter(([field, list]) => list.length > 0 || isEmptyList(spec[field])),
      ),
    },
  } as Pod;
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function environmentOfProxy(pod: Pod): ReadonlyMap<string, string | undefined> {
  const proxies = allContainersOf(pod).filter(({ name }) => name === proxyContainerName);
  return new Map(proxies.flatMap(({ env = [] }) => env.map(({ name, value }) => [name, value] as const)));
}

/** The status port of the earlier injection may differ from the current setting. */
function statusPortIn(environment: ReadonlyMap<string, string | undefined>): number {
  const { statusPort } = objectOf(environment.get(configVariable)) ?? {};
  return typeof statusPort === 'number' ? statusPort : defaultProxyConfig.statusPort;
}

function overridesOf(text: string | undefined): ContainerOverrides {
  const recordedTexts = objectOf(text) ?? {};
  const containers = (value: unknown): Container[] =>
    Array.isArray(value)
      ? value.filter((item): item is Container => isObject(item) && typeof item.name === 'string')
      : [];
  return { containers: containers(recordedTexts.containers), initContainers: containers(recordedTexts.initContainers) };
}

function objectOf(text: string | undefined): Json | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
