import type { Message } from '@bufbuild/protobuf';

export interface Part {
  readonly message: Message;
  readonly chunks: readonly Uint8Array[];
}
