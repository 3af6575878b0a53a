import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { isSharedAuthority } from '../ca/authority-settings.ts';
import type { ClusterAccess } from '../kubernetes/access/cluster-access.ts';
import { inClusterAccess, isInCluster } from '../kubernetes/access/in-cluster.ts';
import { kubeconfigFile } from '../kubernetes/access/kubeconfig.ts';
import type { DiscoveryOptions } from '../options/discovery-options.ts';
import { FollowedCluster } from './followed-cluster.ts';

type ClusterFlags = Pick<
  DiscoveryOptions,
  | 'kubeconfig'
  | 'registries'
  | 'configDir'
  | 'pod'
  | 'revision'
  | 'namespace'
  | 'clusterRegistriesNamespace'
  | 'sharedMeshConfig'
  | 'authority'
  | 'podName'
  | 'rootConfigMap'
  | 'webhooksAddress'
>;

/**
 * Uses the cluster of the kubeconfig or, without one and without `--configDir`, the cluster of the process's pod.
 *
 * @throws ChartpilotError FLAG_INVALID for an invalid kubeconfig
 */
export function makeCluster(options: ClusterFlags, log: Logger): FollowedCluster | undefined {
  const access = accessOf(options);
  const { registries, revision, namespace, clusterRegistriesNamespace, sharedMeshConfig } = options;
  const { authority, podName, rootConfigMap, webhooksAddress } = options;
  const isRegistry = registries.includes('Kubernetes');
  const sharesAuthority = authority !== undefined && isSharedAuthority(authority);
  return (
    access &&
    new FollowedCluster({
      ...{
        access,
        isRegistry,
        settings: { namespace, revision, sharedName: sharedMeshConfig },
        clusterRegistriesNamespace,
        podName,
        log,
      },
      ...(sharesAuthority && { authoritySecret: authority.secret }),
      ...{ signsCertificates: authority !== undefined, rootConfigMap, injectsSidecars: webhooksAddress !== undefined },
    })
  );
}

function accessOf({ kubeconfig, registries, configDir, pod }: ClusterFlags): ClusterAccess | undefined {
  if (kubeconfig === '') {
    return registries.includes('Kubernetes') && configDir === '' && isInCluster(pod) ? inClusterAccess(pod) : undefined;
  }
  try {
    return kubeconfigFile(kubeconfig);
  } catch (error) {
    throw new ChartpilotError('FLAG_INVALID', `--kubeconfig: ${messageOf(error)}`, {
      cause: error,
      hint: 'pass the path of a valid kubeconfig that this user may read',
      fields: { path: '--kubeconfig' },
    });
  }
}
