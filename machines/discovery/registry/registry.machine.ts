import { assign, sendParent, setup } from 'xstate';
import { callbackEffect, reasonOf } from '../../effect.ts';
import type { ListedRegistry, RegistryChanged, RegistryFailed, RegistrySynced } from '../protocol.ts';
import { incrementFailures, retryDelayMs } from '../retry-delay.ts';
import { noLane } from '../timeline.ts';

export type RegistryInput = ListedRegistry;

interface RegistryContext extends RegistryInput {
  failures: number;
}

/** Lifecycle of one registry. Its services apply until it sends others or is removed from the list. */
export const registryMachine = setup({
  types: {
    context: {} as RegistryContext,
    input: {} as RegistryInput,
    events: {} as RegistrySynced | RegistryChanged | RegistryFailed,
    children: {} as { feed: 'runRegistry' },
  },
  actors: {
    runRegistry: callbackEffect<{ type: never }, ListedRegistry>('runRegistry'),
  },
  delays: { retryDelay: ({ context }) => retryDelayMs(context.failures) },
  actions: {
    countFailure: assign({ failures: ({ context }) => incrementFailures(context.failures) }),
    resetFailures: assign({ failures: 0 }),
    reportSynced: sendParent(
      ({ context }): RegistrySynced => ({ type: 'registry.synced', registry: context.registry }),
    ),
    reportChanged: sendParent(
      ({ context }): RegistryChanged => ({ type: 'registry.changed', registry: context.registry }),
    ),
    reportFailed: sendParent(
      ({ context }, params: { reason: string }): RegistryFailed => ({
        type: 'registry.failed',
        registry: context.registry,
        reason: params.reason,
      }),
    ),
  },
}).createMachine({
  id: 'registry',
  description: 'One source of services: objects of the configuration, a cluster, or Consul.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, failures: 0 }),
  initial: 'running',
  states: {
    running: {
      invoke: {
        id: 'feed',
        src: 'runRegistry',
        input: ({ context: { registry, revision } }) => ({ registry, revision }),
        onError: {
          target: 'unreachable',
          actions: [
            'countFailure',
            { type: 'reportFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
          ],
        },
      },
      on: {
        'registry.failed': {
          target: 'unreachable',
          actions: ['countFailure', { type: 'reportFailed', params: ({ event }) => ({ reason: event.reason }) }],
        },
      },
      initial: 'listing',
      states: {
        listing: {
          description: 'The registry has not sent its complete list. The services of its predecessor apply.',
          meta: { waitsFor: 'the first list of the registry; during the start it has a limit, and /ready lists it' },
          on: {
            'registry.synced': { target: 'synced', actions: ['resetFailures', 'reportSynced'] },
            'registry.changed': { actions: 'reportChanged' },
          },
        },
        synced: {
          description: 'The list is complete, and changes are reported.',
          meta: { waitsFor: 'a change of the registry: normal operation' },
          on: {
            'registry.synced': { description: 'The registry sent its list again.', actions: 'reportChanged' },
            'registry.changed': { actions: 'reportChanged' },
          },
        },
      },
    },
    unreachable: {
      description: 'The registry is unavailable. Its last services apply. It is restarted at increasing intervals.',
      after: { retryDelay: 'running' },
    },
  },
});
