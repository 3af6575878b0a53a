import { and, assign, enqueueActions, sendTo, setup, spawnChild, stopChild } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../effect.ts';
import { bootstrapPatchesMachine } from './bootstrap/bootstrap-patches.machine.ts';
import { dnsMachine } from './dns/dns.machine.ts';
import type { DnsFailed, DnsListening } from './dns-protocol.ts';
import { type Adoption, type ClaimedIds, restartUnderWay } from './envoy/adoption.ts';
import { type SupervisorOutput, supervisorMachine } from './envoy/supervisor.machine.ts';
import { binaryWatcherMachine } from './files/binary-watcher.machine.ts';
import { certWatcherMachine } from './files/cert-watcher.machine.ts';
import type {
  BinaryProven,
  BinaryWithdrawn,
  EpochsAdopted,
  FilesMissing,
  QuitRequested,
  RestartDecided,
  RestartEnded,
  Signal,
  SignalReceived,
  StatusFailed,
  StatusListening,
  UpgradeRequested,
} from './protocol.ts';
import { type DueOrder, gaveWayWith, isDueOrder, withOrder } from './replacement/due-orders.ts';
import { predecessorMachine } from './replacement/predecessor.machine.ts';
import { successorMachine } from './replacement/successor.machine.ts';
import { secretsMachine } from './secrets/secrets.machine.ts';
import type { SecretsFailed, SecretsReady } from './secrets-protocol.ts';
import { type AgentSettings, provesIdentity } from './settings.ts';
import { statusMachine } from './status/status.machine.ts';
import type {
  SuccessionDone,
  SuccessionDue,
  SuccessionFailed,
  SuccessionRefused,
  SuccessionTaken,
} from './succession-protocol.ts';
import { agentTimeline } from './timeline.ts';
import { xdsProxyMachine } from './xds/xds-proxy.machine.ts';
import type { XdsFailed, XdsListening } from './xds-protocol.ts';

export interface AgentInput {
  settings: AgentSettings;
}

interface AgentContext extends AgentInput {
  /** The one that Envoys begin with, then the one to fall back to, where there is one. */
  baseIds: number[];
  /** What runs already when the agent begins. */
  adoption: Adoption | undefined;
  /** Somebody has asked for the end while Envoys were being taken over: they are to be drained first. */
  endIsDue: boolean;
  /** What was ordered while Envoys were being taken over, or were another agent's. */
  ordersDue: DueOrder[];
  /** An Envoy that another agent has started is on its way to live: what is due waits for what becomes of it. */
  awaitsRestart: boolean;
  /** Why the agent ends other than by order; empty while there is no such reason. */
  trouble: string[];
  /** Another agent goes on with what runs here when this one ends: an older one that waits, or a newer one. */
  isAnothers: boolean;
}

export interface AgentOutput {
  /** 0 when the agent ended as it was told to; {@link gaveWayWith}. */
  exitCode: number;
  /** What to tell the person; empty after an ordered end. */
  trouble: string[];
}

const endingSignals: ReadonlySet<Signal> = new Set(['SIGTERM', 'SIGINT', 'SIGQUIT']);

/** A sweep waits for the Envoys of dead agents. */
const claimLimitMs = 30_000;
/** A port is opened, or it is not, at once. */
const openLimitMs = 10_000;
/** The socket is tried six times in 31 s, each for ten at the most. */
const secretsLimitMs = 95_000;
/** What is left of Envoys is killed, and the kernel given its time. */
const releaseLimitMs = 12_000;

const end = '#agent.releasing the base ids';

/** What the agent is to live with cannot be had. */
const failed = {
  target: end,
  actions: {
    type: 'rememberTrouble' as const,
    params: ({ event }: { event: { reason: string } }) => ({ trouble: [event.reason] }),
  },
};

