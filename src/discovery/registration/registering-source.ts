/** Connections of workloads that register themselves, among all others: what a node is given is the same, and its coming and going is told. */

import { withCode } from '../../runtime/errors.ts';
import type { NodeResources, OpenedNode, ResourceSource, StreamRejection } from '../xds/resource-source.ts';
import { asksToRegister, claimOf } from './workload-claim.ts';
import type { WorkloadRegistrations } from './workload-registrations.ts';

export interface RegisteringSourceOptions {
  readonly registrations: WorkloadRegistrations;
  readonly clusterAliases: Readonly<Record<string, string>>;
  /** What workloads say of their health is written (PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS). */
  readonly healthChecks: boolean;
}

/**
 * The API server is asked for nothing before a node is served: what it says ends the stream later, if it must. A node that asks to be
 * registered, and is found out not to be allowed to, is not served at all.
 */
export function registeringSource(
  source: ResourceSource,
  { registrations, clusterAliases, healthChecks }: RegisteringSourceOptions,
): ResourceSource {
  return {
    open: (node, refused) => {
      if (!asksToRegister(node)) return source.open(node, refused);
      const claimed = claimOf(node, clusterAliases);
      if ('code' in claimed) return refusalOf(claimed);
      const claim = healthChecks ? claimed : { ...claimed, isProbed: false };
      const rejection = registrations.rejectionOf(claim);
      if (rejection !== undefined) return refusalOf(rejection);
      const opened = source.open(node, refused);
      if ('error' in opened) return opened;
      const connection = registrations.enter(claim, (why) => refused?.(coded(why)));
      return { resources: reporting(opened.resources, connection, healthChecks) };
    },
  };
}

function refusalOf(rejection: StreamRejection): OpenedNode {
  const { code, reason } = coded(rejection);
  return { error: reason, code };
}

function coded({ code, reason }: StreamRejection): StreamRejection {
  return {
    code,
    reason: withCode(reason, code === 'RESOURCE_EXHAUSTED' ? 'REGISTRATIONS_EXHAUSTED' : 'REGISTRATION_REJECTED'),
  };
}

type Connection = ReturnType<WorkloadRegistrations['enter']>;

function reporting(others: NodeResources, connection: Connection, healthChecks: boolean): NodeResources {
  return {
    get: (typeUrl, names) => others.get(typeUrl, names),
    prepare: (typeUrl, names) => others.prepare?.(typeUrl, names),
    typesToPush: (change, watched) => others.typesToPush(change, watched),
    sent: (typeUrl, version, cause) => others.sent?.(typeUrl, version, cause),
    acknowledged: (typeUrl, version) => others.acknowledged?.(typeUrl, version),
    rejected: (typeUrl) => others.rejected?.(typeUrl),
    watched: (watches) => others.watched?.(watches),
    nodeUpdated: (typeUrl, metadata) => others.nodeUpdated?.(typeUrl, metadata),
    healthReported: (failure) => {
      if (healthChecks) connection.reportHealth(failure);
    },
    close: () => {
      connection.leave();
      others.close();
    },
  };
}
