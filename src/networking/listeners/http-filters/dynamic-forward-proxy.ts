/** Resolves the Host header of requests for dynamic forward proxy clusters. */
import { FilterConfigSchema } from '../../../gen/envoy/extensions/filters/http/dynamic_forward_proxy/v3/dynamic_forward_proxy_pb.ts';
import { typedExtension } from '../../messages/any.ts';
import { dnsCache, resolvesDynamically } from '../../messages/dynamic-dns.ts';
import type { HttpFilterContributor } from './contributor.ts';

export const dynamicForwardProxy: HttpFilterContributor = ({ direction, shape, push }) => {
  if (direction === 'inbound' || !resolvesDynamically(shape, push)) return [];
  const value = dnsCache(shape, push.mesh);
  return [
    typedExtension('envoy.filters.http.dynamic_forward_proxy', FilterConfigSchema, {
      implementationSpecifier: { case: 'dnsCacheConfig', value },
    }),
  ];
};
