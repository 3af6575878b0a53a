/** Resources are unchanged, but connections and disconnections are reported to auto-registration. */

import { withCode } from '../../runtime/errors.ts';
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
    open: (node, onRefused) => {
      if (!requestsRegistration(node)) return source.open(node, onRefused);
      const claimResult = claimOf(node, clusterAliases);
      if ('code' in claimResult) return refusalOf(claimResult);
      const claim = healthChecks ? claimResult : { ...claimResult, isProbed: false };
      const rejection = registrations.rejectionOf(claim);
      if (rejection !== undefined) return refusalOf(rejection);
      const openedNode = source.open(node, onRefused);
      if ('error' in openedNode) return openedNode;
      const connection = registrations.connect(claim, (reason) => onRefused?.(withRejectionCode(reason)));
      return { resources: withReports(openedNode.resources, connection, healthChecks) };
    },
  };
}

function refusalOf(rejection: StreamRejection): OpenedNode {
  const { code, reason } = withRejectionCode(rejection);
  return { error: reason, code };
}

function withRejectionCode({ code, reason }: StreamRejection): StreamRejection {
  return {
    code,
    reason: withCode(reason, code === 'RESOURCE_EXHAUSTED' ? 'REGISTRATIONS_EXHAUSTED' : 'REGISTRATION_REJECTED'),
  };
}

type ReportedConnection = ReturnType<WorkloadRegistrations['connect']>;

function withReports(resources: NodeResources, connection: ReportedConnection, healthChecks: boolean): NodeResources {
  return {
    get: (typeUrl, names) => resources.get(typeUrl, names),
    prepare: (typeUrl, names) => resources.prepare?.(typeUrl, names),
    typesToPush: (change, watched) => resources.typesToPush(change, watched),
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
