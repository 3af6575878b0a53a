import { and } from 'xstate';
import { reasonOf } from '../effect.ts';
import { agentSetup, claimLimitMs, openLimitMs, releaseLimitMs, secretsLimitMs } from './agent.setup.ts';
import { successionExitCodeOf } from './agent-upgrade/due-orders.ts';
import { provesIdentity } from './settings.ts';
import type { SuccessionFailed, SuccessionTaken } from './succession-protocol.ts';
import { agentTimeline } from './timeline.ts';

export type { AgentInput, AgentOutput } from './agent.setup.ts';

const releasingState = '#agent.releasing base ids';

const recordReason = {
  type: 'recordFailure' as const,
  params: ({ event }: { event: { reason: string } }) => ({ trouble: [event.reason] }),
};
const recordError = {
  type: 'recordFailure' as const,
  params: ({ event }: { event: { error: unknown } }) => ({ trouble: [reasonOf(event.error)] }),
};

const onPartFailure = {
  target: releasingState,
  actions: recordReason,
};

const onActorError = { target: releasingState, actions: recordError };

function openTimeout(partName: string, limitMs: number) {
  return {
    target: releasingState,
    actions: { type: 'addFailure' as const, params: { trouble: `${partName} not open after ${limitMs} ms` } },
  };
}

const recordTakenClaim = [
  {
    type: 'recordClaim' as const,
    params: ({ event }: { event: SuccessionTaken | SuccessionFailed }) => event.claimed,
  },
  // A new predecessor actor is spawned when this agent can be replaced again.
  'stopPredecessor' as const,
];
const onIdsClaimed = [
  {
    guard: {
      type: 'hasAdoptedEpochs' as const,
      params: ({ event }: { event: SuccessionTaken | SuccessionFailed }) => event.claimed,
    },
    target: '#agent.active.supervising.adopting',
    actions: recordTakenClaim,
  },
  { guard: 'isStopDue' as const, target: releasingState, actions: [...recordTakenClaim, 'reportComplete' as const] },
  { target: '#agent.active.supervising', actions: recordTakenClaim },
];

/** There is no Envoy to drain in these states. */
const onExitRequest = {
  'status.failed': onPartFailure,
  'quit.requested': releasingState,
  'signal.received': { guard: 'isStopSignal' as const, target: releasingState },
};
/** Adopted Envoys may have to be drained while ports and sockets are opening. */
const onEarlyExitRequest = {
  ...onExitRequest,
  'quit.requested': [
    { guard: 'hasEnvoysToDrain' as const, actions: 'recordStop' as const },
    { target: releasingState },
  ],
  'signal.received': [
    { guard: and(['isStopSignal', 'hasEnvoysToDrain']), actions: 'recordStop' as const },
    { guard: 'isStopSignal' as const, target: releasingState },
  ],
};

/** The agent exits at the end of the current state. */
const deferExitRequest = {
  'signal.received': { guard: 'isStopSignal' as const, actions: 'recordStop' as const },
  'quit.requested': { actions: 'recordStop' as const },
};

