/** Merges a workload's proxy configuration from mesh defaults, ProxyConfig objects and its annotation. */
import type { Config } from '../config/config.ts';
import type { ProxyConfigObject } from '../kinds/extensions/proxy-config-object.ts';
import type { MeshConfig } from '../mesh/mesh-config.ts';
import { mergeProxyConfig, type ProxyConfig } from '../mesh/proxy-config.ts';
import { isSelected } from '../services/label-match.ts';

export interface ProxyConfigWorkload {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotation?: Partial<ProxyConfig>;
}

export interface WorkloadProxyConfig {
  readonly proxyConfig: ProxyConfig;
  /** The merged objects, lowest precedence first: at most one each of the root namespace, of the namespace, and by labels. */
  readonly objects: readonly Config<ProxyConfigObject>[];
}

/**
 * Precedence, lowest first: the mesh default, the root namespace's object without a selector, that of the workload's namespace, the annotation (as in
 * Istio), the object of the namespace that selects the workload. On each level the oldest object applies. Variables and fields of messages are
 * merged; other fields are replaced.
 * @param objects oldest first
 */
export function proxyConfigFor(
  objects: readonly Config<ProxyConfigObject>[],
  mesh: Pick<MeshConfig, 'rootNamespace' | 'defaultConfig'>,
  { namespace, labels, annotation = {} }: ProxyConfigWorkload,
): WorkloadProxyConfig {
  const { rootNamespace, defaultConfig } = mesh;
  const withoutSelector = (of: string): Config<ProxyConfigObject> | undefined =>
    objects.find((one) => one.namespace === of && !hasSelector(one));
  const ofMesh = withoutSelector(rootNamespace);
  const ofNamespace = namespace === rootNamespace ? undefined : withoutSelector(namespace);
  const ofWorkload = objects.find(
    (one) => one.namespace === namespace && hasSelector(one) && isSelected(one.spec.selector!, labels),
  );
  const layers = [partOf(ofMesh), partOf(ofNamespace), annotation, partOf(ofWorkload)];
  return {
    proxyConfig: layers.reduce<ProxyConfig>(mergeProxyConfig, defaultConfig),
    objects: [ofMesh, ofNamespace, ofWorkload].filter((one) => one !== undefined),
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
