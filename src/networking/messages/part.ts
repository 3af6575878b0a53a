import type { Message } from '@bufbuild/protobuf';

/** A message within a larger one, and its bytes as they go into that, one after the other. */
export interface Part {
  readonly message: Message;
  readonly chunks: readonly Uint8Array[];
}
