import type { Message } from '@bufbuild/protobuf';

/** A message that is embedded in a larger one, with its encoded chunks in order. */
export interface Part {
  readonly message: Message;
  readonly chunks: readonly Uint8Array[];
}
