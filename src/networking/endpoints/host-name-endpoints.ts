/** Endpoints that EDS cannot carry. */
import type { Endpoint, Service } from '../../model/services/service.ts';
import { isHostName } from './selection.ts';

/** Endpoints of a service that proxies are not sent because they are host names; empty where Envoy resolves names. */
export function hostNameEndpoints(
  { resolution }: Pick<Service, 'resolution'>,
  endpoints: readonly Endpoint[],
): readonly Endpoint[] {
  return resolution === 'ClientSideLB' ? endpoints.filter(isHostName) : [];
}
