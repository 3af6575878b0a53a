/** Keys of the Secrets are cluster IDs, values are kubeconfigs. */
import { hash } from 'node:crypto';
import { messageOf, reasonError } from '../../runtime/errors.ts';
import type { ClusterAccess } from '../kubernetes/access/cluster-access.ts';
import { kubeconfigAccess } from '../kubernetes/access/kubeconfig.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import { keyOf } from '../kubernetes/store/object-store.ts';
import { isRecord } from '../kubernetes/store/trim.ts';

export interface NamedCluster {
  readonly cluster: string;
  readonly secret: string;
  /** `Secret NAMESPACE/NAME: KEY`, for messages. */
  readonly location: string;
  /** Detects changes of the kubeconfig. */
  readonly digest: string;
  readonly access: ClusterAccess;
}

export interface NamedClusters {
  readonly clusters: ReadonlyMap<string, NamedCluster>;
  /** IDs whose kubeconfig is invalid, so that the previous one is kept. */
  readonly rejectedIds: ReadonlySet<string>;
  readonly problems: readonly string[];
}

/** Each cluster has its own connections and stores. */
export const maxRemoteClusters = 100;
/** A kubeconfig with a CA bundle takes 10 KB. */
export const maxKubeconfigBytes = 128 * 1024;

/** @param secrets in any order. If several define a cluster, the first by name applies. */
export function namedClusters(secrets: Iterable<KubernetesObject>, ownCluster: string): NamedClusters {
  const clusters = new Map<string, NamedCluster>();
  const rejectedNames = new Set<string>();
  const problems: string[] = [];
  const locationsByCluster = new Map<string, string>();
  for (const secret of [...secrets].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))) {
    const data = isRecord(secret.data) ? secret.data : {};
    for (const cluster of Object.keys(data).sort()) {
      const location = `Secret ${keyOf(secret)}: ${cluster}`;
      const reject = (reason: string): void => void problems.push(`${location}: ${reason}`);
      if (cluster === ownCluster) reject("is the ID of the control plane's own cluster; choose another key");
      else if (locationsByCluster.has(cluster))
        reject(`is already in ${locationsByCluster.get(cluster)}, which applies`);
      else if (locationsByCluster.size >= maxRemoteClusters)
        reject(`the limit of ${maxRemoteClusters} remote clusters is reached`);
      else {
        locationsByCluster.set(cluster, location);
        try {
          clusters.set(cluster, namedCluster({ cluster, secret: keyOf(secret), location }, data[cluster]));
        } catch (error) {
          rejectedNames.add(cluster);
          reject(messageOf(error).replace(`${location}: `, ''));
        }
      }
    }
  }
  return { clusters, rejectedIds: rejectedNames, problems };
}

/** @throws Error without any value of the kubeconfig */
function namedCluster(
  secretPlace: Pick<NamedCluster, 'cluster' | 'secret' | 'location'>,
  value: unknown,
): NamedCluster {
  if (typeof value !== 'string' || value === '')
    throw reasonError('API_CREDENTIALS_INVALID', 'must be a kubeconfig, is empty');
  // Four base64 characters encode three bytes.
  if (value.length > (maxKubeconfigBytes / 3) * 4)
    throw reasonError('API_CREDENTIALS_INVALID', `must have at most ${maxKubeconfigBytes} bytes`);
  const text = Buffer.from(value, 'base64').toString('utf8');
  // The author of the Secret may neither run programs nor read files of this host.
  const access = kubeconfigAccess(text, { path: secretPlace.location, isTrusted: false });
  return { ...secretPlace, digest: hash('sha256', text), access };
}
