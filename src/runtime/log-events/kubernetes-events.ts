import { type LogEventTable, noAction } from './log-event.ts';

/** Events of pilot-discovery about API servers, remote clusters, Leases and WorkloadEntries. */
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
    message: 'cluster change not processed',
    meaning: 'An error in the control plane: a change of Kubernetes objects may not reach proxies.',
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
    action:
      'Reduce or divide the objects as `reason` describes; it names the limit. The ignored object has no effect until then.',
  },
  'secretAccess.limitExceeded': {
    level: 'warn',
    message: 'too many service accounts request Secrets, some get none',
    meaning:
      'The limit of accounts with access to Secrets is reached; the namespaces with the most accounts exceed their share.',
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
    action: 'Correct the kubeconfig in the Secret that `reason` names.',
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
    meaning:
      'This replica holds the Lease and writes the objects that belong to it (for example statuses or root certificates).',
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
    meaning: 'The Lease cannot be read or written, so this replica writes none of the objects that belong to it.',
    action: 'If it lasts: see `reason`; check the API server and the RBAC rules for leases.',
  },
  'duty.written': {
    level: 'warn',
    message: 'Kubernetes objects not written, will retry',
    meaning: 'The API server rejects writes of this leader, or does not respond. `lease` names the kind of objects.',
    action: 'If it lasts: see `reason`; check the API server and the RBAC rules.',
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
    action: 'Correct the WorkloadGroup, the WorkloadEntry or the metadata of the proxy that `reason` names.',
  },
  'request.failed': {
    level: 'warn',
    message: 'API request failed, will retry',
    meaning: 'A request to an API server failed.',
    action: 'None if it is rare: the request is retried. If it lasts, see the code in `reason` (docs/errors.md).',
  },
} as const satisfies LogEventTable;
