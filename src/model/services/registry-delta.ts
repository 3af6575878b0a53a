/** What differs in a registry from one moment to the next (spec/discovery.md §5.4, §5.5, §5.8). */
import { isDeepStrictEqual } from 'node:util';
import { isHttp } from '../fields/protocol.ts';
import type { ServiceName } from './endpoint-shards.ts';
import type { Endpoint, Service } from './service.ts';
import type { WorkloadEvent } from './workload.ts';

/** One object that is not what it was; without `current` it is gone. */
export interface ObjectChange<C> {
  readonly key: { readonly kind: string; readonly namespace: string; readonly name: string };
  readonly current: C | undefined;
}

/** What became of one host in one namespace. */
export interface ServiceDelta extends ServiceName {
  /** Services of the host before: several when a ServiceEntry has several addresses, or several objects have the host. */
  readonly previous: readonly Service[];
  /** The very same list when nothing differs. */
  readonly current: readonly Service[];
  readonly previousEndpoints: readonly Endpoint[];
  /** The very same list when nothing differs. */
  readonly endpoints: readonly Endpoint[];
}

export interface RegistryDelta {
  readonly services: readonly ServiceDelta[];
  /** Workloads that other registries may select. */
  readonly workloads: readonly WorkloadEvent[];
  /** Hosts whose selector is another: proxies may serve them now, or not any more. */
  readonly selectors?: readonly ServiceName[];
}

/** What other endpoints of a service mean to those who use it. */
export type EndpointEffect = 'endpoints' | 'service' | 'names' | 'nothing';

/**
 * Endpoints of EDS clusters are told by themselves. Those that DNS resolves are part of their cluster, and a headless
 * service has listeners for its pods' addresses, unless all of its ports are HTTP: then DNS alone answers with them.
 *
 * @param services all of the host in the namespace, whichever registry they are of: they share their endpoints
 */
export function endpointEffect(services: readonly Service[]): EndpointEffect {
  if (services.length > 0 && services.every(({ exportTo }) => exportTo.has('~') && exportTo.size === 1))
    return 'nothing';
  if (services.every(({ resolution }) => resolution === 'ClientSideLB')) return 'endpoints';
  const headless = services.every(
    ({ resolution, registry }) => resolution === 'Passthrough' && registry === 'Kubernetes',
  );
  const http = services.every(({ ports }) => ports.every(({ protocol }) => isHttp(protocol)));
  return headless && http ? 'names' : 'service';
}

/** The last list when all of its services are as they were. */
export function keptServices(now: readonly Service[], before: readonly Service[]): readonly Service[] {
  if (now.length !== before.length) return now;
  return now.every((service, index) => service === before[index] || isDeepStrictEqual(service, before[index]))
    ? before
    : now;
}
