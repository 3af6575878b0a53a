import { fromCallback } from 'xstate';
import { consulMachine } from '../../../machines/discovery/consul/consul.machine.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { consulCatalogWithEffects } from './consul-catalog.effects.ts';
import type { ConsulRegistries } from './consul-registries.ts';

export function consulWithEffects(registries: ConsulRegistries, log: Logger) {
  return consulMachine.provide({
    actors: {
      listDatacenters: fromCallback<{ type: never }, undefined>(({ sendBack }) => {
        sendBack({ type: 'datacenters.listed', datacenters: registries.configuredNames });
      }),
      consulCatalog: consulCatalogWithEffects((name) => registries.datacenter(name), log),
    },
    actions: { publishDatacenters: (_, { datacenters }) => registries.publish(datacenters) },
  });
}
