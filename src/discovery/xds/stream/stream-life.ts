import type { NodeIdentity, NodeResources } from '../resource-source.ts';

export interface ServedClient {
  readonly node: NodeIdentity;
  readonly resources: NodeResources;
}

/** `client` is served until the stream is disposed, because its last responses may be in flight. Any state may be skipped. */
export type StreamLife =
  /** The stream is not authenticated yet. */
  | { readonly is: 'arriving' }
  /** The stream is authenticated, without an accepted node. */
  | { readonly is: 'admitted'; readonly identities: readonly string[] }
  | { readonly is: 'serving'; readonly client: ServedClient }
  /** The client may not have received the status. */
  | { readonly is: 'ending'; readonly client: ServedClient | undefined; readonly code: string }
  /** The client has disconnected. The chart will be notified. */
  | { readonly is: 'gone'; readonly client: ServedClient | undefined; readonly code: string | undefined }
  | { readonly is: 'over'; readonly client: ServedClient | undefined; readonly code: string | undefined }
  | { readonly is: 'disposed'; readonly node: NodeIdentity | undefined };

export const clientOf = (lifecycle: StreamLife): ServedClient | undefined =>
  'client' in lifecycle ? lifecycle.client : undefined;

export const codeOf = (lifecycle: StreamLife): string | undefined => ('code' in lifecycle ? lifecycle.code : undefined);
