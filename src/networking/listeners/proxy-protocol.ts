import { create } from '@bufbuild/protobuf';
import {
  type ListenerFilter,
  ListenerFilterSchema,
} from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { ProxyProtocolSchema } from '../../gen/envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol_pb.ts';
import { proxySettingsOf } from '../../model/mesh/proxy-settings.ts';
import type { ProxyContext } from '../inputs/connection-context.ts';
import { typedExtension } from '../messages/any.ts';

const filter = typedExtension('envoy.filters.listener.proxy_protocol', ProxyProtocolSchema);

/** Must be the first listener filter, because it consumes the header. */
export function proxyProtocol({ shape, push }: ProxyContext): ListenerFilter[] {
  const { gatewayTopology } = proxySettingsOf(shape, push.mesh);
  return gatewayTopology.proxyProtocol === undefined ? [] : [create(ListenerFilterSchema, filter)];
}
