import { isDeepStrictEqual } from 'node:util';
import { isHttp } from '../fields/protocol.ts';
import type { ServiceName } from './endpoint-shards.ts';
import type { Endpoint, Service } from './service.ts';
import type { WorkloadEvent } from './workload.ts';

export interface ConfigObjectChange<C> {
  readonly key: { readonly kind: string; readonly namespace: string; readonly name: string };
  readonly current: C | undefined;
}

export interface ServiceDelta extends ServiceName {
  /** Previous services of the host. There are several if a ServiceEntry has several addresses, or several objects have the host. */
  readonly previous: readonly Service[];
  /** Keeps its identity if unchanged. */
  readonly current: readonly Service[];
  readonly previousEndpoints: readonly Endpoint[];
  /** Keeps its identity if unchanged. */
  readonly endpoints: readonly Endpoint[];
}

export interface RegistryDelta {
  readonly services: readonly ServiceDelta[];
  readonly workloads: readonly WorkloadEvent[];
  /** Hosts whose selector changed, so that other proxies may serve them. */
  readonly selectors?: readonly ServiceName[];
}

export type EndpointEffect = 'endpoints' | 'service' | 'names' | 'nothing';

/**
 * EDS sends changed endpoints separately, but DNS clusters contain their endpoints. A headless service has listeners for its pods' addresses, unless
 * all its ports are HTTP.
 * @param services of the host and namespace in all registries, which have the same endpoints
 */
export function endpointEffect(services: readonly Service[]): EndpointEffect {
  if (services.length > 0 && services.every(({ exportTo }) => exportTo.has('~') && exportTo.size === 1))
    return 'nothing';
  if (services.every(({ resolution }) => resolution === 'ClientSideLB')) return 'endpoints';
  const isHeadless = services.every(
    ({ resolution, registry }) => resolution === 'Passthrough' && registry === 'Kubernetes',
  );
  const http = services.every(({ ports }) => ports.every(({ protocol }) => isHttp(protocol)));
  return isHeadless && http ? 'names' : 'service';
}

export function reuseServices(current: readonly Service[], previous: readonly Service[]): readonly Service[] {
  if (current.length !== previous.length) return current;
  return current.every((service, index) => service === previous[index] || isDeepStrictEqual(service, previous[index]))
    ? previous
    : current;
}
