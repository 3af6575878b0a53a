/** Resolves the host that a request names, for clusters that have their endpoints from there. */
import { FilterConfigSchema } from '../../../gen/envoy/extensions/filters/http/dynamic_forward_proxy/v3/dynamic_forward_proxy_pb.ts';
import { typedExtension } from '../../messages/any.ts';
import { dnsCache, resolvesDynamically } from '../../messages/dynamic-dns.ts';
import type { HttpFilterContributor } from './contributor.ts';

/** Resolves the request's host, where the route's cluster is a dynamic one; requests to other clusters pass. */
export const dynamicForwardProxy: HttpFilterContributor = ({ direction, shape, push }) => {
  if (direction === 'inbound' || !resolvesDynamically(shape, push)) return [];
  const value = dnsCache(shape, push.mesh);
  return [
    typedExtension('envoy.filters.http.dynamic_forward_proxy', FilterConfigSchema, {
      implementationSpecifier: { case: 'dnsCacheConfig', value },
    }),
  ];
};
