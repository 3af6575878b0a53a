import type { ObjectWarning } from './object-warnings.ts';

export interface ObjectRejection {
  readonly proxies: number;
  /** Absent if the object affects all counted proxies. */
  readonly of?: number;
  /** Type and name, such as `listener 0.0.0.0_80`. */
  readonly resource: string;
  /** Envoy's error text, escaped. */
  readonly reason: string;
}

export interface ObjectProgress {
  readonly generation: number;
  /** Both numbers include all replicas if this one writes the status. */
  readonly upToDate: number;
  readonly concerned: number;
  readonly rejection?: ObjectRejection;
  readonly unreported?: readonly string[];
  /** Set if this replica did not write statuses when it counted. */
  readonly isOwnOnly?: true;
}

export interface ObjectError {
  readonly generation: number;
  readonly text: string;
  /** Absent if the object has no effect. */
  readonly reason?: 'LimitExceeded';
}

export interface ObjectFindings {
  readonly distribution?: ObjectProgress;
  readonly error?: ObjectError;
  /** Contains `none` if the object takes full effect. Absent before the first diagnostics. */
  readonly warning?: ObjectWarning | 'none';
  /** Applied generation. Absent for an object outside the cluster. */
  readonly generation?: number;
}

export function isComplete({ upToDate, concerned, rejection, unreported }: ObjectProgress): boolean {
  return upToDate === concerned && rejection === undefined && unreported === undefined;
}

export interface ObjectCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
}

export const rejectedCondition = 'Rejected';
const invalidCondition = 'Invalid';
export const reconciledCondition = 'Reconciled';
/** Replicas that read this reason count the object again. */
export const unreportedReason = 'ReplicaNotReporting';
export const pendingReason = 'Pending';
/** The Gateway API defines this condition for routes. */
export const partialCondition = 'PartiallyInvalid';

export const ownConditions: readonly string[] = [
  reconciledCondition,
  rejectedCondition,
  invalidCondition,
  partialCondition,
];

/** Other {@link ownConditions} stay unchanged. */
export function decidedConditions({ distribution, error, warning }: ObjectFindings): readonly string[] {
  const hasDistribution = distribution !== undefined || error !== undefined;
  return ownConditions.filter((type) => (type === partialCondition ? warning !== undefined : hasDistribution));
}

/**
 * The caller must remove other {@link decidedConditions}.
 *
 * @param isRejectedByOtherReplica another replica's `Rejected` condition is kept and this replica adds none
 */
export function conditionsOf(
  { distribution, error, warning }: ObjectFindings,
  isRejectedByOtherReplica = false,
): readonly ObjectCondition[] {
  const conditions: ObjectCondition[] = [];
  if (warning !== undefined && warning !== 'none') {
    const { generation: observedGeneration, reason, text: message } = warning;
    conditions.push({ type: partialCondition, status: 'True', reason, message, observedGeneration });
  }
  if (error !== undefined) {
    const { generation: observedGeneration, text, reason } = error;
    const effect = reason === undefined ? notAppliedMessage : text;
    conditions.push(
      { type: reconciledCondition, status: 'False', reason: reason ?? 'Invalid', message: effect, observedGeneration },
      { type: invalidCondition, status: 'True', reason: reason ?? 'InvalidObject', message: text, observedGeneration },
    );
  } else if (distribution !== undefined)
    conditions.push(buildReconciledCondition(distribution, isRejectedByOtherReplica));
  // The rejection is about the applied version, even if a later version is invalid.
  const rejection = isRejectedByOtherReplica ? undefined : rejectedConditionOf(distribution);
  return rejection === undefined ? conditions : [...conditions, rejection];
}

export function rejectedConditionOf(distribution: ObjectProgress | undefined): ObjectCondition | undefined {
  return distribution?.rejection && buildRejectedCondition(distribution, distribution.rejection);
}

const notAppliedMessage = 'The object does not apply; its last valid version applies, if there was one.';

const otherReplicaText = ', proxies of another replica reject it';

function buildReconciledCondition(distribution: ObjectProgress, isRejectedByOtherReplica: boolean): ObjectCondition {
  const { upToDate, concerned, rejection, generation, unreported } = distribution;
  const countText = `${upToDate}/${concerned} proxies up to date`;
  const complete = isComplete(distribution) && !isRejectedByOtherReplica;
  const isRejected = rejection !== undefined || isRejectedByOtherReplica;
  if (unreported !== undefined && !isRejected && upToDate === concerned) {
    const message = `${countText}; replicas ${namesText(unreported)} have not reported yet`;
    const condition = { type: reconciledCondition, status: 'Unknown', reason: unreportedReason } as const;
    return { ...condition, message, observedGeneration: generation };
  }
  return {
    type: reconciledCondition,
    status: complete ? 'True' : 'False',
    reason: complete ? (concerned === 0 ? 'NoProxies' : 'UpToDate') : isRejected ? 'Rejected' : pendingReason,
    message: `${countText}${rejection === undefined && isRejected ? otherReplicaText : ''}`,
    observedGeneration: generation,
  };
}

const maxNamedReplicas = 5;

function namesText(names: readonly string[]): string {
  const omittedText = names.length > maxNamedReplicas ? ` and ${names.length - maxNamedReplicas} more` : '';
  return `${names.slice(0, maxNamedReplicas).join(', ')}${omittedText}`;
}

function buildRejectedCondition(
  { concerned, generation }: ObjectProgress,
  { proxies, of: ownConcerned = concerned, resource, reason }: ObjectRejection,
): ObjectCondition {
  // A proxy that rejects a resource of several objects is not necessarily affected by this one.
  const proxyCount = Math.max(ownConcerned, proxies);
  return {
    type: rejectedCondition,
    status: 'True',
    reason: 'RejectedByEnvoy',
    message: `${proxies} of ${proxyCount} ${proxyCount === 1 ? 'proxy rejects' : 'proxies reject'} ${resource}: ${reason}`,
    observedGeneration: generation,
  };
}
