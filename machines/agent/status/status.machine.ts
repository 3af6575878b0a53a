import { and, not, stateIn } from 'xstate';
import type { EnvoyProbe, EnvoyResponded } from '../status-protocol.ts';
import { noLane } from '../timeline.ts';
import { initialListeners } from './lacking-listeners.ts';
import { statusSetup, stoppingReason } from './status.setup.ts';

/** Envoy responded after the request had timed out. */
const alreadyResponded = { guard: not('isPendingRequest') } as const;

/** Applies only to a live Envoy, because errors of Envoy have precedence. */
const lacksNames = and(['isLive', stateIn({ open: { names: 'pending' } })]);

const lacksGrpcBootstrap = and(['isLive', stateIn({ open: { 'grpc bootstrap': 'pending' } })]);

const respondWith = <
  Type extends
    | 'respondListenersRejected'
    | 'respondPortsUnserved'
    | 'respondWithoutNames'
    | 'respondWithoutGrpcBootstrap'
    | 'respondAsEnvoy',
>(
  type: Type,
) => ({ type, params: ({ event }: { event: EnvoyResponded }) => event }) as const;

/** The first matching response applies. */
const respondWithoutListeners = { guard: 'lacksListeners', actions: respondWith('respondListenersRejected') } as const;
const responses = [
  { guard: lacksNames, actions: respondWith('respondWithoutNames') },
  { guard: lacksGrpcBootstrap, actions: respondWith('respondWithoutGrpcBootstrap') },
  { actions: respondWith('respondAsEnvoy') },
] as const;

const probeAt = (at: EnvoyProbe['at']) =>
  ({
    type: 'probeEnvoy',
    params: ({ event }: { event: { request: number } }) => ({ request: event.request, at }),
  }) as const;

/** A response of an earlier probe is ignored. */
const notReady = {
  actions: {
    type: 'respondNotReady',
    params: ({ event }: { event: { request: number } }) => ({ request: event.request }),
  },
} as const;
const rejectReadiness = { 'readiness.requested': notReady, 'envoy.responded': [alreadyResponded, notReady] } as const;

/**
 * The proxy is ready if an epoch serves everything it was started for, as reported by its admin interface. While a child takes over the admin port,
 * one of the serving Envoy's ports is probed.
 */
