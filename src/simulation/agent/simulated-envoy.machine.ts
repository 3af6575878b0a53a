/**
 * The behavior was measured (docs/hot-restart-reference.md, facts 1 to 10). Events by Envoy's own clock are delays; events of the host are in the
 * `meta` of states, with the latest times at which they occur.
 */
import { raise, setup } from 'xstate';

export type Reception =
  | 'accepted'
  /** The INITIALIZING bit is set, or the shared memory of running processes was recreated: exit 1 (fact 1). */
  | 'refused'
  /** Its socket name or admin port is taken: exit 1, harmless. */
  | 'no address'
  /** Epoch > 0 and no response on the parent's socket: ten tries, then SIGABRT. */
  | 'no parent'
  /** Epoch > 0 and no shared memory: SIGABRT. */
  | 'no shared memory'
  /** The Envoy never gets a response: its parent hangs, or it calls an exited parent now or when the child connects. */
  | 'no response';

export interface SimulatedEnvoyInput {
  epoch: number;
  baseId: number;
  reception: Reception;
  /** --parent-shutdown-time-s of this process; for a hand-over, the child's value applies. */
  parentShutdownMs: number;
  drainMs: number;
}

export interface ProcessEnd {
  code: number | null;
  signal: string | null;
  lastOutput: string;
  refusedByParent: boolean;
}

export type SimulatedEnvoyEvent =
  /** Spontaneous: the parent has released the port. */
  | { type: 'envoy.admin-opened' }
  /** Spontaneous: all awaited resources have been received. */
  | { type: 'envoy.went-live' }
  | { type: 'envoy.ended' }
  /** Spontaneous: an orphaned child makes its next call to the exited parent. */
  | { type: 'envoy.called-parent' }
  /** A fault: it cannot use its configuration, or another program uses one of its ports. */
  | { type: 'envoy.failed' }
  /** A fault: the supervisor did not end the process. */
  | { type: 'envoy.crashed' }
  /** A fault: it does not exit after an order. */
  | { type: 'envoy.hung' }
  | { type: 'signal.sent'; signal: 'SIGTERM' | 'SIGKILL' | 'SIGUSR1' }
  | { type: 'listeners.drain' | 'listeners.close' }
  | { type: 'parent.died' }
  | { type: 'child.started' }
  | { type: 'child.went-live' }
  /** Its child orders it to exit. */
  | { type: 'child.sent-away' };

/** An explorer chooses a spontaneous transition, a random simulation draws it. */
export interface Nature {
  event: 'envoy.admin-opened' | 'envoy.went-live' | 'envoy.ended' | 'envoy.called-parent';
  /** No limit if absent. */
  withinMs?: number;
}

export interface SimulatedEnvoyMeta {
  nature?: Nature;
  /** May ignore an order to exit. */
  mayHang?: boolean;
}

/** Upper bounds, measured on a loaded machine. */
const exitMs = 200;
const killMs = 50;
const refusalMs = 1_500;
const parentCallMs = 5_000;

const cleanExit: ProcessEnd = { code: 0, signal: null, lastOutput: '', refusedByParent: false };
const endBySignal = (signal: string): ProcessEnd => ({ ...cleanExit, code: null, signal });
const failedExit = (lastOutput: string, refusedByParent: boolean): ProcessEnd => ({
  code: 1,
  signal: null,
  lastOutput,
  refusedByParent,
});

