/** Resources are unchanged, but connections and disconnections are reported to auto-registration. */

import { appendCode } from '../../runtime/errors.ts';
import type { NodeResources, OpenedNode, ResourceSource, StreamRejection } from '../xds/resource-source.ts';
import { claimOf, requestsRegistration } from './workload-claim.ts';
import type { WorkloadRegistrations } from './workload-registrations.ts';

export interface RegisteringSourceOptions {
  readonly registrations: WorkloadRegistrations;
  readonly clusterAliases: Readonly<Record<string, string>>;
  /** PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS. */
  readonly healthChecks: boolean;
}

/**
 * A node is served without waiting for the API server. If registration is rejected later, the stream ends. If the rejection is already known, the
 * node is not served.
 */
export function registeringSource(
  source: ResourceSource,
  { registrations, clusterAliases, healthChecks }: RegisteringSourceOptions,
): ResourceSource {
  return {
    openNode: (node, onRejected) => {
      if (!requestsRegistration(node)) return source.openNode(node, onRejected);
      const claimResult = claimOf(node, clusterAliases);
      if ('code' in claimResult) return openErrorOf(claimResult);
      const claim = healthChecks ? claimResult : { ...claimResult, isProbed: false };
      const rejection = registrations.rejectionOf(claim);
      if (rejection !== undefined) return openErrorOf(rejection);
      const openedNode = source.openNode(node, onRejected);
      if ('error' in openedNode) return openedNode;
      const connection = registrations.connect(claim, (reason) => onRejected?.(withRejectionCode(reason)));
      return { resources: withReports(openedNode.resources, connection, healthChecks) };
    },
  };
}

function openErrorOf(rejection: StreamRejection): OpenedNode {
  const { code, reason } = withRejectionCode(rejection);
  return { error: reason, code };
}

function withRejectionCode({ code, reason }: StreamRejection): StreamRejection {
  return {
    code,
    reason: appendCode(reason, code === 'RESOURCE_EXHAUSTED' ? 'REGISTRATIONS_EXHAUSTED' : 'REGISTRATION_REJECTED'),
  };
}

type ReportedConnection = ReturnType<WorkloadRegistrations['connect']>;

function withReports(resources: NodeResources, connection: ReportedConnection, healthChecks: boolean): NodeResources {
  return {
    get: (typeUrl, names) => resources.get(typeUrl, names),
    prepare: (typeUrl, names) => resources.prepare?.(typeUrl, names),
    typesToPush: (change, watchedTypes) => resources.typesToPush(change, watchedTypes),
    sent: (typeUrl, version, cause) => resources.sent?.(typeUrl, version, cause),
    acknowledged: (typeUrl, version) => resources.acknowledged?.(typeUrl, version),
    rejected: (typeUrl) => resources.rejected?.(typeUrl),
    provideWatches: (watches) => resources.provideWatches?.(watches),
    nodeUpdated: (typeUrl, metadata) => resources.nodeUpdated?.(typeUrl, metadata),
    healthReported: (failure) => {
      if (healthChecks) connection.reportHealth(failure);
    },
    close: () => {
      connection.disconnect();
      resources.close();
    },
  };
}
