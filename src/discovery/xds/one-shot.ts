/** Questions that are asked of the control plane as if they were resources: answered once, not watched (§7.1). */
import type { EndCode } from '../../../machines/discovery/xds/ads-protocol.ts';
import type { EncodedResource, NodeIdentity } from './resource-source.ts';

export interface OneShotQuestion {
  /** `istio.io/debug`, or one below it. */
  readonly typeUrl: string;
  /** The resource names: of `istio.io/debug`, one command line. */
  readonly names: readonly string[];
  /** Who asks, in its own words. */
  readonly node: NodeIdentity;
  /** Who asks, as it has shown; none on a port that does not ask. */
  readonly identities: readonly string[];
  readonly isSecure: boolean;
}

export type OneShotAnswer =
  | {
      readonly version: string;
      readonly resources: readonly EncodedResource[];
    }
  /** Ends the stream. */
  | { readonly code: EndCode; readonly reason: string };

/**
 * Answers a question; undefined when there is no such type: nothing is answered then, and the stream stays. May throw, or
 * reject: so too.
 */
export type OneShot = (question: OneShotQuestion) => OneShotAnswer | Promise<OneShotAnswer> | undefined;
