/** Endpoints that EDS cannot contain. */
import type { Endpoint, Service } from '../../model/services/service.ts';
import { isHostName } from './selection.ts';

/** Endpoints of a service that are omitted because they are host names, empty if Envoy resolves names. */
export function hostNameEndpoints(
  { resolution }: Pick<Service, 'resolution'>,
  endpoints: readonly Endpoint[],
): readonly Endpoint[] {
  return resolution === 'ClientSideLB' ? endpoints.filter(isHostName) : [];
}
