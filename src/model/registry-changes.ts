/** What differs between two registries, as a push names it (spec/discovery.md §5.5 "change of ServiceEntry", §5.8, §6.1). */
import { isDeepStrictEqual } from 'node:util';
import { type ConfigKey, configKeyText } from './config.ts';
import { type ConfigEvent, subjectOf } from './config-changes.ts';
import { isObject } from './decode.ts';
import { type Endpoint, endpointsKey, type Service, serviceKey } from './service.ts';
import type { EndpointIndex, ServiceRegistry } from './service-registry.ts';

type Registry = Pick<ServiceRegistry, 'services' | 'endpoints'>;

/**
 * The changes from one registry to the next.
 *
 * A service that appeared, went or differs gives its own key (`ServiceEntry`, by host) and that of the object that it
 * was made from; so do endpoints that are resolved by name, because they are part of their cluster. Other endpoints
 * give an `Endpoints` key alone.
 */
export function registryChanges(before: Registry, after: Registry): readonly ConfigKey[] {
  const changes = new Map<string, ConfigKey>();
  const add = (key: ConfigKey): void => void changes.set(configKeyText(key), key);
  const [oldServices, newServices] = [byHost(before.services), byHost(after.services)];
  for (const id of new Set([...oldServices.keys(), ...newServices.keys()])) {
    const [old = [], now = []] = [oldServices.get(id), newServices.get(id)];
    if (sameServices(old, now)) {
      if (sameEndpoints(before.endpoints, after.endpoints, now[0]!)) continue;
      if (now.every((service) => service.resolution === 'ClientSideLB')) {
        add(endpointsKey(now[0]!));
        continue;
      }
    }
    for (const service of [...old, ...now]) {
      add(serviceKey(service));
      add(service.origin);
    }
  }
  return [...changes.values()];
}

function byHost(services: readonly Service[]): Map<string, Service[]> {
  return Map.groupBy(services, (service) => `${service.namespace}/${service.hostname}`);
}

function sameServices(a: readonly Service[], b: readonly Service[]): boolean {
  return (
    a.length === b.length && a.every((service, index) => service === b[index] || isDeepStrictEqual(service, b[index]))
  );
}

function sameEndpoints(before: EndpointIndex, after: EndpointIndex, service: Service): boolean {
  const of = (index: EndpointIndex): readonly Endpoint[] => index.get(service.hostname)?.get(service.namespace) ?? [];
  return of(before) === of(after) || isDeepStrictEqual(of(before), of(after));
}

/**
 * Everything that a push must name: objects that changed, with ServiceEntry and WorkloadEntry told through what they
 * changed in the registry (§4.2), so that a proxy is asked about services that it knows.
 */
export function changedKeys(events: readonly ConfigEvent[], before: Registry, after: Registry): readonly ConfigKey[] {
  const keys = new Map(registryChanges(before, after).map((key) => [configKeyText(key), key]));
  for (const event of events) {
    const subject = subjectOf(event);
    const pushes = event.type !== 'update' || event.needsPush;
    if (pushes && (!throughRegistry.has(subject.kind) || selectsProxies(event)))
      keys.set(configKeyText(subject), subject);
  }
  return [...keys.values()];
}

const throughRegistry: ReadonlySet<string> = new Set(['ServiceEntry', 'WorkloadEntry']);

/** A selector makes proxies instances of a service, which no endpoint may show. */
function selectsProxies(event: ConfigEvent): boolean {
  return [event.type === 'add' ? undefined : event.previous, event.type === 'delete' ? undefined : event.current].some(
    (config) => isObject(config?.spec) && config.spec.workloadSelector !== undefined && config.kind === 'ServiceEntry',
  );
}
