/** Reads the WorkloadEntry first, and replaces only that version. If another client wrote in between, the write fails. */

import type { EntryOrder, EntryResult } from '../../../machines/discovery/registration/registration.machine.ts';
import type { WorkloadHealth } from '../../../machines/discovery/registration/registration-protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import { requestOf, type WriteOrder } from '../election/write-gate.ts';
import { statusOf } from '../kubernetes/api-failure.ts';
import { resourceOf } from '../kubernetes/api-resource.ts';
import type { ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';
import { annotations, type ConnectedEntry, entryOf, type GroupResult } from './group-entry.ts';
import type { WorkloadClaim } from './workload-claim.ts';

export interface EntryWriterOptions {
  readonly server: Pick<ApiServer, 'request'>;
  /** Unique, not reused after a restart. */
  readonly controller: string;
  readonly groupOf: (claim: WorkloadClaim) => GroupResult | undefined;
  /** Unix time in milliseconds. */
  readonly now: () => number;
}

/** A write requires two responses of the API server. */
const responseMs = 5_000;
const entries = resourceOf('WorkloadEntry');
const maxMessageLength = 32_768;

type EntryLocation = { readonly resource: typeof entries; readonly namespace: string; readonly name: string };

export class EntryWriter {
  readonly #options: EntryWriterOptions;

  constructor(options: EntryWriterOptions) {
    this.#options = options;
  }

  /**
   * Never rejects: failures are results.
   *
   * @param connectedAt RFC 3339
   */
  async write(order: EntryOrder, claim: WorkloadClaim, connectedAt: string, signal: AbortSignal): Promise<EntryResult> {
    const location: EntryLocation = { resource: entries, namespace: claim.namespace, name: claim.name };
    try {
      const entry = await this.#readEntry(location, signal);
      const write = this.#writeFor(order, { claim, connectedAt, entry, entryLocation: location });
      if (!('verb' in write)) return write;
      await this.#options.server.request({ ...requestOf(write), timeoutMs: responseMs }, signal);
      return { outcome: 'written' };
    } catch (error) {
      return outcomeOf(error, order);
    }
  }

  async #readEntry(
    { resource, namespace, name }: EntryLocation,
    signal: AbortSignal,
  ): Promise<KubernetesObject | undefined> {
    try {
      const readRequest = { method: 'GET', resource, namespace, name, timeoutMs: responseMs } as const;
      return await this.#options.server.request(readRequest, signal);
    } catch (error) {
      if (statusOf(error) === 404) return undefined;
      throw error;
    }
  }

  #writeFor(order: EntryOrder, entryReading: EntryReading): WriteOrder | EntryResult {
    const { controller } = this.#options;
    if (order.operation === 'register') return this.#registrationWrite(entryReading);
    const { entry, entryLocation } = entryReading;
    if (entry === undefined || annotationsOf(entry)[annotations.controller] !== controller) {
      return { outcome: 'foreign' };
    }
    const entryOrder = { ...entryLocation, version: entry.metadata.resourceVersion ?? '' };
    switch (order.operation) {
      case 'report health': {
        const conditions = withHealth(entry.status, order.health, this.#time);
        if (conditions === undefined) return { outcome: 'written' };
        return { ...entryOrder, verb: 'patch', subresource: 'status', fields: { status: { conditions } } };
      }
      case 'note disconnect':
        return {
          ...{ ...entryOrder, verb: 'patch' },
          fields: {
            metadata: {
              annotations: { [annotations.connectedAt]: null, [annotations.disconnectedAt]: this.#time },
            },
          },
        };
      case 'delete':
        if (annotationsOf(entry)[annotations.disconnectedAt] === undefined) return { outcome: 'foreign' };
        return { ...entryOrder, verb: 'delete' };
    }
  }

  #registrationWrite({ claim, connectedAt, entry, entryLocation }: EntryReading): WriteOrder | EntryResult {
    const { controller, groupOf } = this.#options;
    const connection: ConnectedEntry = { controller, connectedAt };
    if (entry !== undefined) {
      const problem = ownershipProblem(entry, claim);
      if (problem !== undefined) return { outcome: 'rejected', reason: problem };
      if (entry.metadata.deletionTimestamp !== undefined)
        return { outcome: 'failed', reason: 'the WorkloadEntry is being deleted' };
      const currentAnnotations = annotationsOf(entry);
      const isUpToDate =
        currentAnnotations[annotations.connectedAt] === connectedAt &&
        currentAnnotations[annotations.disconnectedAt] === undefined;
      if (isUpToDate && currentAnnotations[annotations.controller] === controller) return { outcome: 'written' };
      const claimedAnnotations = {
        [annotations.controller]: controller,
        [annotations.connectedAt]: connectedAt,
        [annotations.disconnectedAt]: null,
      };
      const version = entry.metadata.resourceVersion ?? '';
      return { ...entryLocation, verb: 'patch', version, fields: { metadata: { annotations: claimedAnnotations } } };
    }
    const groupReading = groupOf(claim);
    const problem = groupProblem(groupReading, claim);
    if (problem !== undefined || groupReading === undefined || !('group' in groupReading)) {
      return { outcome: 'rejected', reason: problem ?? '' };
    }
    return { ...entryLocation, verb: 'create', object: entryOf(claim, groupReading.group, connection) };
  }

  get #time(): string {
    return new Date(this.#options.now()).toISOString();
  }
}

