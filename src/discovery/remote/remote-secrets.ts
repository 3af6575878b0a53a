/** What Secrets say of other clusters: each key is a cluster's id, its value a kubeconfig. Rules only. */
import { hash } from 'node:crypto';
import { messageOf, reasonError } from '../../runtime/errors.ts';
import type { ClusterAccess } from '../kubernetes/access/cluster-access.ts';
import { kubeconfigAccess } from '../kubernetes/access/kubeconfig.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import { keyOf } from '../kubernetes/store/object-store.ts';
import { isRecord } from '../kubernetes/store/trim.ts';

/** A cluster that a Secret names. */
export interface NamedCluster {
  readonly cluster: string;
  /** `namespace/name`. */
  readonly secret: string;
  /** `Secret namespace/name: key`, for people. */
  readonly place: string;
  /** Of the kubeconfig: equal ones are the same cluster, whatever else of the Secret is another. */
  readonly digest: string;
  readonly access: ClusterAccess;
}

export interface NamedClusters {
  /** By id. */
  readonly clusters: ReadonlyMap<string, NamedCluster>;
  /** Ids of which a Secret says something that will not do: what was known of them stays. */
  readonly refused: ReadonlySet<string>;
  /** Why, each with its place. No value is in it. */
  readonly problems: readonly string[];
}

/** Each has connections and stores of its own. */
export const mostRemoteClusters = 100;
/** One with a bundle of certificates has 10 KB. */
export const maxKubeconfigBytes = 128 * 1024;

/**
 * @param secrets in any order: of two that name a cluster the one with the first name counts
 * @param ownCluster which is no other one
 */
export function namedClusters(secrets: Iterable<KubernetesObject>, ownCluster: string): NamedClusters {
  const clusters = new Map<string, NamedCluster>();
  const refused = new Set<string>();
  const problems: string[] = [];
  const places = new Map<string, string>();
  for (const secret of [...secrets].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))) {
    const data = isRecord(secret.data) ? secret.data : {};
    for (const cluster of Object.keys(data).sort()) {
      const place = `Secret ${keyOf(secret)}: ${cluster}`;
      const refuse = (why: string): void => void problems.push(`${place}: ${why}`);
      if (cluster === ownCluster) refuse("is the ID of the control plane's own cluster; choose another key");
      else if (places.has(cluster)) refuse(`is already in ${places.get(cluster)}, which applies`);
      else if (places.size >= mostRemoteClusters)
        refuse(`the limit of ${mostRemoteClusters} remote clusters is reached`);
      else {
        places.set(cluster, place);
        try {
          clusters.set(cluster, namedCluster({ cluster, secret: keyOf(secret), place }, data[cluster]));
        } catch (error) {
          refused.add(cluster);
          refuse(messageOf(error).replace(`${place}: `, ''));
        }
      }
    }
  }
  return { clusters, refused, problems };
}

/** @throws Error that names no value */
function namedCluster(where: Pick<NamedCluster, 'cluster' | 'secret' | 'place'>, value: unknown): NamedCluster {
  if (typeof value !== 'string' || value === '')
    throw reasonError('API_CREDENTIALS_INVALID', 'must be a kubeconfig, is empty');
  // Four characters are three bytes.
  if (value.length > (maxKubeconfigBytes / 3) * 4)
    throw reasonError('API_CREDENTIALS_INVALID', `must have at most ${maxKubeconfigBytes} bytes`);
  const text = Buffer.from(value, 'base64').toString('utf8');
  // Its author may neither run programs here nor read files of ours.
  const access = kubeconfigAccess(text, { path: where.place, isTrusted: false });
  return { ...where, digest: hash('sha256', text), access };
}
