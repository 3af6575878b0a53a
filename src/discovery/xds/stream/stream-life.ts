/** How far a stream is, from its arrival to the end. */
import type { NodeIdentity, NodeResources } from '../resource-source.ts';

/** A client whose node is known, and what there is for it. */
export interface Served {
  readonly node: NodeIdentity;
  readonly resources: NodeResources;
}

/**
 * How far a stream is. `client`: whom it serves, undefined before that is known; it is served until the stream is disposed of,
 * because its last responses are still on their way. `code`: with what the server ended it, undefined where it did not.
 */
export type Life =
  /** Nobody knows yet who the client is. */
  | { readonly is: 'arriving' }
  /** The client may speak, and has not said yet which node it is. */
  | { readonly is: 'admitted'; readonly identities: readonly string[] }
  | { readonly is: 'serving'; readonly client: Served }
  /** Ended by the server; the client may not have heard of it. */
  | { readonly is: 'ending'; readonly client: Served | undefined; readonly code: string }
  /** The client is gone; the connection will hear of it in its turn. */
  | { readonly is: 'gone'; readonly client: Served | undefined; readonly code: string | undefined }
  /** The connection was told that it is over. */
  | { readonly is: 'over'; readonly client: Served | undefined; readonly code: string | undefined }
  /** What was kept for it is given back. */
  | { readonly is: 'disposed'; readonly node: NodeIdentity | undefined };

export const clientOf = (life: Life): Served | undefined => ('client' in life ? life.client : undefined);

export const codeOf = (life: Life): string | undefined => ('code' in life ? life.code : undefined);
