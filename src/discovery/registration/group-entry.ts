import { type Config, configKeyOf } from '../../model/config/config.ts';
import { readConfigObject } from '../../model/config/config-file.ts';
import { problemText } from '../../model/config/problem.ts';
import type { WorkloadEntry } from '../../model/kinds/workloads/workload-entry.ts';
import type { WorkloadGroup } from '../../model/kinds/workloads/workload-group.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import type { WorkloadClaim } from './workload-claim.ts';

export const annotations = {
  group: 'istio.io/autoRegistrationGroup',
  /** Replica of the current or last connection. */
  controller: 'istio.io/workloadController',
  connectedAt: 'istio.io/connectedAt',
  /** Absent while the workload is connected. */
  disconnectedAt: 'istio.io/disconnectedAt',
  /** With this annotation, the workload is unhealthy until the condition `Healthy` is set. */
  healthChecks: 'proxy.istio.io/health-checks-enabled',
} as const;

export type GroupResult = { readonly group: ValidGroup } | { readonly problem: string };

export interface ValidGroup {
  readonly name: string;
  readonly uid: string | undefined;
  readonly apiVersion: string;
  readonly spec: WorkloadGroup;
}

export function readGroup(object: KubernetesObject): GroupResult {
  const { config, problems } = readConfigObject('k8s://', object, { creationTimestamp: 0 });
  if (config === undefined) {
    const [problem] = problems;
    return { problem: problem === undefined ? 'unknown kind' : problemText(problem) };
  }
  const { name } = configKeyOf(config);
  const { metadata, apiVersion = '' } = object;
  return { group: { name, uid: metadata.uid, apiVersion, spec: (config as Config<WorkloadGroup>).spec } };
}

export interface ConnectedEntry {
  readonly controller: string;
  /** RFC 3339. */
  readonly connectedAt: string;
}

/** Values of the workload override `metadata` of the group, which overrides the template. */
export function entryOf(claim: WorkloadClaim, group: ValidGroup, connection: ConnectedEntry): Record<string, unknown> {
  const { address: _, ...template } = group.spec.template;
  const labels = { ...template.labels, ...group.spec.metadata?.labels, ...claim.labels };
  const spec: WorkloadEntry = {
    ...template,
    address: claim.address,
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(claim.network !== '' && { network: claim.network }),
    ...(claim.locality !== '' && { locality: claim.locality }),
  };
  return {
    metadata: {
      labels,
      annotations: {
        ...group.spec.metadata?.annotations,
        [annotations.group]: claim.group,
        ...(claim.isProbed && { [annotations.healthChecks]: 'true' }),
        [annotations.controller]: connection.controller,
        [annotations.connectedAt]: connection.connectedAt,
      },
      // Kubernetes deletes the entry together with its owner, the group.
      ...(group.uid !== undefined && {
        ownerReferences: [
          { apiVersion: group.apiVersion, kind: 'WorkloadGroup', name: group.name, uid: group.uid, controller: true },
        ],
      }),
    },
    spec,
  };
}
