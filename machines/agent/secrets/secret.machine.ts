import { assign, enqueueActions, sendParent, setup } from 'xstate';
import { promiseEffect, reasonOf } from '../../effect.ts';
import { directoryWatchMachine } from '../files/directory-watch.machine.ts';
import type { WatchedFilesChanged } from '../protocol.ts';
import type {
  RootParts,
  SecretExpired,
  SecretObtained,
  SecretRefresh,
  SecretTaint,
  SecretUnavailable,
} from '../secrets-protocol.ts';
import { noLane } from '../timeline.ts';
import {
  filesPauseMs,
  maxFailures,
  pauseMs,
  type RenewalGrace,
  renewalAtMs,
  taintedRenewalMs,
  waitMs,
} from './secret-pace.ts';

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
  grace: RenewalGrace;
  /** Roots that the secret is made of; also for files of roots. */
  parts: RootParts;
}

/** What the caller of an authority shows to say who it is. */
type CallerCredential = 'token' | 'certificate';

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
  shown: CallerCredential;
  /** Failures in a row. */
  failures: number;
  /** Until the next try, after a failure. */
  pauseMs: number;
}

export interface ObtainOrder {
  name: string;
  source: SecretSource;
  shown: CallerCredential;
  /** What is in force: whose certificate is shown. */
  version: string;
  parts: RootParts;
}

