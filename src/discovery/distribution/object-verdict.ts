/** What is known of an object of the cluster: how many proxies have it, what Envoy says to it, what is wrong with it. */
import type { ObjectWarning } from './object-warnings.ts';

/** What Envoy rejects of an object. */
export interface Rejection {
  /** Proxies that reject what it led to. */
  readonly proxies: number;
  /** Proxies of this replica that the object concerns; absent: all that are counted. */
  readonly of?: number;
  /** What of it, in words: `listener 0.0.0.0_80`. */
  readonly resource: string;
  /** Envoy's words, made plain. */
  readonly reason: string;
}

export interface Distribution {
  /** Generation of the object that is meant. */
  readonly generation: number;
  /** Proxies that have acknowledged it, of those that it concerns: of all replicas, where this one writes the status. */
  readonly upToDate: number;
  readonly concerned: number;
  /** Absent: nobody rejects anything of it. */
  readonly rejection?: Rejection;
  /** Replicas that may serve proxies which it concerns, and have not reported them; absent: none. */
  readonly unreported?: readonly string[];
  /** Proxies of other replicas are not counted: this replica did not write the status when it counted. */
  readonly isOwnOnly?: true;
}

export interface Mistake {
  /** Generation of the object that is refused. */
  readonly generation: number;
  /** What is wrong with which field, in a line. */
  readonly text: string;
  /** The object is valid and takes effect in part; absent: it has no effect. */
  readonly reason?: 'LimitExceeded';
}

/** What the status of an object should say. */
export interface ObjectVerdict {
  /** Absent: nothing is known of it that is worth saying. */
  readonly distribution?: Distribution;
  readonly mistake?: Mistake;
  /** The object is valid and takes effect only in part; `none` if it takes effect as a whole; absent: that is not known yet. */
  readonly warning?: ObjectWarning | 'none';
  /** Generation of the object that is in force; absent for an object that is not one of the cluster. */
  readonly generation?: number;
}

export function isComplete({ upToDate, concerned, rejection, unreported }: Distribution): boolean {
  return upToDate === concerned && rejection === undefined && unreported === undefined;
}

/** A condition as it should be; who writes it gives it its time. */
export interface WantedCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
}

/** Conditions of which there is one only while it is so. */
export const rejectedCondition = 'Rejected';
const invalidCondition = 'Invalid';
/** Name of the condition, as Istio calls it. */
export const reconciledCondition = 'Reconciled';
/** Reason of {@link reconciledCondition}: counts of a replica are missing. Replicas that see it count the object again. */
export const unreportedReason = 'ReplicaNotReporting';
/** Reason of {@link reconciledCondition}: proxies have not acknowledged the object yet. */
export const pendingReason = 'Pending';
/** There only while the object takes effect in part; the Gateway API has it for routes. */
export const partialCondition = 'PartiallyInvalid';

export const ownConditions: readonly string[] = [
  reconciledCondition,
  rejectedCondition,
  invalidCondition,
  partialCondition,
];

/** The conditions that a verdict decides about; others of {@link ownConditions} stay as they are. */
export function decidedConditions({ distribution, mistake, warning }: ObjectVerdict): readonly string[] {
  const isDistributionKnown = distribution !== undefined || mistake !== undefined;
  return ownConditions.filter((type) => (type === partialCondition ? warning !== undefined : isDistributionKnown));
}

/**
 * All of {@link ownConditions} that there should be; others of {@link decidedConditions} are removed.
 *
 * @param isRejectedElsewhere another replica says that its proxies reject the object: that stays as it is, and is no `Rejected` of ours
 */
export function conditionsOf(
  { distribution, mistake, warning }: ObjectVerdict,
  isRejectedElsewhere = false,
): readonly WantedCondition[] {
  const conditions: WantedCondition[] = [];
  if (warning !== undefined && warning !== 'none') {
    const { generation: observedGeneration, reason, text: message } = warning;
    conditions.push({ type: partialCondition, status: 'True', reason, message, observedGeneration });
  }
  if (mistake !== undefined) {
    const { generation: observedGeneration, text, reason } = mistake;
    const effect = reason === undefined ? notInForce : text;
    conditions.push(
      { type: reconciledCondition, status: 'False', reason: reason ?? 'Invalid', message: effect, observedGeneration },
      { type: invalidCondition, status: 'True', reason: reason ?? 'InvalidObject', message: text, observedGeneration },
    );
  } else if (distribution !== undefined) conditions.push(reconciled(distribution, isRejectedElsewhere));
  // The rejection is one of the version in force, whatever came after it.
  const rejection = isRejectedElsewhere ? undefined : rejectedOf(distribution);
  return rejection === undefined ? conditions : [...conditions, rejection];
}

/** What Envoy rejects of it; undefined: nothing. */
export function rejectedOf(distribution: Distribution | undefined): WantedCondition | undefined {
  return distribution?.rejection && rejected(distribution, distribution.rejection);
}

const notInForce = 'The object does not apply; its last valid version applies, if there was one.';

const elsewhere = ', proxies of another replica reject it';

function reconciled(distribution: Distribution, isRejectedElsewhere: boolean): WantedCondition {
  const { upToDate, concerned, rejection, generation, unreported } = distribution;
  const counted = `${upToDate}/${concerned} proxies up to date`;
  const complete = isComplete(distribution) && !isRejectedElsewhere;
  const isRejected = rejection !== undefined || isRejectedElsewhere;
  if (unreported !== undefined && !isRejected && upToDate === concerned) {
    const message = `${counted}; replicas ${namesText(unreported)} have not reported yet`;
    const condition = { type: reconciledCondition, status: 'Unknown', reason: unreportedReason } as const;
    return { ...condition, message, observedGeneration: generation };
  }
  return {
    type: reconciledCondition,
    status: complete ? 'True' : 'False',
    reason: complete ? (concerned === 0 ? 'NoProxies' : 'UpToDate') : isRejected ? 'Rejected' : pendingReason,
    message: `${counted}${rejection === undefined && isRejected ? elsewhere : ''}`,
    observedGeneration: generation,
  };
}

const maxNamedReplicas = 5;

function namesText(names: readonly string[]): string {
  const more = names.length > maxNamedReplicas ? ` and ${names.length - maxNamedReplicas} more` : '';
  return `${names.slice(0, maxNamedReplicas).join(', ')}${more}`;
}

function rejected(
  { concerned, generation }: Distribution,
  { proxies, of: ownConcerned = concerned, resource, reason }: Rejection,
): WantedCondition {
  // Who rejects what somebody else's change led to is not of those that the object concerns.
  const of = Math.max(ownConcerned, proxies);
  return {
    type: rejectedCondition,
    status: 'True',
    reason: 'RejectedByEnvoy',
    message: `${proxies} of ${of} ${of === 1 ? 'proxy rejects' : 'proxies reject'} ${resource}: ${reason}`,
    observedGeneration: generation,
  };
}
