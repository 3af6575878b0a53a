import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf';

/** Initializer of a message, for parts that are combined before `create`. */
export type Init<Desc extends DescMessage> = Extract<MessageInitShape<Desc>, { $typeName?: never }>;