/** Each answer has the time at which it was given, and a number from 0 to 1 drawn for it. */
export type ObtainResult = { atMs: number; draw: number } & (
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

type Obtained = ObtainResult & { outcome: 'obtained' };
type Refused = ObtainResult & { outcome: 'refused' };

/** A call of the authority has ten seconds, a file system answers at once or not at all. */
const obtainLimitMs = 30_000;
/** Files are replaced one by one (FILE_DEBOUNCE_DURATION). */
const settleMs = 100;
const clockLimitMs = 10_000;
/** Authorities date certificates two minutes back. */
const maxClockStepMs = 120_000;

const secretSetup = setup({
  types: {
    context: {} as SecretContext,
    input: {} as SecretInput,
    events: {} as SecretRefresh | SecretTaint | WatchedFilesChanged,
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
    obtain: promiseEffect<ObtainResult, ObtainOrder>('obtain'),
    readClock: promiseEffect<{ atMs: number }, undefined>('readClock'),
    /** Ends after a step of the wall clock, in either direction: dates come sooner or later than timers were set for. */
    awaitClockStep: promiseEffect<void, undefined>('awaitClockStep'),
    directory: directoryWatchMachine,
  },
  delays: {
    obtainLimit: obtainLimitMs,
    debounce: settleMs,
    clockLimit: clockLimitMs,
    clockCheck: ({ context }) => waitMs(context.renewAtMs, context.nowMs),
    pause: ({ context }) => context.pauseMs,
    renewalDelay: ({ context: { endsAtMs, nowMs, draw } }) =>
      taintedRenewalMs(endsAtMs === null ? 0 : endsAtMs - nowMs, draw),
  },
  guards: {
    hasNoRoots: ({ context: { source, parts } }) =>
      source === 'roots' && parts.authorities === '' && parts.bundle === '',
    isObtained: (_, { outcome }: ObtainResult) => outcome === 'obtained',
    /** The token is not believed any more; the certificate in force may be, as long as it lasts. */
    canUseCertificate: ({ context }, answer: ObtainResult) =>
      answer.outcome === 'refused' &&
      answer.unknown &&
      context.shown === 'token' &&
      context.source === 'authority' &&
      context.version !== '' &&
      context.endsAtMs !== null &&
      context.endsAtMs > answer.atMs,
    hasExpired: ({ context: { endsAtMs } }, { atMs }: ObtainResult) => endsAtMs !== null && endsAtMs <= atMs,
    /** Its time has come, or the clock was set back to before it was obtained: by this clock it may not be valid yet. */
    isRenewalDue: ({ context: { renewAtMs, obtainedAtMs } }, { atMs }: { atMs: number }) =>
      atMs >= renewAtMs || atMs < obtainedAtMs - maxClockStepMs,
    hasExpiry: ({ context }) => context.endsAtMs !== null,
    isTainted: ({ context: { root, tainted } }) => tainted.includes(root),
    isTaintedBy: ({ context: { root } }, { roots }: SecretTaint) => roots.includes(root),
  },
  actions: {
    watchFiles: enqueueActions(({ context: { directory, number }, enqueue }) => {
      if (directory !== '') enqueue.spawnChild('directory', { id: `secret-files-${number}`, input: { directory } });
    }),
    recordTainted: assign({ tainted: (_, { roots }: SecretTaint) => roots }),
    recordParts: assign({ parts: (_, { parts }: SecretRefresh) => parts }),
    recordObtained: assign(({ context }, { version, root, endsAtMs, atMs, draw }: Obtained) => ({
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
    reportObtained: sendParent(
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
    recordFailure: assign(({ context }, { atMs, draw, pushbackMs }: Pick<Refused, 'atMs' | 'draw' | 'pushbackMs'>) => {
      const failures = Math.min(context.failures + 1, maxFailures);
      const leftMs = context.endsAtMs === null ? 0 : Math.max(0, context.endsAtMs - atMs);
      return {
        failures,
        nowMs: atMs,
        pauseMs:
          context.source === 'authority' ? pauseMs({ failures, draw, leftMs, pushbackMs }) : filesPauseMs(failures),
      };
    }),
    reportUnavailable: sendParent(
      ({ context }, { reason, code }: { reason: string; code?: string }): SecretUnavailable => ({
        type: 'secret.unavailable',
        name: context.name,
        reason,
        ...(code !== undefined && { code }),
        attempts: context.failures,
        pauseMs: context.pauseMs,
      }),
    ),
    clearExpired: assign({ version: '', root: '', endsAtMs: null }),
    reportExpired: sendParent(({ context: { name } }): SecretExpired => ({ type: 'secret.expired', name })),
    useCertificate: assign({ shown: 'certificate' }),
    useTokenNext: assign({ shown: 'token' }),
    recordTime: assign({ nowMs: (_, { atMs }: { atMs: number }) => atMs }),
  },
});

/** A failure that nobody answered: its time is not known, and nothing was drawn for it. */
function withoutResult({ nowMs }: SecretContext) {
  return { atMs: nowMs, draw: 0.5, pushbackMs: 0 };
}

/**
 * One secret: obtained, in force, and obtained again before it ends or when what it is made of changes. What is in force stays
 * so however often a try fails, until it has ended.
 */
export const secretMachine = secretSetup.createMachine({
  id: 'secret',
  description: 'A certificate with its key, or roots, that Envoy requests by name.',
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
    'files.changed': '.debouncing',
    'secret.taint': {
      actions: { type: 'recordTainted', params: ({ event }) => event },
      description: 'Later certificates are checked against the tainted roots.',
    },
    'secret.refresh': {
      target: '.obtaining',
      actions: { type: 'recordParts', params: ({ event }) => event },
      description: 'The previous request is discarded.',
    },
  },
  initial: 'deciding',
  states: {
    deciding: { always: [{ guard: 'hasNoRoots', target: 'waiting for roots' }, 'obtaining'] },
    'waiting for roots': {
      meta: { waitsFor: 'the first certificate, which includes roots, or roots of the control plane' },
      description: 'No roots are known yet.',
      on: { 'files.changed': {} },
    },
    obtaining: {
      description: 'Requests a certificate from the authority (with the token first), reads files, or combines roots.',
      exit: 'useTokenNext',
      invoke: {
        id: 'obtain',
        src: 'obtain',
        input: ({ context: { name, source, shown, version, parts } }) => ({ name, source, shown, version, parts }),
        onDone: [
          {
            guard: { type: 'isObtained', params: ({ event }) => event.output },
            target: 'valid',
            actions: [
              { type: 'recordObtained', params: ({ event }) => event.output as Obtained },
              { type: 'reportObtained', params: ({ event }) => event.output as Obtained },
            ],
          },
          {
            guard: { type: 'canUseCertificate', params: ({ event }) => event.output },
            target: 'obtaining',
            reenter: true,
            actions: 'useCertificate',
            description: 'The token is rejected or missing: authenticate with the current certificate.',
          },
          {
            guard: { type: 'hasExpired', params: ({ event }) => event.output },
            target: 'backing off',
            actions: [
              'clearExpired',
              { type: 'recordFailure', params: ({ event }) => event.output as Refused },
              { type: 'reportUnavailable', params: ({ event }) => event.output as Refused },
              'reportExpired',
            ],
            description: 'An expired certificate is neither served nor used to authenticate.',
          },
          {
            target: 'backing off',
            actions: [
              { type: 'recordFailure', params: ({ event }) => event.output as Refused },
              { type: 'reportUnavailable', params: ({ event }) => event.output as Refused },
            ],
          },
        ],
        onError: {
          description: 'An error of the agent.',
          target: 'backing off',
          actions: [
            { type: 'recordFailure', params: ({ context }) => withoutResult(context) },
            { type: 'reportUnavailable', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
          ],
        },
      },
      after: {
        obtainLimit: {
          target: 'backing off',
          actions: [
            { type: 'recordFailure', params: ({ context }) => withoutResult(context) },
            { type: 'reportUnavailable', params: { reason: `no response within ${obtainLimitMs} ms` } },
          ],
        },
      },
    },
    valid: {
      description: 'Envoy has the secret, or receives it on request.',
      initial: 'choosing',
      on: {
        'secret.taint': [
          {
            guard: { type: 'isTaintedBy', params: ({ event }) => event },
            target: '.renewal scheduled',
            actions: { type: 'recordTainted', params: ({ event }) => event },
          },
          { actions: { type: 'recordTainted', params: ({ event }) => event } },
        ],
      },
      states: {
        choosing: {
          always: [
            { guard: 'isTainted', target: 'renewal scheduled' },
            { guard: 'hasExpiry', target: 'waiting for renewal' },
            'no expiry',
          ],
        },
        'no expiry': { meta: { waitsFor: 'a change of its source: normal operation' } },
        'waiting for renewal': {
          description: 'Not due for renewal. The clock is read each hour and after each step.',
          invoke: {
            id: 'step',
            src: 'awaitClockStep',
            onDone: 'checking clock',
            onError: { description: 'The clock is still read each hour.' },
          },
          after: { clockCheck: 'checking clock' },
        },
        'renewal scheduled': {
          description:
            'Its root is tainted. Renews after a random delay, so that workloads do not renew at the same time.',
          after: { renewalDelay: '#secret.obtaining' },
        },
        'checking clock': {
          invoke: {
            id: 'clock',
            src: 'readClock',
            onDone: [
              { guard: { type: 'isRenewalDue', params: ({ event }) => event.output }, target: '#secret.obtaining' },
              { target: 'waiting for renewal', actions: { type: 'recordTime', params: ({ event }) => event.output } },
            ],
            onError: '#secret.obtaining',
          },
          after: { clockLimit: '#secret.obtaining' },
        },
      },
    },
    debouncing: {
      description: 'Its files are changing.',
      after: { debounce: 'obtaining' },
      on: { 'files.changed': {} },
    },
    'backing off': {
      description: 'The last attempt failed. The previous version is still served.',
      invoke: {
        id: 'step',
        src: 'awaitClockStep',
        onDone: {
          target: 'obtaining',
          description: 'The cause of the failure or the remaining validity may have changed.',
        },
        onError: { description: 'The pause still ends.' },
      },
      after: { pause: 'obtaining' },
    },
  },
});