export const statusMachine = statusSetup.createMachine({
  id: 'status',
  description: 'Readiness of this proxy.',
  meta: { timeline: noLane },
  context: ({ input }) => ({
    ...input,
    reason: 'no Envoy has served yet',
    pendingRequest: null,
    listeners: initialListeners,
  }),
  initial: 'idle',
  on: {
    // No port is open.
    'status.start': {},
    'status.drain': {},
    'serving.began': {},
    'serving.ended': {},
    'handover.began': {},
    'handover.ended': {},
    'names.available': {},
    'grpc-bootstrap.written': {},
  },
  states: {
    idle: {
      meta: { waitsFor: 'status.start, which the agent sends at once' },
      on: {
        'status.start': [
          { guard: 'isDisabled', target: 'disabled', actions: 'reportDisabled' },
          {
            guard: and(['hasNoEnvoy', 'awaitsNames']),
            target: ['open.envoy.no Envoy', 'open.names.pending'],
          },
          { guard: 'hasNoEnvoy', target: 'open.envoy.no Envoy' },
          { guard: 'awaitsNames', target: 'open.names.pending' },
          { target: 'open' },
        ],
      },
    },
    disabled: { meta: { waitsFor: 'nothing' }, description: 'The status server is disabled.' },
    open: {
      meta: { waitsFor: 'requests: normal operation' },
      description: 'The status port is open or being opened.',
      invoke: { id: 'http', src: 'http', input: ({ context }) => ({ port: context.port }) },
      on: {
        'http.listening': {
          actions: { type: 'reportListening', params: ({ event }) => ({ port: event.port }) },
        },
        'http.failed': { actions: { type: 'reportFailed', params: ({ event }) => ({ reason: event.reason }) } },
        'quit.requested': { actions: 'forwardQuit' },
        // No epoch serves, or the serving epoch is about to be drained.
        'drain.requested': {},
        'drain.ordered': {},
        'upgrade.requested': { actions: 'forwardUpgrade' },
        'readiness.responded': {},
      },
      type: 'parallel',
      states: {
        envoy: {
          description: 'The serving Envoy, and where to probe it.',
          on: {
            'status.drain': {
              target: '.stopping',
              actions: { type: 'recordReason', params: { reason: stoppingReason } },
            },
            'serving.began': [
              {
                // The probed Envoy is being replaced and may close the connection, so its response does not count.
                guard: 'isRequestPending',
                target: '.serving',
                actions: [{ type: 'useAdmin', params: ({ event }) => event }, 'repeatProbe'],
              },
              { target: '.serving', actions: { type: 'useAdmin', params: ({ event }) => event } },
            ],
            'serving.ended': {
              target: '.not serving',
              actions: { type: 'recordReason', params: ({ event }) => ({ reason: event.reason }) },
            },
            'envoy.responded': [
              alreadyResponded,
              respondWithoutListeners,
              { guard: 'lacksApplication', actions: respondWith('respondPortsUnserved') },
              ...responses,
            ],
          },
          initial: 'not serving',
          states: {
            'not serving': {
              description: 'No epoch serves.',
              on: {
                ...rejectReadiness,
              },
            },
            'no Envoy': {
              description: 'No Envoy is configured: ready unless names or the gRPC bootstrap file are pending.',
              on: {
                'readiness.requested': [
                  {
                    guard: stateIn({ open: { names: 'pending' } }),
                    actions: { type: 'respondWithoutNames', params: ({ event }) => event },
                  },
                  {
                    guard: stateIn({ open: { 'grpc bootstrap': 'pending' } }),
                    actions: { type: 'respondWithoutGrpcBootstrap', params: ({ event }) => event },
                  },
                  { actions: { type: 'respondReady', params: ({ event }) => event } },
                ],
              },
            },
            serving: {
              description: 'An epoch serves, and the admin port is its own.',
              exit: 'invalidateResponse',
              on: {
                'drain.requested': { actions: 'drainEnvoy' },
                'readiness.requested': { actions: probeAt('admin') },
                'handover.began': 'handing over',
              },
            },
            'handing over': {
              description: 'An epoch serves. The admin port belongs to its child, or no process listens there.',
              on: {
                'readiness.requested': { actions: probeAt('port') },
                'envoy.responded': [
                  alreadyResponded,
                  {
                    guard: 'isFromAdmin',
                    actions: probeAt('port'),
                  },
                  respondWithoutListeners,
                  ...responses,
                ],
                'handover.ended': 'serving after failed hand-over',
              },
            },
            'serving after failed hand-over': {
              description:
                'The child exited and the same epoch serves, with its admin port or without one if the child closed it.',
              exit: 'invalidateResponse',
              on: {
                'drain.requested': { actions: 'drainEnvoy' },
                'readiness.requested': { actions: probeAt('admin or port') },
                'handover.began': 'handing over',
              },
            },
            stopping: {
              description: 'Not ready, whatever Envoy reports.',
              on: {
                ...rejectReadiness,
                'serving.began': undefined,
                'serving.ended': undefined,
              },
            },
          },
        },
        listeners: {
          description: 'Whether the serving Envoy has every listener that it did not reject after its start.',
          initial: 'unknown',
          on: {
            'serving.began': { target: '.unknown', actions: 'resetListeners' },
            'envoy.responded': {
              guard: 'awaitsApplication',
              actions: { type: 'recordApplication', params: ({ event }) => event },
            },
          },
          states: {
            unknown: {
              meta: {
                waitsFor: 'a serving Envoy and its rejected listeners; until then no listener counts as missing',
              },
              on: {
                'listeners.checked': [
                  {
                    guard: 'lacksListenersFromStart',
                    target: 'incomplete',
                    actions: { type: 'recordListeners', params: ({ event }) => event },
                  },
                  { target: 'complete', actions: { type: 'recordListeners', params: ({ event }) => event } },
                ],
              },
            },
            incomplete: {
              meta: { waitsFor: 'configuration that Envoy accepts' },
              description: 'Envoy rejected listeners at its start.',
              on: {
                'listeners.checked': [
                  { guard: 'stillLacksListeners', actions: { type: 'updateListeners', params: ({ event }) => event } },
                  { target: 'complete', actions: { type: 'updateListeners', params: ({ event }) => event } },
                ],
              },
            },
            complete: {
              meta: { waitsFor: 'nothing' },
              description: 'Listeners that Envoy rejects from now on do not affect readiness.',
              on: { 'listeners.checked': { actions: { type: 'updateListeners', params: ({ event }) => event } } },
            },
          },
        },
        names: {
          description: 'Whether the workload can resolve the names of the control plane.',
          initial: 'available',
          states: {
            pending: {
              meta: { waitsFor: 'the name table of the control plane, which readiness requires' },
              on: { 'names.available': 'available' },
            },
            available: {
              meta: { waitsFor: 'nothing' },
              description: 'The names are available, or the agent serves no DNS.',
              on: { 'names.available': {} },
            },
          },
        },
        'grpc bootstrap': {
          description: 'Whether the bootstrap file of gRPC programs exists.',
          initial: 'deciding',
          states: {
            deciding: { always: [{ guard: 'awaitsGrpcBootstrap', target: 'pending' }, { target: 'written' }] },
            pending: {
              meta: { waitsFor: 'the certificates, which the bootstrap file names, and the file system' },
              on: { 'grpc-bootstrap.written': 'written' },
            },
            written: {
              meta: { waitsFor: 'nothing' },
              description: 'The file exists, or no program needs it.',
              on: { 'grpc-bootstrap.written': {} },
            },
          },
        },
        'readiness request': {
          description: 'The pending readiness request; concurrent requests share one probe.',
          initial: 'idle',
          states: {
            idle: {
              meta: { waitsFor: 'requests: normal operation' },
              on: {
                'readiness.requested': {
                  target: 'pending',
                  actions: { type: 'recordRequest', params: ({ event }) => ({ request: event.request }) },
                },
              },
            },
            pending: {
              description: 'A response is due.',
              exit: 'clearRequest',
              after: {
                responseLimit: {
                  target: 'idle',
                  actions: 'respondTimeout',
                  description: 'Envoy did not respond to the probe: the request is completed as not ready.',
                },
              },
              on: {
                'readiness.responded': 'idle',
                // A request that is still pending is probed again after the response.
                'readiness.requested': {
                  target: 'pending',
                  reenter: true,
                  actions: { type: 'recordRequest', params: ({ event }) => ({ request: event.request }) },
                },
              },
            },
          },
        },
      },
    },
  },
});
