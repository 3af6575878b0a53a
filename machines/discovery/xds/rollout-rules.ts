/** The rules of make before break that a stream applies, as one value, so that an exploration can break one of them. */
import { afterLimitStep, withConfiguration, withSuspects } from './cluster-limit.ts';
import { afterRemovalStep, withRetained, withUseAcknowledged } from './cluster-removal.ts';
import {
  withAssignmentsSent,
  withClustersAnswered,
  withClustersGone,
  withClustersSent,
  withHeld,
  withUnknownGone,
  withUnknownRejected,
} from './cluster-rollout.ts';

export const rolloutRules = {
  withClustersSent,
  withAssignmentsSent,
  withClustersAnswered,
  withClustersGone,
  withUnknownGone,
  withUnknownRejected,
  withHeld,
  afterLimitStep,
  withConfiguration,
  withSuspects,
  withRetained,
  withUseAcknowledged,
  afterRemovalStep,
};

export type RolloutRules = typeof rolloutRules;
