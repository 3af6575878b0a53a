import { assign, enqueueActions, sendParent, setup } from 'xstate';
import { promiseEffect, reasonOf } from '../../effect.ts';
import { directoryWatchMachine } from '../files/directory-watch.machine.ts';
import type { FilesChanged } from '../protocol.ts';
import type {
  RootParts,
  SecretEnded,
  SecretLacking,
  SecretObtained,
  SecretRefresh,
  SecretTaint,
} from '../secrets-protocol.ts';
import { noLane } from '../timeline.ts';
import { filesPauseMs, type Grace, mostFailures, pauseMs, renewalAtMs, turnMs, waitMs } from './secret-pace.ts';

/**
 * Where it comes from: `authority`, which signs a certificate for a key of ours; `files`; `roots`, which came with a
 * certificate or from the control plane.
 */
export type SecretSource = 'authority' | 'files' | 'roots';

export interface SecretInput {
  /** Name by which Envoy asks for the secret. */
  name: string;
  source: SecretSource;
  /** Directory of the secret's files; empty: none is watched. */
  directory: string;
  /** Number of the secret, by which the actor that watches its directory is named. */
  number: number;
  grace: Grace;
  /** Roots that the secret is made of; also for files of roots. */
  parts: RootParts;
}

/** What the caller of an authority shows to say who it is. */
type Shown = 'token' | 'certificate';

interface SecretContext extends SecretInput {
  /** What is in force; empty: nothing. */
  version: string;
  /** When what is in force ends; null: it does not end. */
  endsAtMs: number | null;
  /** When what is in force was obtained, by the wall clock of then. */
  obtainedAtMs: number;
  renewAtMs: number;
  /** Hash of the root that what is in force leads to; empty: none is known. */
  root: string;
  /** Hashes of roots that this must not lead to. */
  tainted: readonly string[];
  /** A random number from 0 to 1, drawn once for what is in force. */
  draw: number;
  /** When the clock was looked at last. */
  nowMs: number;
  /** What is shown to the authority at the next call. */
  shown: Shown;
  /** Failures in a row. */
  failures: number;
  /** Until the next try, after a failure. */
  pauseMs: number;
}

export interface ObtainOrder {
  name: string;
  source: SecretSource;
  shown: Shown;
  /** What is in force: whose certificate is shown. */
  version: string;
  parts: RootParts;
}

/** Each answer has the time at which it was given, and a number from 0 to 1 drawn for it. */
export type ObtainAnswer = { atMs: number; draw: number } & (
  | {
      outcome: 'obtained';
      version: string;
      authorities: string;
      root: string;
      serialNumber: string;
      endsAtMs: number | null;
    }
  /** `unknown`: the authority did not believe what was shown, could not find out whose it is, or there was nothing to show. */
  | { outcome: 'refused'; reason: string; code?: string; unknown: boolean; pushbackMs: number }
);

type Obtained = ObtainAnswer & { outcome: 'obtained' };
type Refused = ObtainAnswer & { outcome: 'refused' };

/** A call of the authority has ten seconds, a file system answers at once or not at all. */
const obtainLimitMs = 30_000;
/** Files are replaced one by one (FILE_DEBOUNCE_DURATION). */
const settleMs = 100;
const clockLimitMs = 10_000;
/** Authorities date certificates two minutes back. */
const toleratedClockStepMs = 120_000;

