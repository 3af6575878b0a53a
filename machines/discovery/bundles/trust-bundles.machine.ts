import { enqueueActions, setup } from 'xstate';
import { promiseEffect } from '../../effect.ts';
import type { BundlesLoad, MeshChanged, TrustBundleFailed, TrustBundleFetched } from '../protocol.ts';
import { trustBundlesTimeline } from '../timeline.ts';
import { type TrustBundleInput, trustBundleMachine } from './trust-bundle.machine.ts';

interface KnownEndpoint extends TrustBundleInput {
  /** System ID of the actor. */
  name: string;
}

interface TrustBundlesContext {
  endpoints: KnownEndpoint[];
  started: number;
}

/** Fetches the roots of the endpoints in the mesh configuration (`caCertificates[].spiffeBundleUrl`). The start does not wait for them. */
export const trustBundlesMachine = setup({
  types: {
    context: {} as TrustBundlesContext,
    events: {} as BundlesLoad | MeshChanged | TrustBundleFetched | TrustBundleFailed,
    children: {} as { endpoints: 'findEndpoints' } & Record<`trust-bundle-${number}`, 'trustBundle'>,
  },
  actors: {
    /** Also drops the roots of other endpoints. */
    findEndpoints: promiseEffect<TrustBundleInput[], undefined>('findEndpoints'),
    trustBundle: trustBundleMachine,
  },
  actions: {
    reconcileEndpoints: enqueueActions(({ context, enqueue }, { found }: { found: TrustBundleInput[] }) => {
      let { started } = context;
      const endpointById = new Map(context.endpoints.map((knownEndpoint) => [idOf(knownEndpoint), knownEndpoint]));
      const endpoints = found.map((one): KnownEndpoint => {
        const existingEndpoint = endpointById.get(idOf(one));
        if (existingEndpoint !== undefined) return existingEndpoint;
        const name = `trust-bundle-${++started}` as const;
        enqueue.spawnChild('trustBundle', { id: name, input: one });
        return { ...one, name };
      });
      const names = new Set(endpoints.map(({ name }) => name));
      for (const { name } of context.endpoints) if (!names.has(name)) enqueue.stopChild(name);
      enqueue.assign({ endpoints, started });
    }),
    publishRoots: (_, _params: { endpoint: string }) => {},
  },
}).createMachine({
  id: 'trust-bundles',
  description: 'Roots of the bundle endpoints in the mesh configuration.',
  meta: { timeline: trustBundlesTimeline },
  context: { endpoints: [], started: 0 },
  initial: 'idle',
  on: {
    'trust-bundle.fetched': {
      actions: { type: 'publishRoots', params: ({ event }) => ({ endpoint: event.endpoint }) },
    },
    'trust-bundle.failed': { description: 'Recorded only: the last bundle applies.' },
    'bundles.load': { description: 'The bundles are loaded already.' },
  },
  states: {
    idle: {
      description: 'Not started: there is no mesh configuration, or no certificate authority.',
      meta: { waitsFor: 'bundles.load, sent during the start' },
      on: {
        'bundles.load': 'listing endpoints',
        'mesh.changed': { description: 'The first listing reads the mesh configuration.' },
      },
    },
    'listing endpoints': {
      meta: { waitsFor: 'the endpoints in the mesh configuration' },
      invoke: {
        id: 'endpoints',
        src: 'findEndpoints',
        onDone: {
          target: 'watching',
          actions: { type: 'reconcileEndpoints', params: ({ event }) => ({ found: event.output }) },
        },
        onError: {
          target: 'watching',
          description: 'An internal error. The endpoints are listed again at the next change.',
        },
      },
      on: { 'mesh.changed': { description: 'Lists the endpoints again.', target: 'listing endpoints', reenter: true } },
    },
    watching: {
      description: 'Each endpoint has an actor.',
      meta: { waitsFor: 'a change of the mesh configuration or of a bundle: normal operation' },
      on: {
        'mesh.changed': {
          description: 'The mesh configuration may name other endpoints.',
          target: 'listing endpoints',
        },
      },
    },
  },
});

/** A change of trust domains requires another fetch and validation. */
function idOf({ endpoint, trustDomains }: TrustBundleInput): string {
  return `${endpoint} ${trustDomains.join(' ')}`;
}