function notOpen(what: string, limitMs: number) {
  return {
    target: end,
    actions: { type: 'addTrouble' as const, params: { trouble: `${what} was not open in ${limitMs} ms` } },
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

/** The root of pilot-agent: brings the others up in order, passes signals on, and takes everything down. */
export const agentMachine = setup({
  types: {
    context: {} as AgentContext,
    input: {} as AgentInput,
    output: {} as AgentOutput,
    /** `leaving`: there is no way back. */
    tags: {} as 'leaving',
    events: {} as
      | SignalReceived
      | StatusListening
      | StatusFailed
      | QuitRequested
      | UpgradeRequested
      | BinaryProven
      | BinaryWithdrawn
      | EpochsAdopted
      | RestartDecided
      | RestartEnded
      | FilesMissing
      | DnsListening
      | DnsFailed
      | SecretsReady
      | SecretsFailed
      | XdsListening
      | XdsFailed
      | SuccessionTaken
      | SuccessionRefused
      | SuccessionDue
      | SuccessionDone
      | SuccessionFailed,
    children: {} as {
      signals: 'signals';
      claim: 'claimBaseIds';
      release: 'releaseBaseIds';
      'bootstrap-patches': 'bootstrapPatches';
      status: 'status';
      dns: 'dns';
      secrets: 'secrets';
      'xds-proxy': 'xdsProxy';
      supervisor: 'supervisor';
      'cert-watcher': 'certWatcher';
      'binary-watcher': 'binaryWatcher';
      predecessor: 'predecessor';
      successor: 'successor';
    },
  },
  actors: {
    /** Passes on what the operating system delivers. */
    signals: callbackEffect<{ type: never }, undefined>('signals'),
    /**
     * Takes over the base ids of an agent of this container that was killed, with what runs under them; else sweeps what dead agents left behind, and
     * takes one or two Envoy base ids that nobody on this host uses. None, where an older agent has them that is to give way.
     */
    claimBaseIds: promiseEffect<ClaimedIds, { succeeds: boolean }>('claimBaseIds'),
    /** Ends what runs under them, unless that is for another agent to go on with. */
    releaseBaseIds: promiseEffect<void, { baseIds: number[]; keeps: boolean }>('releaseBaseIds'),
    bootstrapPatches: bootstrapPatchesMachine,
    status: statusMachine,
    dns: dnsMachine,
    secrets: secretsMachine,
    xdsProxy: xdsProxyMachine,
    supervisor: supervisorMachine,
    certWatcher: certWatcherMachine,
    binaryWatcher: binaryWatcherMachine,
    predecessor: predecessorMachine,
    successor: successorMachine,
  },
  delays: {
    claimLimit: claimLimitMs,
    openLimit: openLimitMs,
    secretsLimit: secretsLimitMs,
    releaseLimit: releaseLimitMs,
  },
  guards: {
    endsUs: ({ event }) => event.type === 'signal.received' && endingSignals.has(event.signal),
    /** What is told to end once more ends at once. */
    hasEnvoysToDrain: ({ context }) => context.adoption !== undefined && !context.endIsDue,
    /** An order about Envoys that may run: they are being taken over, or are another agent's at the moment. */
    isForLater: ({ context, event }) =>
      context.settings.liveRestore && event.type === 'signal.received' && isDueOrder(event.signal),
    areThere: (_, { adoption }: ClaimedIds) => adoption !== undefined,
    findsEnvoys: ({ context }) => context.adoption !== undefined,
    mayFindEnvoys: ({ context }) => context.settings.liveRestore && !context.endIsDue,
    mustEndByNow: ({ context }) => context.endIsDue || context.trouble.length > 0,
    /** Another agent has what there is, or somebody has asked for the end and nothing has to be drained. */
    endsAtOnce: ({ context }, { adoption, isAnothers }: ClaimedIds) =>
      isAnothers === true || (context.endIsDue && adoption === undefined),
    asksForRestart: ({ event }) => event.type === 'signal.received' && event.signal === 'SIGHUP',
    asksForNewLogs: ({ event }) => event.type === 'signal.received' && event.signal === 'SIGUSR1',
    answersNames: ({ context }) => context.settings.dns,
    runsEnvoy: ({ context }) => context.settings.runsEnvoy,
    asksForPatches: ({ context }) => context.settings.runsEnvoy && context.settings.patchedBootstrap,
    areUnusable: (_, { unusable }: { unusable: string }) => unusable !== '',
    servesSecrets: ({ context }) => context.settings.identity.source !== 'nowhere',
    succeedsAnother: ({ context }) => context.settings.succeeds,
    wasOrdered: (_, params: { output: SupervisorOutput }) => params.output.ordered,
  },
  actions: {
    spawnSuccessor: spawnChild('successor', { id: 'successor', systemId: 'successor' }),
    /** Told once: from then on this agent ends what it has when it ends. */
    tellComplete: enqueueActions(({ context, enqueue }) => {
      if (!context.settings.succeeds || !context.isAnothers) return;
      enqueue.assign({ isAnothers: false });
      enqueue.sendTo('successor', { type: 'succession.complete' });
    }),
    /** Only where there is something to give way with. */
    spawnPredecessor: enqueueActions(({ context, enqueue }) => {
      if (!context.settings.givesWay) return;
      enqueue.spawnChild('predecessor', { id: 'predecessor', systemId: 'predecessor' });
    }),
    stopPredecessor: stopChild('predecessor'),
    beginSuccession: sendTo('predecessor', { type: 'succession.begin' }),
    refuseSuccession: sendTo('predecessor', {
      type: 'succession.refuse',
      reason: 'the older agent is taking over itself, or ends',
    }),
    noteGivenWay: assign({ isAnothers: true }),
    rememberClaim: assign((_, { baseIds, adoption, isAnothers }: ClaimedIds) => ({
      ...{ baseIds, adoption },
      ...(isAnothers && { isAnothers }),
      awaitsRestart: adoption !== undefined && restartUnderWay(adoption) !== undefined,
    })),
    noteOrder: assign({
      ordersDue: ({ context: { ordersDue }, event }) =>
        event.type === 'signal.received' && isDueOrder(event.signal) ? withOrder(ordersDue, event.signal) : ordersDue,
    }),
    /** What is due is done; not while an adopted Envoy is on its way to live: nobody knows yet whether it is. */
    catchUp: enqueueActions(({ context: { ordersDue, awaitsRestart }, event, enqueue }) => {
      if (awaitsRestart && event.type !== 'restart.ended') return;
      if (ordersDue.includes('SIGUSR1')) enqueue.sendTo('supervisor', { type: 'logs.reopen' });
      if (ordersDue.includes('SIGHUP')) enqueue.sendTo('supervisor', { type: 'supervisor.restart', reason: 'SIGHUP' });
      enqueue.assign({ ordersDue: [], awaitsRestart: false });
    }),
    noteEnd: assign({ endIsDue: true }),
    rememberTrouble: assign({ trouble: (_, params: { trouble: string[] }) => params.trouble }),
    addTrouble: assign({ trouble: ({ context }, params: { trouble: string }) => [...context.trouble, params.trouble] }),
    startStatus: sendTo('status', { type: 'status.start' }),
    spawnDns: spawnChild('dns', { id: 'dns', systemId: 'dns' }),
    startDns: sendTo('dns', { type: 'dns.start' }),
    /** For as long as the agent lives: an Envoy that drains still asks. */
    spawnSecrets: spawnChild('secrets', {
      id: 'secrets',
      systemId: 'secrets',
      input: ({ context: { settings } }) => ({ ...settings.identity, obtainsFirst: settings.succeeds }),
    }),
    startSecrets: sendTo('secrets', { type: 'secrets.start' }),
    startXds: sendTo('xds-proxy', { type: 'xds.start' }),
    startSupervisor: sendTo('supervisor', { type: 'supervisor.start' }),
    /** Where it is known where the binary is. */
    watchBinary: enqueueActions(({ context, enqueue }) => {
      const { binary } = context.settings;
      if (binary.path === '') return;
      const directory = binary.path.slice(0, Math.max(1, binary.path.lastIndexOf('/')));
      enqueue.spawnChild('binaryWatcher', {
        id: 'binary-watcher',
        systemId: 'binary-watcher',
        input: { ...binary, directory },
      });
    }),
    leaveBinary: stopChild('binary-watcher'),
    lookAtBinary: enqueueActions(({ context, enqueue }) => {
      if (context.settings.binary.path !== '') enqueue.sendTo('binary-watcher', { type: 'binary.look' });
    }),
    startWatcher: sendTo('cert-watcher', { type: 'watch.start' }),
    restart: sendTo('supervisor', { type: 'supervisor.restart', reason: 'SIGHUP' }),
    reopenLogs: sendTo('supervisor', { type: 'logs.reopen' }),
    drainStatus: sendTo('status', { type: 'status.drain' }),
    stopSupervisor: sendTo('supervisor', ({ event }) => ({
      type: 'supervisor.stop',
      reason: event.type === 'signal.received' ? event.signal : event.type,
    })),
    stopSupervisorNow: sendTo('supervisor', { type: 'supervisor.stop-now' }),
  },
}).createMachine({
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
          actions: { type: 'rememberTrouble', params: ({ event }) => ({ trouble: [reasonOf(event.error)] }) },
        },
      },
      after: {
        claimLimit: {
          target: 'ended',
          actions: { type: 'addTrouble', params: { trouble: `no base id was to be had in ${claimLimitMs} ms` } },
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
          }),
          onError: {
            target: 'releasing the base ids',
            actions: { type: 'rememberTrouble', params: ({ event }) => ({ trouble: [reasonOf(event.error)] }) },
          },
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
          }),
          onError: {
            target: 'releasing the base ids',
            actions: { type: 'rememberTrouble', params: ({ event }) => ({ trouble: [reasonOf(event.error)] }) },
          },
        },
      ],
      entry: 'startStatus',
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
                'secrets.ready': [{ guard: 'answersNames', target: 'DNS port' }, { target: 'xds socket' }],
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
                  { guard: 'asksForPatches', target: 'bootstrap patches' },
                  { guard: and(['runsEnvoy', 'findsEnvoys']), target: '#agent.at work.supervising.taking over' },
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
                'succession.refused': {
                  target: end,
                  actions: { type: 'rememberTrouble', params: ({ event }) => ({ trouble: [event.reason] }) },
                },
                'succession.done': { target: end, actions: 'noteGivenWay' },
                'signal.received': { guard: 'endsUs', actions: 'noteEnd' },
                'quit.requested': { actions: 'noteEnd' },
                'status.failed': {
                  actions: { type: 'rememberTrouble', params: ({ event }) => ({ trouble: [event.reason] }) },
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
                onError: {
                  target: end,
                  actions: { type: 'rememberTrouble', params: ({ event }) => ({ trouble: [reasonOf(event.error)] }) },
                },
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
                  params: ({ event }) => ({ trouble: ['Envoy could not be kept running', ...event.output.attempts] }),
                },
              },
            ],
            onError: {
              target: '#agent.releasing the base ids',
              actions: { type: 'rememberTrouble', params: ({ event }) => ({ trouble: [reasonOf(event.error)] }) },
            },
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
                'signal.received': { guard: 'endsUs', actions: 'noteEnd' },
                'quit.requested': { actions: 'noteEnd' },
                'status.failed': {
                  actions: [
                    'noteEnd',
                    { type: 'rememberTrouble', params: ({ event }) => ({ trouble: [event.reason] }) },
                  ],
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
                  actions: { type: 'rememberTrouble', params: ({ event }) => ({ trouble: [reasonOf(event.error)] }) },
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
                  actions: { type: 'rememberTrouble', params: ({ event }) => ({ trouble: [event.reason] }) },
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
              trouble: `an Envoy was killed and has not ended in ${releaseLimitMs} ms: its base id stays in use`,
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
