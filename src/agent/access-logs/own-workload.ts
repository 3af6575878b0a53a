import type { PeerClaim } from '../../model/standard-metrics/peer-claim.ts';
import { isObject } from '../../runtime/json-object.ts';

/** Labels that may have the canonical service name, in order of precedence. */
const canonicalNameLabels = ['service.istio.io/canonical-name', 'app.kubernetes.io/name', 'app'];
const canonicalRevisionLabels = ['service.istio.io/canonical-revision', 'app.kubernetes.io/version', 'version'];

export function ownWorkload(metadata: Readonly<Record<string, unknown>>): PeerClaim {
  const labels = isObject(metadata.LABELS) ? metadata.LABELS : {};
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  const first = (names: readonly string[]): string => names.map((name) => text(labels[name])).find(Boolean) ?? '';
  const workload = text(metadata.WORKLOAD_NAME) || text(metadata.NAME);
  return {
    workload,
    namespace: text(metadata.NAMESPACE),
    account: text(metadata.SERVICE_ACCOUNT),
    service: first(canonicalNameLabels) || workload,
    revision: first(canonicalRevisionLabels) || 'latest',
    app: text(labels.app),
    version: text(labels.version),
    cluster: text(metadata.CLUSTER_ID),
  };
}
