import type { Endpoint, Service } from '../../model/services/service.ts';
import { isHostName } from './selection.ts';

/** Returns endpoints with a host name. A cluster contains them only if Envoy resolves names. */
export function hostNameEndpoints(
  { resolution }: Pick<Service, 'resolution'>,
  endpoints: readonly Endpoint[],
): readonly Endpoint[] {
  return resolution === 'ClientSideLB' ? endpoints.filter(isHostName) : [];
}
