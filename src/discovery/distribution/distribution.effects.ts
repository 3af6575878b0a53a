import { fromCallback, fromPromise } from 'xstate';
import {
  type DistributionSummary,
  distributionMachine,
} from '../../../machines/discovery/distribution/distribution.machine.ts';
import type { DistributionChanged } from '../../../machines/discovery/protocol.ts';
import type { ObjectDistribution } from './distribution.ts';

export function distributionWithEffects(distribution: ObjectDistribution) {
  return distributionMachine.provide({
    actors: {
      watchFacts: fromCallback<{ type: never }, undefined>(({ sendBack }) =>
        distribution.onChange(() => sendBack({ type: 'distribution.changed' } satisfies DistributionChanged)),
      ),
      computeDelivery: fromPromise<DistributionSummary, undefined>(() => distribution.evaluate()),
    },
  });
}
