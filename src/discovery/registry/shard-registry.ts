import { type ConfigKey, configKeyText } from '../../model/config/config.ts';
import type { ShardKey } from '../../model/services/endpoint-shards.ts';
import type { NetworkGateway } from '../../model/services/network-gateways.ts';
import { endpointEffect, type RegistryDelta, type ServiceDelta } from '../../model/services/registry-delta.ts';
import { dnsNameKey, endpointsKey, type Service, serviceKey } from '../../model/services/service.ts';
import { runToEnd, type Steps } from '../../runtime/turns.ts';
import { AnyRegistry } from './any-registry.ts';
import type { ServiceEvent, XdsUpdater } from './registry.ts';
import type { RegistryHandlers } from './registry-handlers.ts';

export abstract class ShardRegistry extends AnyRegistry {
  readonly provider: string;
  readonly clusterId: string;
  protected readonly updater: XdsUpdater;
  readonly #shard: ShardKey;

  constructor(shard: ShardKey, updater: XdsUpdater) {
    super();
    this.provider = shard.provider;
    this.clusterId = shard.cluster;
    this.#shard = shard;
    this.updater = updater;
  }

  networkGateways(): readonly NetworkGateway[] {
    return [];
  }

  protected deliver(delta: RegistryDelta): void {
    runToEnd(this.deliverInSteps(delta));
  }

  protected deliverInSteps(delta: RegistryDelta): Steps<void> {
    return delivering(delta, this.#shard, this.updater, this.handlers);
  }
}

/** Delivers endpoints before the event of their service, so that handlers find them. */
function* delivering(
  delta: RegistryDelta,
  shard: ShardKey,
  updater: XdsUpdater,
  handlers: RegistryHandlers,
): Steps<void> {
  for (const service of delta.services) {
    if (service.previous === service.current) deliverEndpoints(service, shard, updater);
    else deliverService(service, shard, updater, handlers);
    yield;
  }
  for (const workload of delta.workloads) {
    handlers.notifyWorkload(workload);
    yield;
  }
}

function deliverService(delta: ServiceDelta, shard: ShardKey, updater: XdsUpdater, handlers: RegistryHandlers): void {
  const { hostname, namespace, previous, current, endpoints } = delta;
  const event: ServiceEvent['event'] = current.length === 0 ? 'delete' : previous.length === 0 ? 'add' : 'update';
  if (event !== 'delete') updater.edsCacheUpdate(shard, delta, endpoints);
  updater.svcUpdate(shard, delta, event);
  const configs = originsOf([...previous, ...current]);
  if (configs.length > 0) updater.configUpdate({ configs, reason: 'service' });
  handlers.notifyService({ hostname, namespace, event, previous, current });
}

function deliverEndpoints(delta: ServiceDelta, shard: ShardKey, updater: XdsUpdater): void {
  const { hostname, namespace } = delta;
  const services = updater.servicesOf(hostname, namespace);
  const effect = endpointEffect(services);
  if (effect === 'endpoints') {
    updater.edsUpdate(shard, delta, delta.endpoints);
    return;
  }
  const push = updater.edsCacheUpdate(shard, delta, delta.endpoints);
  if (push === 'none' || effect === 'nothing') return;
  const headless = delta.current.some(
    (service) => service.registry === 'Kubernetes' && service.resolution === 'Passthrough',
  );
  // A full push is required for the first pods of a headless service, because they enable mutual TLS for its clusters.
  if (effect === 'service' || push === 'full') {
    const configs = [serviceKey(delta), ...originsOf(services)];
    updater.configUpdate({ configs, reason: headless ? 'headlessendpoint' : 'service' });
  } else {
    updater.configUpdate({ configs: [dnsNameKey(delta), endpointsKey(delta)], reason: 'headlessendpoint' });
  }
}

/** Excludes Kubernetes objects, because no resource has one as its origin. */
function originsOf(services: readonly Service[]): readonly ConfigKey[] {
  const origins = services.map(({ origin }) => origin).filter(({ kind }) => kind === 'ServiceEntry');
  return [...new Map(origins.map((origin) => [configKeyText(origin), origin])).values()];
}
