/** Effects of the chart `trust-bundle`: one bundle endpoint. */
import { fromPromise } from 'xstate';
import {
  type BundleAnswer,
  type TrustBundleInput,
  trustBundleMachine,
} from '../../../machines/discovery/bundles/trust-bundle.machine.ts';
import type { BundleEndpoints } from './bundle-endpoints.ts';

export function trustBundleWithEffects(bundles: BundleEndpoints) {
  return trustBundleMachine.provide({
    actors: {
      recallBundle: fromPromise<BundleAnswer, TrustBundleInput>(({ input }) => bundles.recall(input)),
      fetchBundle: fromPromise<BundleAnswer, TrustBundleInput>(({ input, signal }) => bundles.fetch(input, signal)),
    },
    actions: { applyBundle: ({ context }, { version }) => bundles.setActive(context.endpoint, version) },
  });
}
