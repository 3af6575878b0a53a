/** The rules of make before break that a stream applies, as one value, so that an exploration can break one of them. */
import { rolloutAfterLimitStep, withConfiguration, withSuspects } from './cluster-limit.ts';
import { rolloutAfterRemovalStep, withRetained, withUseAcknowledged } from './cluster-removal.ts';
import {
  withAssignmentsSent,
  withClustersAcknowledged,
  withClustersRemoved,
  withClustersSent,
  withHeld,
  withUnknownRejected,
  withUnknownRemoved,
} from './cluster-rollout.ts';

export const rolloutRules = {
  withClustersSent,
  withAssignmentsSent,
  withClustersAcknowledged,
  withClustersRemoved,
  withUnknownRemoved,
  withUnknownRejected,
  withHeld,
  afterLimitStep: rolloutAfterLimitStep,
  withConfiguration,
  withSuspects,
  withRetained,
  withUseAcknowledged,
  afterRemovalStep: rolloutAfterRemovalStep,
};

export type RolloutRules = typeof rolloutRules;
