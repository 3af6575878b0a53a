import type { EndCode } from '../../../machines/discovery/xds/ads-protocol.ts';
import type { EncodedResource, NodeIdentity } from './resource-source.ts';

export interface OneShotRequest {
  /** `istio.io/debug`, or a type below it. */
  readonly typeUrl: string;
  /** For `istio.io/debug`, contains one command line. */
  readonly names: readonly string[];
  /** The node is not verified. */
  readonly node: NodeIdentity;
  /** Empty on a port without authentication. */
  readonly identities: readonly string[];
  readonly isSecure: boolean;
}

export type OneShotResponse =
  | {
      readonly version: string;
      readonly resources: readonly EncodedResource[];
    }
  | { readonly code: EndCode; readonly reason: string };

/** If the type does not exist (`undefined`) or an error occurs, the stream stays open without a response. */
export type OneShot = (request: OneShotRequest) => OneShotResponse | Promise<OneShotResponse> | undefined;
