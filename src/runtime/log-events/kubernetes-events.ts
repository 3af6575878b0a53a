/** pilot-discovery: API servers, remote clusters, Leases and WorkloadEntries. */
import { type LogEventTable, noAction } from './log-event.ts';

export const kubernetesEvents = {
  'kubernetes.following': {
    level: 'info',
    message: 'watching Kubernetes cluster',
    meaning: 'Configuration and services are read from this API server.',
    action: noAction,
  },
  'kubernetes.absent': {
    level: 'info',
    message: 'no Kubernetes API server, reading Kubernetes objects from the configuration directory',
    meaning: 'The Kubernetes registry is enabled and no cluster is configured.',
    action: noAction,
  },
  'kubernetes.unresponsive': {
    level: 'info',
    message: 'API server not responding, keeping last known objects, will retry',
    meaning:
      'Requests fail. Proxies keep being served. A warning follows if it lasts longer than a restart of the server.',
    action: noAction,
  },
  'kubernetes.stillUnresponsive': {
    level: 'warn',
    message: 'API server still not responding, keeping last known objects, will retry',
    meaning: 'Proxies are served with the last known objects; changes do not reach them.',
    action: 'Check the API server and the network to it.',
  },
  'kubernetes.responsive': {
    level: 'info',
    message: 'API server responding again',
    meaning: 'An outage is over; missed changes are read.',
    action: noAction,
  },
  'kubernetes.changeFailed': {
    level: 'error',
    message: 'change of a cluster not handled',
    meaning: 'An error in the control plane: a change may not reach proxies.',
    action: 'Report a bug with the trace (`--trace`).',
  },
  'kind.failed': {
    level: 'warn',
    message: 'kind not available, keeping last known objects, will retry',
    meaning: 'The API server rejects list or watch requests for this kind.',
    action: 'See `reason`; check the RBAC rules.',
  },
  'kind.unserved': {
    level: 'warn',
    message: 'kind not served in a supported version, its objects have no effect',
    meaning: 'The CRD has none of `versions`.',
    action: 'Install a CRD with one of these versions.',
  },
  'object.limitExceeded': {
    level: 'warn',
    message: 'object exceeds a limit, ignoring it',
    meaning:
      'The object is too large or there are too many. `similar`: more of this kind and namespace since the last line.',
    action: 'See `reason`.',
  },
  'secretAccess.limitExceeded': {
    level: 'warn',
    message: 'too many service accounts request Secrets, some get none',
    meaning: 'Accounts of the namespaces with most of them are left out.',
    action: 'Check which workloads use Secrets; spread them over namespaces.',
  },
  'remoteCluster.added': {
    level: 'info',
    message: 'remote cluster added',
    meaning: 'A Secret names a new cluster; its services follow.',
    action: noAction,
  },
  'remoteCluster.changed': {
    level: 'info',
    message: 'remote cluster has a new kubeconfig',
    meaning: 'It applies when all objects were read with it.',
    action: noAction,
  },
  'remoteCluster.removed': {
    level: 'info',
    message: 'remote cluster removed',
    meaning: 'Its Secret no longer names it; its services are removed.',
    action: noAction,
  },
  'remoteCluster.synced': {
    level: 'info',
    message: 'remote cluster synced',
    meaning: 'All its objects were read.',
    action: noAction,
  },
  'remoteCluster.secretInvalid': {
    level: 'warn',
    message: 'Secret of a remote cluster invalid, keeping its last kubeconfig',
    meaning: 'The Secret cannot be used.',
    action: 'See `reason`.',
  },
  'remoteCluster.objectInvalid': {
    level: 'warn',
    message: 'object of a remote cluster invalid, ignoring it',
    meaning: 'An object in the remote cluster has an error.',
    action: 'Correct the field.',
  },
  'leader.elected': {
    level: 'info',
    message: 'became leader',
    meaning: 'This replica holds the Lease and writes what it stands for.',
    action: noAction,
  },
  'leader.lost': {
    level: 'warn',
    message: 'no longer leader',
    meaning: 'The Lease was lost; another replica takes over, and this one competes again.',
    action: 'If it repeats, check the API server and the CPU limit of the replica.',
  },
  'leader.failed': {
    level: 'warn',
    message: 'Lease not available, will retry',
    meaning: 'The Lease cannot be read or written: nothing that it stands for is written.',
    action: 'See `reason`; check the RBAC rules for leases.',
  },
  'duty.written': {
    level: 'warn',
    message: 'objects not written, will retry',
    meaning: 'The API server does not accept writes of this leader.',
    action: 'See `reason`.',
  },
  'registration.failed': {
    level: 'warn',
    message: 'WorkloadEntry not written, will retry',
    meaning: 'The registration of a VM is delayed.',
    action: 'See `reason`; check the API server and the RBAC rules.',
  },
  'registration.rejected': {
    level: 'warn',
    message: 'workload registration rejected',
    meaning: 'The workload cannot be registered; its connections are closed.',
    action: 'See `reason`; check its WorkloadGroup.',
  },
  'request.failed': {
    level: 'warn',
    message: 'API request failed, will retry',
    meaning: 'A request to an API server failed.',
    action: 'See `reason`.',
  },
} as const satisfies LogEventTable;