const secretSetup = setup({
  types: {
    context: {} as SecretContext,
    input: {} as SecretInput,
    events: {} as SecretRefresh | SecretTaint | FilesChanged,
    children: {} as {
      obtain: 'obtain';
      clock: 'readClock';
      step: 'awaitClockStep';
      [files: `secret-files-${number}`]: 'directory';
    },
  },
  actors: {
    /**
     * Makes a key and has it signed, or reads files, or puts roots together; and keeps what it got in memory under its version.
     * What does not fit its key, does not lead to its roots or has ended is no answer. Each call is a connection of its own.
     */
    obtain: promiseEffect<ObtainAnswer, ObtainOrder>('obtain'),
    readClock: promiseEffect<{ atMs: number }, undefined>('readClock'),
    /** Ends after a step of the wall clock, in either direction: dates come sooner or later than timers were set for. */
    awaitClockStep: promiseEffect<void, undefined>('awaitClockStep'),
    directory: directoryWatchMachine,
  },
  delays: {
    obtainLimit: obtainLimitMs,
    settle: settleMs,
    clockLimit: clockLimitMs,
    untilLook: ({ context }) => waitMs(context.renewAtMs, context.nowMs),
    pause: ({ context }) => context.pauseMs,
    turn: ({ context: { endsAtMs, nowMs, draw } }) => turnMs(endsAtMs === null ? 0 : endsAtMs - nowMs, draw),
  },
  guards: {
    hasNothingToBeMadeOf: ({ context: { source, parts } }) =>
      source === 'roots' && parts.authorities === '' && parts.bundle === '',
    isObtained: (_, { outcome }: ObtainAnswer) => outcome === 'obtained',
    /** The token is not believed any more; the certificate in force may be, as long as it lasts. */
    mayShowItsCertificate: ({ context }, answer: ObtainAnswer) =>
      answer.outcome === 'refused' &&
      answer.unknown &&
      context.shown === 'token' &&
      context.source === 'authority' &&
      context.version !== '' &&
      context.endsAtMs !== null &&
      context.endsAtMs > answer.atMs,
    hasEndedMeanwhile: ({ context: { endsAtMs } }, { atMs }: ObtainAnswer) => endsAtMs !== null && endsAtMs <= atMs,
    /** Its time has come, or the clock was set back to before it was obtained: by this clock it may not be valid yet. */
    isDue: ({ context: { renewAtMs, obtainedAtMs } }, { atMs }: { atMs: number }) =>
      atMs >= renewAtMs || atMs < obtainedAtMs - toleratedClockStepMs,
    hasEnd: ({ context }) => context.endsAtMs !== null,
    isTainted: ({ context: { root, tainted } }) => tainted.includes(root),
    isTaintedBy: ({ context: { root } }, { roots }: SecretTaint) => roots.includes(root),
  },
  actions: {
    watchFiles: enqueueActions(({ context: { directory, number }, enqueue }) => {
      if (directory !== '') enqueue.spawnChild('directory', { id: `secret-files-${number}`, input: { directory } });
    }),
    rememberTainted: assign({ tainted: (_, { roots }: SecretTaint) => roots }),
    rememberParts: assign({ parts: (_, { parts }: SecretRefresh) => parts }),
    rememberObtained: assign(({ context }, { version, root, endsAtMs, atMs, draw }: Obtained) => ({
      version,
      root,
      draw,
      endsAtMs,
      nowMs: atMs,
      obtainedAtMs: atMs,
      renewAtMs: endsAtMs === null ? 0 : renewalAtMs({ fromMs: atMs, endsAtMs }, context.grace, draw),
      failures: 0,
      pauseMs: 0,
    })),
    tellObtained: sendParent(
      (
        { context: { name, parts } },
        { version, authorities, root, serialNumber, endsAtMs }: Obtained,
      ): SecretObtained => ({
        type: 'secret.obtained',
        name,
        version,
        authorities,
        root,
        serialNumber,
        parts,
        endsAtMs,
      }),
    ),
    rememberFailure: assign(
      ({ context }, { atMs, draw, pushbackMs }: Pick<Refused, 'atMs' | 'draw' | 'pushbackMs'>) => {
        const failures = Math.min(context.failures + 1, mostFailures);
        const leftMs = context.endsAtMs === null ? 0 : Math.max(0, context.endsAtMs - atMs);
        return {
          failures,
          nowMs: atMs,
          pauseMs:
            context.source === 'authority' ? pauseMs({ failures, draw, leftMs, pushbackMs }) : filesPauseMs(failures),
        };
      },
    ),
    tellLacking: sendParent(
      ({ context }, { reason, code }: { reason: string; code?: string }): SecretLacking => ({
        type: 'secret.lacking',
        name: context.name,
        reason,
        ...(code !== undefined && { code }),
        attempts: context.failures,
        pauseMs: context.pauseMs,
      }),
    ),
    forgetWhatHasEnded: assign({ version: '', root: '', endsAtMs: null }),
    tellEnded: sendParent(({ context: { name } }): SecretEnded => ({ type: 'secret.ended', name })),
    showTheCertificate: assign({ shown: 'certificate' }),
    showTheTokenNext: assign({ shown: 'token' }),
    noteTime: assign({ nowMs: (_, { atMs }: { atMs: number }) => atMs }),
  },
});

/** A failure that nobody answered: its time is not known, and nothing was drawn for it. */
function unanswered({ nowMs }: SecretContext) {
  return { atMs: nowMs, draw: 0.5, pushbackMs: 0 };
}

/**
 * One secret: obtained, in force, and obtained again before it ends or when what it is made of changes. What is in force stays
 * so however often a try fails, until it has ended.
 */
