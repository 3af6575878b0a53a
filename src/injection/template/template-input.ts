import { booleanOf } from '../../model/fields/go-boolean.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { ProxyConfig } from '../../model/mesh/proxy-config.ts';
import { annotationOf, type EnvironmentVariable, type Json, type Pod } from '../pod/pod.ts';
import type { PodOwner } from '../pod/pod-controller.ts';
import type { InjectionSettings, InjectionValues } from '../settings.ts';

export interface TemplateInput {
  readonly pod: Pod;
  readonly namespace: string;
  readonly workload: PodOwner;
  readonly settings: InjectionSettings;
  readonly mesh: MeshConfig;
  readonly proxyConfig: ProxyConfig;
  /** Redirection excludes this user and group. */
  readonly proxyUid: number;
  readonly proxyGid: number;
  /** A native proxy is an init container with `restartPolicy: Always`. */
  readonly isNative: boolean;
  readonly statusPort: number;
}

export type TemplatePod = Json;

/** Port of Envoy's listener for readiness (`/healthz/ready`). */
export const healthPort = 15_021;
export const envoyMetricsPort = 15_090;

/** An empty annotation has priority, too. */
export function annotationOrSetting(pod: Pod, name: string, setting: string): string {
  return annotationOf(pod, name) ?? setting;
}

export function booleanAnnotationOrSetting(pod: Pod, name: string, setting: boolean): boolean {
  return booleanOf(annotationOf(pod, name) ?? '') ?? setting;
}

export function interceptionModeOf({ pod, proxyConfig }: TemplateInput): string {
  return annotationOrSetting(pod, 'sidecar.istio.io/interceptionMode', proxyConfig.interceptionMode ?? 'REDIRECT');
}

/** Annotations and ProxyConfig override the settings. */
export function imageOf({ pod, settings, proxyConfig }: TemplateInput, name: string): string {
  const image = annotationOf(pod, 'sidecar.istio.io/proxyImage') ?? name;
  const imageType = (proxyConfig.image as { readonly imageType?: string } | undefined)?.imageType;
  const type = annotationOrSetting(pod, 'sidecar.istio.io/proxyImageType', imageType || settings.values.variant);
  return imageReference(settings.values, image, type);
}

/** An image type replaces the type at the end of the tag. A name with `/` is a complete reference. */
export function imageReference({ hub, tag }: Pick<InjectionValues, 'hub' | 'tag'>, name: string, type: string): string {
  if (name.includes('/')) return name;
  const tagWithoutVariant = type === '' ? tag : tag.replace(/-(distroless|debug)$/, '');
  const suffix = type === '' || type === 'default' ? '' : `-${type}`;
  return `${hub}/${name}:${tagWithoutVariant}${suffix}`;
}

/** Any of the four annotations replaces all values. */
export function resourcesOf({ pod, settings }: TemplateInput): Json {
  const value = (name: string): string | undefined => annotationOf(pod, `sidecar.istio.io/${name}`);
  const cpuAndMemory = (cpu: string | undefined, memory: string | undefined): Json => ({
    ...(cpu && { cpu }),
    ...(memory && { memory }),
  });
  const requests = cpuAndMemory(value('proxyCPU'), value('proxyMemory'));
  const limits = cpuAndMemory(value('proxyCPULimit'), value('proxyMemoryLimit'));
  const isAnnotatedPod = Object.keys(requests).length + Object.keys(limits).length > 0;
  if (!isAnnotatedPod) return settings.values.resources;
  return {
    ...(Object.keys(requests).length > 0 && { requests }),
    ...(Object.keys(limits).length > 0 && { limits }),
  };
}

export function fieldVariable(name: string, fieldPath: string): EnvironmentVariable {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}

export function addedEnvironment({ settings, proxyConfig }: TemplateInput): readonly EnvironmentVariable[] {
  const addedVariables = { ...settings.values.proxyEnvironment, ...proxyConfig.proxyMetadata };
  return Object.entries(addedVariables).map(([name, value]) => ({ name, value }));
}

/** These containers neither change the network nor bind privileged ports. */
export function restrictedSecurityContext({ proxyUid, proxyGid }: TemplateInput): Json {
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

export function labelValue(value: string): string {
  return value.slice(0, 63).replace(/^[-_.]+|[-_.]+$/g, '');
}
