/** The message type of an extension's configuration, also in a TypedStruct. */
import { type Any, anyUnpack } from '@bufbuild/protobuf/wkt';
import { TypedStructSchema } from '../../../gen/udpa/type/v1/typed_struct_pb.ts';
import { messageNameOf } from '../../../model/envoy-api/message-name.ts';

export function typeNameOf(packedMessage: Any): string {
  return messageNameOf(anyUnpack(packedMessage, TypedStructSchema)?.typeUrl ?? packedMessage.typeUrl);
}
