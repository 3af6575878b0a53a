import type { Message } from '@bufbuild/protobuf';

/** A message embedded in a larger one, as encoded chunks in order. */
export interface Part {
  readonly message: Message;
  readonly chunks: readonly Uint8Array[];
}
