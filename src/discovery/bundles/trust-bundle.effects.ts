import { fromPromise } from 'xstate';
import {
  type BundleResponse,
  type TrustBundleInput,
  trustBundleMachine,
} from '../../../machines/discovery/bundles/trust-bundle.machine.ts';
import type { BundleEndpoints } from './bundle-endpoints.ts';

export function trustBundleWithEffects(bundles: BundleEndpoints) {
  return trustBundleMachine.provide({
    actors: {
      recallBundle: fromPromise<BundleResponse, TrustBundleInput>(({ input }) => bundles.restoreSavedBundle(input)),
      fetchBundle: fromPromise<BundleResponse, TrustBundleInput>(({ input, signal }) => bundles.fetch(input, signal)),
    },
    actions: { applyBundle: ({ context }, { version }) => bundles.setActive(context.endpoint, version) },
  });
}
