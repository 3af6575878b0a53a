import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf';

/** The plain-object form that `create` takes: pieces of a message that are put together before it is made. */
export type Init<Desc extends DescMessage> = Extract<MessageInitShape<Desc>, { $typeName?: never }>;
