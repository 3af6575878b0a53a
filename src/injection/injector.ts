import type { Decoded } from '../model/fields/decode.ts';
import type { MeshConfig } from '../model/mesh/mesh-config.ts';
import { type Decision, decideInjection } from './decision/decision.ts';
import { injectPod, type ProxyConfigSource } from './inject.ts';
import { openShiftIdentity } from './pod/openshift.ts';
import { labelOf, type Pod, type Texts } from './pod/pod.ts';
import type { InjectionSettings } from './settings.ts';
import type { GoTemplates } from './template/go-template.ts';

export interface SidecarInjector extends GoTemplates {
  readonly settings: InjectionSettings;
  readonly mesh: MeshConfig;
  readonly proxyConfigFor: ProxyConfigSource;
  /** Absent for manifests in files. */
  readonly cluster?: InjectorCluster;
}

export interface InjectorCluster {
  /** Names of the webhook configurations that the API server calls for a pod. */
  readonly callersOf: (namespace: string, podLabels: Texts) => readonly string[];
  readonly namespaceAnnotations: (namespace: string) => Texts;
  readonly supportsNativeSidecars: (nodeName: string | undefined) => boolean;
}

export type Injection =
  | { readonly outcome: 'skipped'; readonly decision: Decision }
  | { readonly outcome: 'injected'; readonly decision: Decision; readonly pod: Decoded<Pod> };

export function inject(
  { settings, mesh, proxyConfigFor, cluster, renderGoTemplate }: SidecarInjector,
  pod: Pod,
  requestNamespace: string,
  addedEnvironment: Texts = {},
): Injection {
  const namespace = pod.metadata.namespace || requestNamespace;
  const decision = decideInjection(pod, namespace, settings.config);
  if (!decision.inject) return { outcome: 'skipped', decision };
  const identity = cluster && openShiftIdentity(cluster.namespaceAnnotations(namespace));
  const request = {
    ...{ pod, namespace, settings, mesh, proxyConfigFor, addedEnvironment },
    ...(renderGoTemplate && { renderGoTemplate }),
    ...(identity && { proxyUid: identity.uid, proxyGid: identity.gid }),
    ...(cluster && { supportsNativeSidecars: cluster.supportsNativeSidecars }),
  };
  return { outcome: 'injected', decision, pod: injectPod(request) };
}

/** Pods of controllers have only `generateName`. */
export function podTitle(pod: Pod, namespace: string): string {
  const { name, generateName } = pod.metadata;
  const shownName = name || (generateName ? `${generateName}***` : labelOf(pod, 'app') || 'without a name');
  return `pod ${namespace}/${shownName}`;
}
