import { and } from 'xstate';
import { reasonOf } from '../effect.ts';
import { agentSetup, claimLimitMs, openLimitMs, releaseLimitMs, secretsLimitMs } from './agent.setup.ts';
import { gaveWayWith } from './replacement/due-orders.ts';
import { provesIdentity } from './settings.ts';
import type { SuccessionFailed, SuccessionTaken } from './succession-protocol.ts';
import { agentTimeline } from './timeline.ts';

export type { AgentInput, AgentOutput } from './agent.setup.ts';

const end = '#agent.releasing the base ids';

/** Why the agent ends, as it was said. */
const rememberReason = {
  type: 'rememberTrouble' as const,
  params: ({ event }: { event: { reason: string } }) => ({ trouble: [event.reason] }),
};
/** Or as an effect was rejected with it. */
const rememberFault = {
  type: 'rememberTrouble' as const,
  params: ({ event }: { event: { error: unknown } }) => ({ trouble: [reasonOf(event.error)] }),
};

/** What the agent is to live with cannot be had. */
const failed = {
  target: end,
  actions: rememberReason,
};

/** An actor of ours is broken. */
const broken = { target: end, actions: rememberFault };

function notOpen(what: string, limitMs: number) {
  return {
    target: end,
    actions: { type: 'addTrouble' as const, params: { trouble: `${what} not open after ${limitMs} ms` } },
  };
}

/** What runs is this agent's from now on. */
const rememberTaken = [
  {
    type: 'rememberClaim' as const,
    params: ({ event }: { event: SuccessionTaken | SuccessionFailed }) => event.claimed,
  },
  // Another one listens when there is something to give way with again.
  'stopPredecessor' as const,
];
const taken = [
  {
    guard: {
      type: 'areThere' as const,
      params: ({ event }: { event: SuccessionTaken | SuccessionFailed }) => event.claimed,
    },
    target: '#agent.at work.supervising.taking over',
    actions: rememberTaken,
  },
  { guard: 'mustEndByNow' as const, target: end, actions: [...rememberTaken, 'tellComplete' as const] },
  { target: '#agent.at work.supervising', actions: rememberTaken },
];

/** What ends the agent where nothing was started that has to be drained. */
const endings = {
  'status.failed': failed,
  'quit.requested': end,
  'signal.received': { guard: 'endsUs' as const, target: end },
};
/** While it opens what Envoy will need: one may run already. */
const earlyEndings = {
  ...endings,
  'quit.requested': [{ guard: 'hasEnvoysToDrain' as const, actions: 'noteEnd' as const }, { target: end }],
  'signal.received': [
    { guard: and(['endsUs', 'hasEnvoysToDrain']), actions: 'noteEnd' as const },
    { guard: 'endsUs' as const, target: end },
  ],
};

/** It is to end, and what is under way comes first. */
const endIsNoted = {
  'signal.received': { guard: 'endsUs' as const, actions: 'noteEnd' as const },
  'quit.requested': { actions: 'noteEnd' as const },
};

