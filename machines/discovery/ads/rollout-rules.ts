/** The rules of make before break that a stream applies, as one value: an exploration breaks one of them on purpose. */
import { afterRemovalStep, withRetained, withUseAcknowledged } from './cluster-removal.ts';
import {
  afterLimitStep,
  withAssignmentsSent,
  withClustersAnswered,
  withClustersGone,
  withClustersSent,
  withHeld,
} from './cluster-rollout.ts';

export const rolloutRules = {
  withClustersSent,
  withAssignmentsSent,
  withClustersAnswered,
  withClustersGone,
  withHeld,
  afterLimitStep,
  withRetained,
  withUseAcknowledged,
  afterRemovalStep,
};

export type RolloutRules = typeof rolloutRules;
