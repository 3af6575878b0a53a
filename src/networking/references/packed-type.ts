import type { DescMessage } from '@bufbuild/protobuf';
import { envoyApi } from '../../model/envoy-api/envoy-api.ts';
import { messageNameOf } from '../../model/envoy-api/message-name.ts';
import { extensionTypes } from '../messages/extension-types.ts';

export function packedType(typeUrl: string): DescMessage | undefined {
  const name = messageNameOf(typeUrl);
  return extensionTypes.getMessage(name) ?? envoyApi().getMessage(name);
}
