import { FilterConfigSchema } from '../../../gen/envoy/extensions/filters/network/sni_dynamic_forward_proxy/v3/sni_dynamic_forward_proxy_pb.ts';
import { typedExtension } from '../../messages/any.ts';
import { dnsCache } from '../../messages/dynamic-dns.ts';
import type { NetworkFilterContributor } from './contributor.ts';

export const sniDynamicForwardProxy: NetworkFilterContributor = ({ shape, push }, use) => {
  if (use.kind !== 'tcp' || use.dynamicPort === undefined) return [];
  return [
    typedExtension('envoy.filters.network.sni_dynamic_forward_proxy', FilterConfigSchema, {
      dnsCacheConfig: dnsCache(shape, push.mesh),
      portSpecifier: { case: 'portValue', value: use.dynamicPort },
    }),
  ];
};