/** The root machine of pilot-agent. */
export const agentMachine = agentSetup.createMachine({
  id: 'agent',
  description: 'The process that keeps Envoy running.',
  meta: { timeline: agentTimeline },
  context: ({ input }) => ({
    ...input,
    baseIds: [],
    trouble: [],
    adoption: undefined,
    endIsDue: false,
    ordersDue: [],
    awaitsRestart: false,
    grpcBootstrap: input.settings.proxyless ? 'awaited' : 'none',
    isAnothers: input.settings.succeeds,
  }),
  invoke: { id: 'signals', src: 'signals' },
  on: {
    // A signal that the current state does not handle is ignored unless it is deferrable.
    'signal.received': { guard: 'isDeferrable', actions: 'deferOrder' },
    'status.failed': {},
    'quit.requested': {},
    'upgrade.requested': {},
    'secrets.ready': {},
    'secrets.failed': {},
    'output.written': { actions: 'spawnGrpcBootstrap' },
    'grpc-bootstrap.failed': {},
    'access-logs.failed': {},
    'xds.listening': {},
    'xds.failed': {},
    'epochs.adopted': {},
    'restart.decided': {},
    'restart.ended': {},
    'binary.withdrawn': {},
    'binary.proven': {},
    'files.missing': {},
    'dns.listening': {},
    'dns.failed': {},
    'succession.taken': {},
    'succession.refused': {},
    'succession.due': { actions: 'rejectSuccession' },
    'succession.done': {},
    'succession.failed': {},
  },
  initial: 'claiming base ids',
  states: {
    'claiming base ids': {
      description: 'Agents on one host need different names for shared memory and sockets.',
      invoke: {
        id: 'claim',
        src: 'claimBaseIds',
        input: ({ context }) => ({ succeeds: context.settings.succeeds }),
        onDone: [
          {
            guard: { type: 'exitsImmediately', params: ({ event }) => event.output },
            target: 'releasing base ids',
            actions: [{ type: 'recordClaim', params: ({ event }) => event.output }, 'reportComplete'],
          },
          { target: 'active', actions: { type: 'recordClaim', params: ({ event }) => event.output } },
        ],
        onError: {
          target: 'ended',
          actions: recordError,
        },
      },
      after: {
        claimLimit: {
          target: 'ended',
          actions: { type: 'addFailure', params: { trouble: `no base ID after ${claimLimitMs} ms` } },
        },
      },
      on: {
        'signal.received': [
          { guard: and(['isStopSignal', 'mayAdoptEpochs']), actions: 'recordStop' },
          { guard: 'isStopSignal', target: 'ended' },
        ],
      },
    },
    active: {
      description: 'The status port is open or being opened.',
      invoke: [
        {
          id: 'xds-proxy',
          src: 'xdsProxy',
          systemId: 'xds-proxy',
          input: ({ context: { settings } }) => ({
            socket: settings.xdsSocket,
            hasSecrets: provesIdentity(settings.identity),
            probe: settings.readinessProbe,
            proxyless: settings.proxyless,
            moduleLimits: settings.moduleLimits,
          }),
          onError: onActorError,
        },
        {
          id: 'status',
          src: 'status',
          systemId: 'status',
          input: ({ context: { settings } }) => ({
            port: settings.statusPort,
            hasEnvoy: settings.runsEnvoy,
            awaitsApplication: settings.awaitsApplication,
            // Envoy's configuration redirects DNS to the agent; a custom bootstrap may resolve names differently.
            awaitsNames: settings.dns && settings.xdsSocket !== '',
            awaitsGrpcBootstrap: settings.proxyless,
          }),
          onError: onActorError,
        },
      ],
      entry: ['startStatus', 'spawnGrpcBootstrap', 'spawnAccessLogs'],
      initial: 'preparing',
      states: {
        preparing: {
          description: 'Opens the sockets that Envoy needs before it starts, one after the other.',
          on: onEarlyExitRequest,
          initial: 'status port',
          states: {
            'status port': {
              description: 'Opens first, so that readiness can be probed.',
              after: {
                openLimit: openTimeout('the status port', openLimitMs),
              },
              on: {
                'status.listening': [
                  { guard: 'servesSecrets', target: 'secret server' },
                  { guard: 'servesDns', target: 'DNS port' },
                  { target: 'xds socket' },
                ],
              },
            },
            'secret server': {
              description: 'An Envoy that requests secrets before the server is open waits for them forever.',
              entry: ['spawnSecrets', 'startSecrets'],
              after: {
                secretsLimit: openTimeout('the secret server', secretsLimitMs),
              },
              on: {
                'secrets.ready': [
                  { guard: 'servesDns', target: 'DNS port', actions: 'spawnGrpcBootstrap' },
                  { target: 'xds socket', actions: 'spawnGrpcBootstrap' },
                ],
                'secrets.failed': onPartFailure,
              },
            },
            'DNS port': {
              description:
                'The workload may query names as soon as its container runs, at the latest when Envoy is ready.',
              entry: ['spawnDns', 'startDns'],
              after: {
                openLimit: openTimeout('the DNS port', openLimitMs),
              },
              on: {
                'dns.listening': 'xds socket',
                'dns.failed': onPartFailure,
              },
            },
            'xds socket': {
              description: 'Envoy connects to this socket for its configuration.',
              entry: 'startXds',
              after: {
                openLimit: openTimeout('the xDS socket', openLimitMs),
              },
              on: {
                'xds.listening': [
                  { guard: 'replacesAgent', target: 'standing by', actions: 'spawnSuccessor' },
                  // The previous agent stored the bootstrap patches.
                  { guard: and(['runsEnvoy', 'hasAdoption']), target: '#agent.active.supervising.adopting' },
                  { guard: 'requestsPatches', target: 'bootstrap patches' },
                  { guard: 'runsEnvoy', target: '#agent.active.supervising' },
                  { target: '#agent.active.without Envoy' },
                ],
                'xds.failed': onPartFailure,
              },
            },
            'standing by': {
              meta: {
                waitsFor: 'the successor, which is granted within 5 s, or the predecessor, which responds within 2 s',
              },
              description: 'Another agent is active: an older one that hands over, or a newer one that took over.',
              on: {
                'succession.taken': onIdsClaimed,
                'succession.failed': onIdsClaimed,
                'succession.refused': onPartFailure,
                'succession.done': { target: releasingState, actions: 'recordSuccession' },
                ...deferExitRequest,
                'status.failed': {
                  actions: recordReason,
                },
              },
            },
            'bootstrap patches': {
              meta: { waitsFor: 'the control plane, without which Envoy has no configuration' },
              invoke: {
                id: 'bootstrap-patches',
                src: 'bootstrapPatches',
                systemId: 'bootstrap-patches',
                onDone: [
                  {
                    guard: { type: 'arePatchesUnusable', params: ({ event }) => event.output },
                    target: releasingState,
                    actions: { type: 'recordFailure', params: ({ event }) => ({ trouble: [event.output.unusable] }) },
                  },
                  { target: '#agent.active.supervising' },
                ],
                onError: onActorError,
              },
            },
          },
        },
        'without Envoy': {
          meta: { waitsFor: 'a signal: normal operation' },
          description: 'Applications are xDS clients: the agent proxies xDS and serves certificates.',
          on: onExitRequest,
        },
        supervising: {
          description: 'The supervisor manages Envoy.',
          invoke: {
            id: 'supervisor',
            src: 'supervisor',
            systemId: 'supervisor',
            input: ({ context: { baseIds, settings, adoption } }) => ({
              baseIds,
              settings,
              ...(adoption && { adoption }),
            }),
            onDone: [
              {
                guard: { type: 'isOrderedStop', params: ({ event }) => ({ output: event.output }) },
                target: '#agent.releasing base ids',
              },
              {
                target: '#agent.releasing base ids',
                actions: {
                  type: 'recordFailure',
                  params: ({ event }) => ({
                    trouble: ['agent exits: Envoy cannot be kept running', ...event.output.attempts],
                  }),
                },
              },
            ],
            onError: onActorError,
          },
          entry: 'startSupervisor',
          initial: 'running',
          states: {
            adopting: {
              meta: { waitsFor: 'the supervisor, which adopts each Envoy within 10 s or fails' },
              description: 'Envoys of a previous agent are running.',
              on: {
                'epochs.adopted': [
                  { guard: 'isStopDue' as const, target: 'stopping', actions: 'reportComplete' },
                  { target: 'running' },
                ],
                ...deferExitRequest,
                'status.failed': {
                  actions: ['recordStop', recordReason],
                },
              },
            },
            running: {
              meta: { waitsFor: 'a signal, or the end of the supervisor: normal operation' },
              description: 'Envoy must run.',
              invoke: {
                id: 'cert-watcher',
                src: 'certWatcher',
                systemId: 'cert-watcher',
                input: ({ context }) => context.settings.watch,
                onError: {
                  target: 'stopping',
                  actions: recordError,
                },
              },
              entry: ['reportComplete', 'startWatcher', 'runDeferredOrders', 'watchBinary', 'spawnPredecessor'],
              exit: 'unwatchBinary',
              on: {
                'upgrade.requested': { actions: 'checkBinary' },
                'restart.ended': { actions: 'runDeferredOrders' },
                'signal.received': [
                  { guard: 'isStopSignal', target: 'stopping' },
                  { guard: 'isRestartSignal', actions: 'restart' },
                  { guard: 'isReopenSignal', actions: 'reopenLogs' },
                ],
                'quit.requested': 'stopping',
                'succession.due': { target: '#agent.active.preparing.standing by', actions: 'beginSuccession' },
                'status.failed': {
                  target: 'stopping',
                  actions: recordReason,
                },
              },
            },
            stopping: {
              meta: { waitsFor: 'the supervisor, which ends within its drain and stop limits' },
              description: 'The supervisor drains and ends every Envoy.',
              entry: ['drainStatus', 'stopSupervisor'],
              on: {
                'signal.received': [
                  { guard: 'isStopSignal', actions: 'stopSupervisorNow' },
                  { guard: 'isReopenSignal', actions: 'reopenLogs' },
                ],
              },
            },
          },
        },
      },
    },
    'releasing base ids': {
      tags: 'leaving',
      description: 'Waits until all Envoys have exited, and removes their shared memory.',
      invoke: {
        id: 'release',
        src: 'releaseBaseIds',
        input: ({ context }) => ({ baseIds: context.baseIds, keeps: context.isAnothers }),
        onDone: 'ended',
        onError: 'ended',
      },
      after: {
        releaseLimit: {
          target: 'ended',
          actions: {
            type: 'addFailure',
            params: {
              trouble: `Envoy process did not exit within ${releaseLimitMs} ms after SIGKILL, its base ID stays in use`,
            },
          },
        },
      },
      // The agent exits without waiting for the killed processes.
      on: { 'signal.received': { guard: 'isStopSignal', target: 'ended' } },
    },
    ended: { type: 'final', tags: 'leaving' },
  },
  output: ({ context: { trouble, isAnothers, ordersDue } }) => ({
    exitCode: isAnothers ? successionExitCodeOf(ordersDue) : trouble.length === 0 ? 0 : 1,
    trouble,
  }),
});
