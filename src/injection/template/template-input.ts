/** What the templates are built from. */
import { booleanOf } from '../../model/fields/go-boolean.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { ProxyConfig } from '../../model/mesh/proxy-config.ts';
import { annotationOf, type EnvironmentVariable, type Json, type Pod } from '../pod/pod.ts';
import type { PodOwner } from '../pod/pod-controller.ts';
import type { InjectionSettings, InjectionValues } from '../settings.ts';

export interface TemplateInput {
  /** Without earlier injection. */
  readonly pod: Pod;
  readonly namespace: string;
  readonly workload: PodOwner;
  readonly settings: InjectionSettings;
  readonly mesh: MeshConfig;
  /** Mesh default, ProxyConfig objects and the annotation, merged. */
  readonly proxyConfig: ProxyConfig;
  /** User and group of the proxy; redirection excludes their traffic. */
  readonly proxyUid: number;
  readonly proxyGid: number;
  /** The proxy is an init container with `restartPolicy: Always`. */
  readonly isNative: boolean;
  /** Port of the agent's status server; 0: none. */
  readonly statusPort: number;
}

/** A part of a pod that is merged into the user's pod. */
export type TemplatePod = Json;

/** Port of Envoy's listener for readiness (`/healthz/ready`), and of its metrics. */
export const healthPort = 15_021;
export const envoyMetricsPort = 15_090;

/** Annotation of the pod, or else the setting. An empty annotation is a value. */
export function annotated(pod: Pod, name: string, setting: string): string {
  return annotationOf(pod, name) ?? setting;
}

/** The same for an annotation that is `true` or `false`. */
export function isAnnotated(pod: Pod, name: string, setting: boolean): boolean {
  return booleanOf(annotationOf(pod, name) ?? '') ?? setting;
}

/** `REDIRECT`, `TPROXY` or `NONE`. */
export function interceptionModeOf({ pod, proxyConfig }: TemplateInput): string {
  return annotated(pod, 'sidecar.istio.io/interceptionMode', proxyConfig.interceptionMode ?? 'REDIRECT');
}

/** Reference of the image of a pod, which its annotations and its ProxyConfig may choose. */
export function imageOf({ pod, settings, proxyConfig }: TemplateInput, name: string): string {
  const image = annotationOf(pod, 'sidecar.istio.io/proxyImage') ?? name;
  const imageType = (proxyConfig.image as { readonly imageType?: string } | undefined)?.imageType;
  const type = annotated(pod, 'sidecar.istio.io/proxyImageType', imageType || settings.values.variant);
  return imageReference(settings.values, image, type);
}

/** `HUB/NAME:TAG[-TYPE]`, or the name itself if it is a complete reference. The type replaces one that the tag ends in. */
export function imageReference({ hub, tag }: Pick<InjectionValues, 'hub' | 'tag'>, name: string, type: string): string {
  if (name.includes('/')) return name;
  const plain = type === '' ? tag : tag.replace(/-(distroless|debug)$/, '');
  const suffix = type === '' || type === 'default' ? '' : `-${type}`;
  return `${hub}/${name}:${plain}${suffix}`;
}

/** Requests and limits of the proxy. Any of the four annotations replaces all values (spec/injection.md §3.2). */
export function resourcesOf({ pod, settings }: TemplateInput): Json {
  const value = (name: string): string | undefined => annotationOf(pod, `sidecar.istio.io/${name}`);
  const of = (cpu: string | undefined, memory: string | undefined): Json => ({
    ...(cpu && { cpu }),
    ...(memory && { memory }),
  });
  const requests = of(value('proxyCPU'), value('proxyMemory'));
  const limits = of(value('proxyCPULimit'), value('proxyMemoryLimit'));
  const isAnnotatedPod = Object.keys(requests).length + Object.keys(limits).length > 0;
  if (!isAnnotatedPod) return settings.values.resources;
  return {
    ...(Object.keys(requests).length > 0 && { requests }),
    ...(Object.keys(limits).length > 0 && { limits }),
  };
}

/** An environment variable with a field of the pod as its value. */
export function fromField(name: string, fieldPath: string): EnvironmentVariable {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}

/** Environment that the mesh administrator and the workload's owner add. */
export function addedEnvironment({ settings, proxyConfig }: TemplateInput): readonly EnvironmentVariable[] {
  const added = { ...settings.values.proxyEnvironment, ...proxyConfig.proxyMetadata };
  return Object.entries(added).map(([name, value]) => ({ name, value }));
}

/** Rights of a container that neither changes the network nor binds privileged ports. */
export function restrictedSecurity({ proxyUid, proxyGid }: TemplateInput): Json {
  return {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    privileged: false,
    readOnlyRootFilesystem: true,
    runAsGroup: proxyGid,
    runAsNonRoot: true,
    runAsUser: proxyUid,
  };
}

/** At most 63 characters, as values of labels; what is cut off must not leave a separator. */
export function labelValue(value: string): string {
  return value.slice(0, 63).replace(/^[-_.]+|[-_.]+$/g, '');
}
