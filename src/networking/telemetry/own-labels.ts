/** Labels of standard metrics about the proxy's own workload, for proxies without chartpilot's agent. */
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';

/** What a proxy says about itself in labels. Equal for proxies that share listeners. */
export type OwnLabels = Readonly<Record<'namespace' | 'service' | 'revision' | 'app' | 'version' | 'cluster', string>>;

export function ownLabelsOf({ labels, configNamespace, clusterId }: ProxyShape): OwnLabels {
  const { app = '', version = '' } = labels;
  const named = (key: string, otherwise: string): string => labels[`service.istio.io/canonical-${key}`] ?? otherwise;
  return {
    namespace: configNamespace,
    service: named('name', labels['app.kubernetes.io/name'] ?? app),
    revision: named('revision', labels['app.kubernetes.io/version'] ?? version) || 'latest',
    app,
    version,
    cluster: clusterId,
  };
}
