import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';

/** Equal for proxies that share listeners. */
export type ProxyMetricLabels = Readonly<
  Record<'namespace' | 'service' | 'revision' | 'app' | 'version' | 'cluster', string>
>;

export function workloadLabelsOf({ labels, configNamespace, clusterId }: ProxyShape): ProxyMetricLabels {
  const { app = '', version = '' } = labels;
  const canonicalLabel = (key: string, fallback: string): string =>
    labels[`service.istio.io/canonical-${key}`] ?? fallback;
  return {
    namespace: configNamespace,
    service: canonicalLabel('name', labels['app.kubernetes.io/name'] ?? app),
    revision: canonicalLabel('revision', labels['app.kubernetes.io/version'] ?? version) || 'latest',
    app,
    version,
    cluster: clusterId,
  };
}