interface EntryReading {
  readonly claim: WorkloadClaim;
  readonly connectedAt: string;
  readonly entry: KubernetesObject | undefined;
  readonly entryLocation: EntryLocation;
}

/** `undefined` if the group can register the workload. */
export function groupProblem(groupResult: GroupResult | undefined, claim: WorkloadClaim): string | undefined {
  const { namespace, group, name } = claim;
  const failureText = `auto-registration of WorkloadEntry ${namespace}/${name} failed:`;
  if (groupResult === undefined) return `${failureText} cannot find WorkloadGroup ${namespace}/${group}`;
  if ('problem' in groupResult)
    return `${failureText} WorkloadGroup ${namespace}/${group} is invalid: ${groupResult.problem}`;
  const account = groupResult.group.spec.template.serviceAccount ?? '';
  if (account === '' || account === claim.serviceAccount) return undefined;
  return `${failureText} WorkloadGroup ${namespace}/${group} is for service account ${account}, got ${claim.serviceAccount}`;
}

/** Reports an entry that a user wrote, or that is for another group, address or account. */
function ownershipProblem(entry: KubernetesObject, claim: WorkloadClaim): string | undefined {
  const spec = isObject(entry.spec) ? entry.spec : {};
  const prefix = `WorkloadEntry ${claim.namespace}/${claim.name} already exists, and is`;
  const group = annotationsOf(entry)[annotations.group];
  if (group === undefined) return `${prefix} not registered automatically`;
  if (group !== claim.group) return `${prefix} of WorkloadGroup ${group}`;
  if (spec.address !== claim.address) return `${prefix} of another address`;
  const account = spec.serviceAccount ?? '';
  return account === '' || account === claim.serviceAccount ? undefined : `${prefix} of another service account`;
}

/** `undefined` if nothing changes. */
function withHealth(status: unknown, { healthy, message }: WorkloadHealth, now: string): unknown[] | undefined {
  const previous: unknown[] = isObject(status) && Array.isArray(status.conditions) ? status.conditions : [];
  const conditionIndex = previous.findIndex((condition) => isObject(condition) && condition.type === 'Healthy');
  const healthCondition = previous[conditionIndex];
  const reportedCondition = { status: healthy ? 'True' : 'False', message: message.slice(0, maxMessageLength) };
  const isStatusUnchanged = isObject(healthCondition) && healthCondition.status === reportedCondition.status;
  if (isStatusUnchanged && (healthCondition.message ?? '') === reportedCondition.message) return undefined;
  const transitionTime = isStatusUnchanged ? healthCondition.lastTransitionTime : now;
  const condition = {
    ...{ type: 'Healthy', ...reportedCondition, reason: healthy ? 'Healthy' : 'Unhealthy' },
    ...{ lastProbeTime: now, lastTransitionTime: transitionTime ?? now },
  };
  return conditionIndex < 0 ? [...previous, condition] : previous.with(conditionIndex, condition);
}

function outcomeOf(error: unknown, { operation }: EntryOrder): EntryResult {
  const code = statusOf(error);
  if (code === 404 && operation !== 'register') return { outcome: 'foreign' };
  const reason = messageOf(error);
  // The API server will never accept this object.
  if (operation === 'register' && (code === 400 || code === 413 || code === 422))
    return { outcome: 'rejected', reason };
  return { outcome: 'failed', reason };
}

function annotationsOf({ metadata }: KubernetesObject): Readonly<Record<string, string | undefined>> {
  return metadata.annotations ?? {};
}