export const simulatedEnvoyMachine = setup({
  types: {
    context: {} as SimulatedEnvoyInput,
    input: {} as SimulatedEnvoyInput,
    events: {} as SimulatedEnvoyEvent,
    meta: {} as SimulatedEnvoyMeta,
  },
  delays: {
    parentShutdown: ({ context }) => context.parentShutdownMs,
    drainTime: ({ context }) => context.drainMs,
    /** Ten tries, one per second (fact 4). */
    tenTries: 10_000,
  },
  guards: {
    wasReceived: ({ context }, params: { as: Reception }) => context.reception === params.as,
    isFirst: ({ context }) => context.epoch === 0,
    isTerm: ({ event }) => event.type === 'signal.sent' && event.signal === 'SIGTERM',
    isKill: ({ event }) => event.type === 'signal.sent' && event.signal === 'SIGKILL',
    isReopen: ({ event }) => event.type === 'signal.sent' && event.signal === 'SIGUSR1',
  },
  actions: {
    /** The flag is shared by the Envoys of a base ID. */
    setInitializing: () => {},
    clearInitializing: () => {},
    takeAdmin: () => {},
    closeListeners: () => {},
    /** Independent of other events: the drain continues in the background. */
    closeAfterDrainTime: raise({ type: 'listeners.close' }, { delay: 'drainTime' }),
    giveUpAdmin: () => {},
    tellParentLive: () => {},
    sendParentAway: () => {},
    /** The operating system notifies the parent process. */
    leave: (_, _params: { end: ProcessEnd }) => {},
  },
}).createMachine({
  id: 'envoy',
  description: 'A simulated Envoy.',
  context: ({ input }) => input,
  initial: 'attaching',
  on: {
    'signal.sent': { guard: 'isKill', target: '.killed' },
    'envoy.crashed': '.crashed',
  },
  states: {
    attaching: {
      description: 'Attaches to its shared memory and its parent, in one step.',
      always: [
        { guard: { type: 'wasReceived', params: { as: 'accepted' } }, target: 'initializing' },
        {
          guard: { type: 'wasReceived', params: { as: 'no parent' } },
          target: 'calling a dead parent',
          actions: 'setInitializing',
        },
        { guard: { type: 'wasReceived', params: { as: 'no response' } }, target: 'waiting for a response' },
        { target: 'turned away' },
      ],
    },
    'turned away': {
      description: 'Rejected; it is about to exit, and changed no shared state.',
      meta: { nature: { event: 'envoy.ended', withinMs: refusalMs } },
      on: {
        'envoy.ended': [
          { guard: { type: 'wasReceived', params: { as: 'refused' } }, target: 'refused' },
          { guard: { type: 'wasReceived', params: { as: 'no address' } }, target: 'without an address' },
          { target: 'aborted' },
        ],
      },
    },
    initializing: {
      description: 'Reads its bootstrap and waits for its first configuration. Its parent serves.',
      entry: 'setInitializing',
      initial: 'silent',
      on: {
        'envoy.went-live': 'live',
        'envoy.failed': 'misconfigured',
        // It still needs responses from its parent before it is live.
        'parent.died': 'calling a dead parent',
        // On exit it orders its parent to exit, too (fact 3).
        'signal.sent': [
          { guard: 'isKill', target: 'killed' },
          { guard: 'isTerm', target: 'ending', actions: 'sendParentAway' },
        ],
      },
      states: {
        silent: {
          description: 'Its parent still owns the admin port.',
          meta: { nature: { event: 'envoy.admin-opened' } },
          on: { 'envoy.admin-opened': 'answering' },
        },
        answering: {
          description: 'Owns the admin port and responds with 503; its parent no longer has one.',
          entry: 'takeAdmin',
          meta: { nature: { event: 'envoy.went-live' } },
          on: { 'parent.died': 'orphaned' },
        },
        orphaned: {
          description:
            'Its parent exited. It blocks at its next call to the parent, before it can report that it is live.',
          meta: { nature: { event: 'envoy.called-parent', withinMs: parentCallMs } },
          on: {
            'envoy.called-parent': '#envoy.calling a dead parent',
            // Its workers start before its next call to the parent.
            'envoy.went-live': '#envoy.calling a dead parent.serving',
            'signal.sent': [
              { guard: 'isKill', target: '#envoy.killed' },
              { guard: 'isTerm', target: '#envoy.calling a dead parent' },
            ],
          },
        },
      },
    },
    'waiting for a response': {
      description: 'Waits for its parent without a limit, even after the parent exits. Does not handle signals yet.',
      entry: 'setInitializing',
      on: {
        'signal.sent': [
          { guard: 'isKill', target: 'killed' },
          { guard: 'isTerm', target: 'terminated' },
        ],
      },
    },
    live: {
      description: 'Serves.',
      entry: ['takeAdmin', 'clearInitializing', 'tellParentLive'],
      initial: 'first or next',
      on: {
        'child.went-live': '.superseded',
        'child.sent-away': 'ending',
        'listeners.drain': { actions: 'closeAfterDrainTime' },
        'listeners.close': { actions: 'closeListeners' },
        'signal.sent': [
          { guard: 'isKill', target: 'killed' },
          { guard: 'isTerm', target: 'ending', actions: 'sendParentAway' },
        ],
      },
      states: {
        'first or next': { always: [{ guard: 'isFirst', target: 'alone' }, { target: 'with a parent' }] },
        'with a parent': {
          description: 'Its parent drains, and is stopped when the drain ends.',
          after: { parentShutdown: { target: 'alone', actions: 'sendParentAway' } },
          on: {
            'parent.died': 'doomed',
            // A starting child cuts the drain of its grandparent short (fact 5).
            'child.started': { target: 'alone', actions: 'sendParentAway' },
          },
        },
        alone: { description: 'Runs without a parent.' },
        doomed: {
          description: 'Its parent exited too early (fact 4). It serves until its next call to the parent.',
          meta: { nature: { event: 'envoy.called-parent', withinMs: parentCallMs } },
          on: {
            'envoy.called-parent': '#envoy.calling a dead parent.serving',
            // It handles the child's request, and then calls the parent.
            'child.started': { target: '#envoy.calling a dead parent.serving', actions: 'giveUpAdmin' },
            'signal.sent': [
              { guard: 'isKill', target: '#envoy.killed' },
              { guard: 'isTerm', target: '#envoy.calling a dead parent.serving' },
            ],
          },
        },
        superseded: { description: 'Its child serves; its listeners are closed, and its requests finish.' },
      },
    },
    'calling a dead parent': {
      description: 'The main thread is blocked and handles neither its admin interface nor SIGTERM.',
      after: { tenTries: 'aborted' },
      initial: 'alone',
      states: {
        alone: { description: 'It never served.' },
        serving: { description: 'Its workers still serve.' },
      },
    },
    ending: {
      description: 'Received the order to exit. Its main loop has ended, and with it its handler of SIGUSR1.',
      meta: { nature: { event: 'envoy.ended', withinMs: exitMs }, mayHang: true },
      on: {
        'envoy.ended': 'exited',
        'envoy.hung': 'hanging',
        'signal.sent': [
          { guard: 'isKill', target: 'killed' },
          { guard: 'isReopen', target: 'ended by SIGUSR1' },
        ],
      },
    },
    hanging: { description: 'Does not exit on request. SIGKILL ends it.' },
    killed: {
      description: 'The operating system terminates it.',
      meta: { nature: { event: 'envoy.ended', withinMs: killMs } },
      on: { 'envoy.ended': 'reaped', 'signal.sent': {}, 'envoy.crashed': {} },
    },
    exited: { type: 'final', entry: { type: 'leave', params: { end: cleanExit } } },
    reaped: { type: 'final', entry: { type: 'leave', params: { end: endBySignal('SIGKILL') } } },
    terminated: { type: 'final', entry: { type: 'leave', params: { end: endBySignal('SIGTERM') } } },
    'ended by SIGUSR1': { type: 'final', entry: { type: 'leave', params: { end: endBySignal('SIGUSR1') } } },
    crashed: { type: 'final', entry: { type: 'leave', params: { end: endBySignal('SIGSEGV') } } },
    aborted: { type: 'final', entry: { type: 'leave', params: { end: endBySignal('SIGABRT') } } },
    refused: {
      type: 'final',
      entry: { type: 'leave', params: { end: failedExit('previous envoy process is still initializing', true) } },
    },
    'without an address': {
      type: 'final',
      entry: { type: 'leave', params: { end: failedExit('unable to bind domain socket', false) } },
    },
    misconfigured: {
      type: 'final',
      entry: { type: 'leave', params: { end: failedExit('error initializing config', false) } },
    },
  },
});
