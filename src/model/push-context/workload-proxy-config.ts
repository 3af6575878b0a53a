import type { Config } from '../config/config.ts';
import type { ProxyConfigObject } from '../kinds/extensions/proxy-config-object.ts';
import type { MeshConfig } from '../mesh/mesh-config.ts';
import { mergeProxyConfig, type ProxyConfig } from '../mesh/proxy-config.ts';
import { matchesSelector } from '../services/label-match.ts';

export interface ProxyConfigWorkload {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotation?: Partial<ProxyConfig>;
}

export interface WorkloadProxyConfig {
  readonly proxyConfig: ProxyConfig;
  /** Lowest precedence first: at most one object each for the root namespace, the namespace and the selected workload. */
  readonly objects: readonly Config<ProxyConfigObject>[];
}

/**
 * Precedence, lowest first: the mesh default, the root namespace's object without a selector, that of the workload's namespace, the annotation (as in
 * Istio), the object of the namespace that selects the workload. On each level the oldest object applies.
 * @param objects oldest first
 */
export function proxyConfigFor(
  objects: readonly Config<ProxyConfigObject>[],
  mesh: Pick<MeshConfig, 'rootNamespace' | 'defaultConfig'>,
  { namespace, labels, annotation = {} }: ProxyConfigWorkload,
): WorkloadProxyConfig {
  const { rootNamespace, defaultConfig } = mesh;
  const configWithoutSelector = (namespaceName: string): Config<ProxyConfigObject> | undefined =>
    objects.find((proxyConfig) => proxyConfig.namespace === namespaceName && !hasSelector(proxyConfig));
  const meshObject = configWithoutSelector(rootNamespace);
  const namespaceObject = namespace === rootNamespace ? undefined : configWithoutSelector(namespace);
  const workloadObject = objects.find(
    (proxyConfig) =>
      proxyConfig.namespace === namespace &&
      hasSelector(proxyConfig) &&
      matchesSelector(proxyConfig.spec.selector!, labels),
  );
  const layers = [partOf(meshObject), partOf(namespaceObject), annotation, partOf(workloadObject)];
  return {
    proxyConfig: layers.reduce<ProxyConfig>(mergeProxyConfig, defaultConfig),
    objects: [meshObject, namespaceObject, workloadObject].filter((proxyConfig) => proxyConfig !== undefined),
  };
}

function hasSelector({ spec: { selector = {} } }: Config<ProxyConfigObject>): boolean {
  return Object.keys(selector).length > 0;
}

function partOf(object: Config<ProxyConfigObject> | undefined): Partial<ProxyConfig> {
  if (object === undefined) return {};
  const { concurrency, environmentVariables, image } = object.spec;
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(environmentVariables && { proxyMetadata: environmentVariables }),
    ...(image && { image: { ...image } }),
  };
}