export const secretMachine = secretSetup.createMachine({
  id: 'secret',
  description: 'A certificate with its key, or roots, that Envoy asks for by name.',
  meta: { timeline: noLane },
  context: ({ input }) => ({
    ...input,
    version: '',
    endsAtMs: null,
    obtainedAtMs: 0,
    renewAtMs: 0,
    root: '',
    tainted: [],
    draw: 0,
    nowMs: 0,
    shown: 'token',
    failures: 0,
    pauseMs: 0,
  }),
  entry: 'watchFiles',
  on: {
    'files.changed': '.settling',
    'secret.taint': {
      actions: { type: 'rememberTainted', params: ({ event }) => event },
      description: 'What is obtained from now on is held against it.',
    },
    'secret.refresh': {
      target: '.asking',
      actions: { type: 'rememberParts', params: ({ event }) => event },
      description: 'What was asked before is of no account any more.',
    },
  },
  initial: 'deciding',
  states: {
    deciding: { always: [{ guard: 'hasNothingToBeMadeOf', target: 'waiting for roots' }, 'asking'] },
    'waiting for roots': {
      meta: { waitsFor: 'the first certificate, with which roots come, or roots of the control plane' },
      description: 'Nobody has said yet whom to trust.',
      on: { 'files.changed': {} },
    },
    asking: {
      description: 'The authority is asked, by a token first; or files are read; or roots are put together.',
      exit: 'showTheTokenNext',
      invoke: {
        id: 'obtain',
        src: 'obtain',
        input: ({ context: { name, source, shown, version, parts } }) => ({ name, source, shown, version, parts }),
        onDone: [
          {
            guard: { type: 'isObtained', params: ({ event }) => event.output },
            target: 'in force',
            actions: [
              { type: 'rememberObtained', params: ({ event }) => event.output as Obtained },
              { type: 'tellObtained', params: ({ event }) => event.output as Obtained },
            ],
          },
          {
            guard: { type: 'mayShowItsCertificate', params: ({ event }) => event.output },
            target: 'asking',
            reenter: true,
            actions: 'showTheCertificate',
            description: 'The token is not believed, or there is none: the certificate in force says who this is.',
          },
          {
            guard: { type: 'hasEndedMeanwhile', params: ({ event }) => event.output },
            target: 'backing off',
            actions: [
              'forgetWhatHasEnded',
              { type: 'rememberFailure', params: ({ event }) => event.output as Refused },
              { type: 'tellLacking', params: ({ event }) => event.output as Refused },
              'tellEnded',
            ],
            description: 'An expired certificate is neither handed out nor shown to an authority.',
          },
          {
            target: 'backing off',
            actions: [
              { type: 'rememberFailure', params: ({ event }) => event.output as Refused },
              { type: 'tellLacking', params: ({ event }) => event.output as Refused },
            ],
          },
        ],
        onError: {
          description: 'A fault of ours.',
          target: 'backing off',
          actions: [
            { type: 'rememberFailure', params: ({ context }) => unanswered(context) },
            { type: 'tellLacking', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
          ],
        },
      },
      after: {
        obtainLimit: {
          target: 'backing off',
          actions: [
            { type: 'rememberFailure', params: ({ context }) => unanswered(context) },
            { type: 'tellLacking', params: { reason: `no response within ${obtainLimitMs} ms` } },
          ],
        },
      },
    },
    'in force': {
      description: 'Envoy has it, or gets it as soon as it asks.',
      initial: 'beginning',
      on: {
        'secret.taint': [
          {
            guard: { type: 'isTaintedBy', params: ({ event }) => event },
            target: '.waiting for its turn',
            actions: { type: 'rememberTainted', params: ({ event }) => event },
          },
          { actions: { type: 'rememberTainted', params: ({ event }) => event } },
        ],
      },
      states: {
        beginning: {
          always: [
            { guard: 'isTainted', target: 'waiting for its turn' },
            { guard: 'hasEnd', target: 'waiting' },
            'resting',
          ],
        },
        resting: { meta: { waitsFor: 'a change of what it is made of: this is the work' } },
        waiting: {
          description: 'It is not due to be renewed. The clock is looked at each hour, and when it was set.',
          invoke: {
            id: 'step',
            src: 'awaitClockStep',
            onDone: 'looking at the clock',
            onError: { description: 'The clock is looked at each hour all the same.' },
          },
          after: { untilLook: 'looking at the clock' },
        },
        'waiting for its turn': {
          description: 'Its root is tainted: it is renewed now, each workload by a time of its own.',
          after: { turn: '#secret.asking' },
        },
        'looking at the clock': {
          invoke: {
            id: 'clock',
            src: 'readClock',
            onDone: [
              { guard: { type: 'isDue', params: ({ event }) => event.output }, target: '#secret.asking' },
              { target: 'waiting', actions: { type: 'noteTime', params: ({ event }) => event.output } },
            ],
            onError: '#secret.asking',
          },
          after: { clockLimit: '#secret.asking' },
        },
      },
    },
    settling: {
      description: 'A change of its files is under way.',
      after: { settle: 'asking' },
      on: { 'files.changed': {} },
    },
    'backing off': {
      description: 'The last try failed. What was in force before stays so.',
      invoke: {
        id: 'step',
        src: 'awaitClockStep',
        onDone: {
          target: 'asking',
          description: 'What made the last try fail, or the time that is left, may have changed.',
        },
        onError: { description: 'The pause ends all the same.' },
      },
      after: { pause: 'asking' },
    },
  },
});
