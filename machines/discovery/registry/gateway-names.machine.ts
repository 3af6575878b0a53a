import { enqueueActions, setup } from 'xstate';
import { callbackEffect, reasonOf } from '../../effect.ts';
import type { GatewayNameFailed, GatewayNameResolved, GatewayNamesListed } from '../protocol.ts';
import { gatewayNamesTimeline } from '../timeline.ts';
import { gatewayNameMachine } from './gateway-name.machine.ts';

interface ResolvedName {
  hostname: string;
  name: string;
}

interface GatewayNamesContext {
  names: ResolvedName[];
  started: number;
  /** Why the list of names no longer changes; empty while it does. */
  trouble: string;
}

/**
 * Resolves host names of network gateways (RESOLVE_HOSTNAME_GATEWAYS). A gateway without an address is not used, and a changed address causes a push.
 */
export const gatewayNamesMachine = setup({
  types: {
    context: {} as GatewayNamesContext,
    events: {} as GatewayNamesListed | GatewayNameResolved | GatewayNameFailed,
    children: {} as { names: 'listNames' } & Record<`gateway-name-${number}`, 'gatewayName'>,
  },
  actors: {
    listNames: callbackEffect<{ type: never }, undefined>('listNames'),
    gatewayName: gatewayNameMachine,
  },
  actions: {
    reconcileNames: enqueueActions(({ context, enqueue }, { hostnames }: GatewayNamesListed) => {
      let { started } = context;
      const nameByHostname = new Map(context.names.map((one) => [one.hostname, one]));
      const names = [...new Set(hostnames)].map((hostname): ResolvedName => {
        const existingName = nameByHostname.get(hostname);
        if (existingName !== undefined) return existingName;
        const name = `gateway-name-${++started}` as const;
        enqueue.spawnChild('gatewayName', { id: name, input: { hostname } });
        return { hostname, name };
      });
      const keptNames = new Set(names.map(({ name }) => name));
      for (const { name } of context.names) if (!keptNames.has(name)) enqueue.stopChild(name);
      enqueue.assign({ names, started });
    }),
    recordFailure: enqueueActions(({ enqueue }, { error }: { error: unknown }) => {
      enqueue.assign({ trouble: reasonOf(error) });
    }),
  },
}).createMachine({
  id: 'gateway-names',
  description: 'Host names of network gateways.',
  meta: { timeline: gatewayNamesTimeline },
  context: { names: [], started: 0, trouble: '' },
  invoke: {
    id: 'names',
    src: 'listNames',
    onError: {
      description: 'An internal error. The known names are kept.',
      actions: { type: 'recordFailure', params: ({ event }) => ({ error: event.error }) },
    },
  },
  initial: 'watching',
  states: {
    watching: {
      description: 'Each name has an actor.',
      meta: { waitsFor: 'a change of the list of names: normal operation' },
      on: {
        'gateway-names.listed': { actions: { type: 'reconcileNames', params: ({ event }) => event } },
        'gateway-name.resolved': { description: 'Recorded only: gateways have the addresses already.' },
        'gateway-name.failed': { description: 'Recorded only: the last addresses apply.' },
      },
    },
  },
});
