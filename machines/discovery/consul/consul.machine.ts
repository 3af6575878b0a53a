import { enqueueActions, setup } from 'xstate';
import { callbackEffect, reasonOf } from '../../effect.ts';
import { consulTimeline } from '../timeline.ts';
import { consulCatalogMachine } from './consul-catalog.machine.ts';
import type { CatalogAccept, CatalogReport, DatacentersListed } from './consul-protocol.ts';

interface KnownDatacenter {
  datacenter: string;
  name: `consul-catalog-${number}`;
}

interface ConsulContext {
  datacenters: KnownDatacenter[];
  started: number;
  /** Why the list of datacenters no longer changes; empty while it does. */
  trouble: string;
}

/** Datacenters of Consul. Each has a separate catalog, so that an unresponsive one affects no other. */
export const consulMachine = setup({
  types: {
    context: {} as ConsulContext,
    events: {} as DatacentersListed | CatalogAccept | CatalogReport,
    children: {} as { datacenters: 'listDatacenters' } & Record<`consul-catalog-${number}`, 'consulCatalog'>,
  },
  actors: {
    listDatacenters: callbackEffect<{ type: never }, undefined>('listDatacenters'),
    consulCatalog: consulCatalogMachine,
  },
  actions: {
    reconcileDatacenters: enqueueActions(
      ({ context, enqueue }, { datacenters: listedDatacenters }: DatacentersListed) => {
        let { started } = context;
        const datacenterByName = new Map(context.datacenters.map((one) => [one.datacenter, one]));
        const datacenters = [...new Set(listedDatacenters)].map((datacenter): KnownDatacenter => {
          const existingDatacenter = datacenterByName.get(datacenter);
          if (existingDatacenter !== undefined) return existingDatacenter;
          const name = `consul-catalog-${++started}` as const;
          enqueue.spawnChild('consulCatalog', { id: name, input: { datacenter } });
          return { datacenter, name };
        });
        for (const one of context.datacenters) if (!datacenters.includes(one)) enqueue.stopChild(one.name);
        enqueue.assign({ datacenters, started });
      },
    ),
    publishDatacenters: (_, _params: { datacenters: string[] }) => {},
    forwardAccept: enqueueActions(({ context, enqueue }, order: CatalogAccept) => {
      const datacenterEntry = context.datacenters.find(({ datacenter }) => datacenter === order.datacenter);
      if (datacenterEntry !== undefined) enqueue.sendTo(datacenterEntry.name, order);
    }),
    recordFailure: enqueueActions(({ enqueue }, { error }: { error: unknown }) => {
      enqueue.assign({ trouble: reasonOf(error) });
    }),
  },
}).createMachine({
  id: 'consul',
  description: 'Datacenters of Consul, from which services are read.',
  meta: { timeline: consulTimeline },
  context: { datacenters: [], started: 0, trouble: '' },
  invoke: {
    id: 'datacenters',
    src: 'listDatacenters',
    onError: {
      description: 'An internal error. The known datacenters are kept.',
      actions: { type: 'recordFailure', params: ({ event }) => ({ error: event.error }) },
    },
  },
  initial: 'watching',
  states: {
    watching: {
      description: 'Each datacenter has an actor.',
      meta: { waitsFor: 'a change of the list of datacenters: normal operation' },
      on: {
        'datacenters.listed': {
          actions: [
            { type: 'reconcileDatacenters', params: ({ event }) => event },
            { type: 'publishDatacenters', params: ({ event }) => ({ datacenters: event.datacenters }) },
          ],
        },
        'catalog.accept': { actions: { type: 'forwardAccept', params: ({ event }) => event } },
        'catalog.synced': { description: 'Recorded in the log.' },
        'strategy.chosen': { description: 'Recorded in the log.' },
        'catalog.held': { description: 'Recorded in the log: the last known services are served.' },
        'catalog.released': { description: 'Recorded in the log.' },
        'catalog.failed': { description: 'Recorded in the log: the last known services are served.' },
        'catalog.recovered': { description: 'Recorded in the log.' },
      },
    },
  },
});
