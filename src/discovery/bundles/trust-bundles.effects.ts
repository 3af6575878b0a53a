import { fromPromise } from 'xstate';
import type { TrustBundleInput } from '../../../machines/discovery/bundles/trust-bundle.machine.ts';
import { trustBundlesMachine } from '../../../machines/discovery/bundles/trust-bundles.machine.ts';
import type { BundleEndpoints } from './bundle-endpoints.ts';
import { trustBundleWithEffects } from './trust-bundle.effects.ts';

/**
 * @param bundles `undefined` without a CA; then no bundles are fetched
 * @param publishRoots called when the trusted roots change
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
