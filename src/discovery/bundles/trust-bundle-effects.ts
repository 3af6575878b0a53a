/** Has the charts of trust bundles use what fetches them. */
import { fromPromise } from 'xstate';
import {
  type BundleAnswer,
  type TrustBundleInput,
  trustBundleMachine,
} from '../../../machines/discovery/bundles/trust-bundle.machine.ts';
import { trustBundlesMachine } from '../../../machines/discovery/bundles/trust-bundles.machine.ts';
import type { BundleEndpoints } from './bundle-endpoints.ts';

/**
 * @param bundles undefined: without an authority there is nobody beside whom other roots would count
 * @param publishRoots other roots count from now on
 */
export function trustBundlesWithEffects(bundles: BundleEndpoints | undefined, publishRoots: () => void) {
  return trustBundlesMachine.provide({
    actors: {
      findEndpoints: fromPromise<TrustBundleInput[], undefined>(async () => bundles?.find() ?? []),
      ...(bundles && { trustBundle: trustBundleWithEffects(bundles) }),
    },
    actions: { publishRoots },
  });
}

function trustBundleWithEffects(bundles: BundleEndpoints) {
  return trustBundleMachine.provide({
    actors: {
      recallBundle: fromPromise<BundleAnswer, TrustBundleInput>(({ input }) => bundles.recall(input)),
      fetchBundle: fromPromise<BundleAnswer, TrustBundleInput>(({ input, signal }) => bundles.fetch(input, signal)),
    },
    actions: { adopt: ({ context }, { version }) => bundles.adopt(context.endpoint, version) },
  });
}