/** The root of pilot-agent: brings the others up in order, passes signals on, and takes everything down. */
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
    // Ignored where no state has a use for them: SIGHUP where no Envoy can be there yet, SIGUSR2, a signal when everything is over.
    'signal.received': { guard: 'isForLater', actions: 'noteOrder' },
    'status.failed': {},
    'quit.requested': {},
    'upgrade.requested': {},
    'secrets.ready': {},
    'secrets.failed': {},
    'output.written': { actions: 'spawnGrpcBootstrap' },
    // Recorded in trace and log only.
    'grpc-bootstrap.failed': {},
    'access-logs.failed': {},
    'xds.listening': {},
    'xds.failed': {},
    // Told for people: they are in the trace, and so in the log and the metrics.
    'epochs.adopted': {},
    'restart.decided': {},
    'restart.ended': {},
    'binary.withdrawn': {},
    'binary.proven': {},
    'files.missing': {},
    // A port that was lost is open again.
    'dns.listening': {},
    'dns.failed': {},
    'succession.taken': {},
    'succession.refused': {},
    'succession.due': { actions: 'refuseSuccession' },
    'succession.done': {},
    'succession.failed': {},
  },
  initial: 'claiming base ids',
  states: {
    'claiming base ids': {
      description: 'Several agents share a host: each needs names of its own for shared memory and sockets.',
      invoke: {
        id: 'claim',
        src: 'claimBaseIds',
        input: ({ context }) => ({ succeeds: context.settings.succeeds }),
        onDone: [
          {
            guard: { type: 'endsAtOnce', params: ({ event }) => event.output },
            target: 'releasing the base ids',
            actions: [{ type: 'rememberClaim', params: ({ event }) => event.output }, 'tellComplete'],
          },
          { target: 'at work', actions: { type: 'rememberClaim', params: ({ event }) => event.output } },
        ],
        onError: {
          target: 'ended',
          actions: rememberFault,
        },
      },
      after: {
        claimLimit: {
          target: 'ended',
          actions: { type: 'addTrouble', params: { trouble: `no base ID after ${claimLimitMs} ms` } },
        },
      },
      on: {
        'signal.received': [
          { guard: and(['endsUs', 'mayFindEnvoys']), actions: 'noteEnd' },
          { guard: 'endsUs', target: 'ended' },
        ],
      },
    },
    'at work': {
      description: 'The status port is open or about to be.',
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
          onError: broken,
        },
        {
          id: 'status',
          src: 'status',
          systemId: 'status',
          input: ({ context: { settings } }) => ({
            port: settings.statusPort,
            hasEnvoy: settings.runsEnvoy,
            awaitsApplication: settings.awaitsApplication,
            // Names come with Envoy's configuration: a bootstrap of the user's own has its own way to them, or none.
            awaitsNames: settings.dns && settings.xdsSocket !== '',
            awaitsGrpcBootstrap: settings.proxyless,
          }),
          onError: broken,
        },
      ],
      entry: ['startStatus', 'spawnGrpcBootstrap', 'spawnAccessLogs'],
      initial: 'preparing',
      states: {
        preparing: {
          description: 'What Envoy will need is there before it is started, one after the other.',
          on: earlyEndings,
          initial: 'status port',
          states: {
            'status port': {
              description: 'Nothing else is done before somebody can ask.',
              after: {
                openLimit: notOpen('the status port', openLimitMs),
              },
              on: {
                'status.listening': [
                  { guard: 'servesSecrets', target: 'secret server' },
                  { guard: 'answersNames', target: 'DNS port' },
                  { target: 'xds socket' },
                ],
              },
            },
            'secret server': {
              description: 'An Envoy that asks for secrets before somebody answers waits for them for ever.',
              entry: ['spawnSecrets', 'startSecrets'],
              after: {
                secretsLimit: notOpen('the secret server', secretsLimitMs),
              },
              on: {
                'secrets.ready': [
                  { guard: 'answersNames', target: 'DNS port', actions: 'spawnGrpcBootstrap' },
                  { target: 'xds socket', actions: 'spawnGrpcBootstrap' },
                ],
                'secrets.failed': failed,
              },
            },
            'DNS port': {
              description:
                'The workload may ask for names as soon as its container runs, which is when Envoy is ready at the latest.',
              entry: ['spawnDns', 'startDns'],
              after: {
                openLimit: notOpen('the DNS port', openLimitMs),
              },
              on: {
                'dns.listening': 'xds socket',
                'dns.failed': failed,
              },
            },
            'xds socket': {
              description: 'Envoy is to find somebody there when it asks for its configuration.',
              entry: 'startXds',
              after: {
                openLimit: notOpen('the xDS socket', openLimitMs),
              },
              on: {
                'xds.listening': [
                  { guard: 'succeedsAnother', target: 'standing by', actions: 'spawnSuccessor' },
                  // Whoever started them has left what the control plane patches.
                  { guard: and(['runsEnvoy', 'findsEnvoys']), target: '#agent.at work.supervising.taking over' },
                  { guard: 'asksForPatches', target: 'bootstrap patches' },
                  { guard: 'runsEnvoy', target: '#agent.at work.supervising' },
                  { target: '#agent.at work.without Envoy' },
                ],
                'xds.failed': failed,
              },
            },
            'standing by': {
              meta: {
                waitsFor: 'the successor, which has its turn in 5 s, or the predecessor, which has an answer in 2 s',
              },
              description: 'An older agent decides here, and gives way to this one; or this one has given way.',
              on: {
                'succession.taken': taken,
                'succession.failed': taken,
                'succession.refused': failed,
                'succession.done': { target: end, actions: 'noteGivenWay' },
                ...endIsNoted,
                'status.failed': {
                  actions: rememberReason,
                },
              },
            },
            'bootstrap patches': {
              meta: { waitsFor: 'the control plane, without which Envoy would have no configuration anyway' },
              invoke: {
                id: 'bootstrap-patches',
                src: 'bootstrapPatches',
                systemId: 'bootstrap-patches',
                onDone: [
                  {
                    guard: { type: 'areUnusable', params: ({ event }) => event.output },
                    target: end,
                    actions: { type: 'rememberTrouble', params: ({ event }) => ({ trouble: [event.output.unusable] }) },
                  },
                  { target: '#agent.at work.supervising' },
                ],
                onError: broken,
              },
            },
          },
        },
        'without Envoy': {
          meta: { waitsFor: 'a signal: this is the work' },
          description:
            'Applications speak xDS themselves: the agent is their way to the control plane, and to certificates.',
          on: endings,
        },
        supervising: {
          description: 'The supervisor has the word.',
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
                guard: { type: 'wasOrdered', params: ({ event }) => ({ output: event.output }) },
                target: '#agent.releasing the base ids',
              },
              {
                target: '#agent.releasing the base ids',
                actions: {
                  type: 'rememberTrouble',
                  params: ({ event }) => ({
                    trouble: ['giving up after repeated Envoy failures', ...event.output.attempts],
                  }),
                },
              },
            ],
            onError: broken,
          },
          entry: 'startSupervisor',
          initial: 'running',
          states: {
            'taking over': {
              meta: { waitsFor: 'the supervisor, which has taken over each Envoy in 10 s or fails' },
              description: 'Envoys run that another agent has started.',
              on: {
                'epochs.adopted': [
                  { guard: 'mustEndByNow' as const, target: 'stopping', actions: 'tellComplete' },
                  { target: 'running' },
                ],
                ...endIsNoted,
                'status.failed': {
                  actions: ['noteEnd', rememberReason],
                },
              },
            },
            running: {
              meta: { waitsFor: 'a signal, or the end of the supervisor: this is the work' },
              description: 'Envoy should run.',
              invoke: {
                id: 'cert-watcher',
                src: 'certWatcher',
                systemId: 'cert-watcher',
                input: ({ context }) => context.settings.watch,
                onError: {
                  target: 'stopping',
                  actions: rememberFault,
                },
              },
              entry: ['tellComplete', 'startWatcher', 'catchUp', 'watchBinary', 'spawnPredecessor'],
              exit: 'leaveBinary',
              on: {
                'upgrade.requested': { actions: 'lookAtBinary' },
                'restart.ended': { actions: 'catchUp' },
                'signal.received': [
                  { guard: 'endsUs', target: 'stopping' },
                  { guard: 'asksForRestart', actions: 'restart' },
                  { guard: 'asksForNewLogs', actions: 'reopenLogs' },
                ],
                'quit.requested': 'stopping',
                'succession.due': { target: '#agent.at work.preparing.standing by', actions: 'beginSuccession' },
                'status.failed': {
                  target: 'stopping',
                  actions: rememberReason,
                },
              },
            },
            stopping: {
              meta: { waitsFor: 'the supervisor, which ends within its drain and stop limits' },
              description: 'The supervisor drains and ends every Envoy.',
              entry: ['drainStatus', 'stopSupervisor'],
              on: {
                'signal.received': [
                  { guard: 'endsUs', actions: 'stopSupervisorNow' },
                  { guard: 'asksForNewLogs', actions: 'reopenLogs' },
                ],
              },
            },
          },
        },
      },
    },
    'releasing the base ids': {
      tags: 'leaving',
      description: 'Every Envoy is gone; its shared memory is removed.',
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
            type: 'addTrouble',
            params: {
              trouble: `Envoy process did not exit within ${releaseLimitMs} ms after SIGKILL, its base ID stays in use`,
            },
          },
        },
      },
      // Told once more: who is left is killed already, and is not waited for.
      on: { 'signal.received': { guard: 'endsUs', target: 'ended' } },
    },
    ended: { type: 'final', tags: 'leaving' },
  },
  output: ({ context: { trouble, isAnothers, ordersDue } }) => ({
    exitCode: isAnothers ? gaveWayWith(ordersDue) : trouble.length === 0 ? 0 : 1,
    trouble,
  }),
});
