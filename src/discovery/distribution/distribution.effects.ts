/** Effects of the chart `distribution`. */
import { fromCallback, fromPromise } from 'xstate';
import {
  type DistributionLook,
  distributionMachine,
} from '../../../machines/discovery/distribution/distribution.machine.ts';
import type { DistributionStirred } from '../../../machines/discovery/protocol.ts';
import type { ObjectDistribution } from './distribution.ts';

export function distributionWithEffects(distribution: ObjectDistribution) {
  return distributionMachine.provide({
    actors: {
      watchFacts: fromCallback<{ type: never }, undefined>(({ sendBack }) =>
        distribution.onChange(() => sendBack({ type: 'distribution.changed' } satisfies DistributionStirred)),
      ),
      look: fromPromise<DistributionLook, undefined>(() => distribution.evaluate()),
    },
  });
}
