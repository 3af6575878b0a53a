/** Sends the client's address to an upstream before TLS begins. */
import { create } from '@bufbuild/protobuf';
import { type TransportSocket, TransportSocketSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import { ProxyProtocolConfig_Version } from '../../gen/envoy/config/core/v3/proxy_protocol_pb.ts';
import { ProxyProtocolUpstreamTransportSchema } from '../../gen/envoy/extensions/transport_sockets/proxy_protocol/v3/upstream_proxy_protocol_pb.ts';
import { RawBufferSchema } from '../../gen/envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb.ts';
import { typedExtension } from '../messages/any.ts';
import type { Init } from '../messages/init.ts';

const rawBuffer = typedExtension('envoy.transport_sockets.raw_buffer', RawBufferSchema);

export function withProxyProtocol(
  version: 'V1' | 'V2',
  innerSocket: Init<typeof TransportSocketSchema> | TransportSocket | undefined,
): TransportSocket {
  return create(
    TransportSocketSchema,
    typedExtension('envoy.transport_sockets.upstream_proxy_protocol', ProxyProtocolUpstreamTransportSchema, {
      config: { version: ProxyProtocolConfig_Version[version] },
      transportSocket: create(TransportSocketSchema, innerSocket ?? rawBuffer),
    }),
  );
}
