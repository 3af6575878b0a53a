/** A WorkloadEntry that is made of a WorkloadGroup, and what its annotations say of who is connected where. */
import { type Config, configKeyOf } from '../../model/config/config.ts';
import { readConfigObject } from '../../model/config/config-file.ts';
import { problemText } from '../../model/config/problem.ts';
import type { WorkloadEntry } from '../../model/kinds/workloads/workload-entry.ts';
import type { WorkloadGroup } from '../../model/kinds/workloads/workload-group.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import type { WorkloadClaim } from './workload-claim.ts';

/** The same words as Istio's. */
export const annotations = {
  group: 'istio.io/autoRegistrationGroup',
  /** The replica that the workload is connected to, or was last. */
  controller: 'istio.io/workloadController',
  connectedAt: 'istio.io/connectedAt',
  /** When the workload went; absent while it is connected. */
  disconnectedAt: 'istio.io/disconnectedAt',
  /** Without the condition `Healthy` the workload is unhealthy. */
  healthChecks: 'proxy.istio.io/health-checks-enabled',
} as const;

/** A group as it is in force, or why it is not. */
export type ReadGroup = { readonly group: GroupInForce } | { readonly problem: string };

export interface GroupInForce {
  readonly name: string;
  readonly uid: string | undefined;
  readonly apiVersion: string;
  readonly spec: WorkloadGroup;
}

/** @param object as the API server has it */
export function readGroup(object: KubernetesObject): ReadGroup {
  const { config, problems } = readConfigObject('k8s://', object, { creationTimestamp: 0 });
  if (config === undefined) {
    const [problem] = problems;
    return { problem: problem === undefined ? 'unknown kind' : problemText(problem) };
  }
  const { name } = configKeyOf(config);
  const { metadata, apiVersion = '' } = object;
  return { group: { name, uid: metadata.uid, apiVersion, spec: (config as Config<WorkloadGroup>).spec } };
}

/** Who has the connection, and since when. */
export interface Connected {
  readonly controller: string;
  /** RFC 3339. */
  readonly connectedAt: string;
}

/** What the workload says counts before what the group's `metadata` says, and that before its template. */
export function entryOf(claim: WorkloadClaim, group: GroupInForce, connected: Connected): Record<string, unknown> {
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
        [annotations.controller]: connected.controller,
        [annotations.connectedAt]: connected.connectedAt,
      },
      // The entry is deleted with its group.
      ...(group.uid !== undefined && {
        ownerReferences: [
          { apiVersion: group.apiVersion, kind: 'WorkloadGroup', name: group.name, uid: group.uid, controller: true },
        ],
      }),
    },
    spec,
  };
}
