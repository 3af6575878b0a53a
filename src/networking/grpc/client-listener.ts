import { isIP } from 'node:net';
import { create } from '@bufbuild/protobuf';
import { type Listener, ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { HTTPFaultSchema } from '../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts';
import { RouterSchema } from '../../gen/envoy/extensions/filters/http/router/v3/router_pb.ts';
import { HttpConnectionManagerSchema } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { socketAddress } from '../messages/address.ts';
import { pack, typedExtension } from '../messages/any.ts';
import { adsConfigSource } from '../messages/config-source-message.ts';
import { faultFilter } from '../routes/translate/fault.ts';
import { outboundClusterName } from '../traffic/resource-names.ts';
import type { ClientTarget } from './target-name.ts';

/** gRPC requires this filter as the last one. */
export const routerFilter = typedExtension('envoy.filters.http.router', RouterSchema);

const faultHttpFilter = typedExtension(faultFilter, HTTPFaultSchema);

export function clientListener(name: string, { service, port }: ClientTarget): Listener {
  const { defaultAddress, hostname } = service;
  const manager = pack(HttpConnectionManagerSchema, {
    statPrefix: hostname,
    routeSpecifier: {
      case: 'rds',
      value: { routeConfigName: outboundClusterName(port.number, '', hostname), configSource: adsConfigSource },
    },
    httpFilters: [faultHttpFilter, routerFilter],
  });
  return create(ListenerSchema, {
    name,
    // The field is required, but gRPC ignores it.
    address: socketAddress(isIP(defaultAddress) === 0 ? '0.0.0.0' : defaultAddress, port.number),
    apiListener: { apiListener: manager },
  });
}
