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

/** `roots` are received with a certificate or from the control plane. */
export type SecretSource = 'authority' | 'files' | 'roots';

export interface SecretInput {
  name: string;
  source: SecretSource;
  /** Empty if no directory is watched. */
  directory: string;
  number: number;
  grace: RenewalGrace;
  /** The bundle is also added to roots in files. */
  parts: RootParts;
}

type CallerCredential = 'token' | 'certificate';

interface SecretContext extends SecretInput {
  version: string;
  endsAtMs: number | null;
  obtainedAtMs: number;
  renewAtMs: number;
  /** Hash of the current version's root; empty if unknown. */
  root: string;
  tainted: readonly string[];
  /** Random, from 0 to 1; drawn once per version. */
  draw: number;
  nowMs: number;
  credential: CallerCredential;
  failures: number;
  pauseMs: number;
}

export interface ObtainOrder {
  name: string;
  source: SecretSource;
  credential: CallerCredential;
  /** The certificate of this version is the credential. */
  version: string;
  parts: RootParts;
}

export type ObtainResult = { atMs: number; draw: number } & (
  | {
      outcome: 'obtained';
      version: string;
      authorities: string;
      root: string;
      serialNumber: string;
      endsAtMs: number | null;
    }
  /** `unknown`: the authority did not accept the credential, could not verify it, or received none. */
  | { outcome: 'refused'; reason: string; code?: string; unknown: boolean; pushbackMs: number }
);

type ObtainedResult = ObtainResult & { outcome: 'obtained' };
type RefusedResult = ObtainResult & { outcome: 'refused' };

/** A call of the authority takes at most 10 s. */
const obtainLimitMs = 30_000;
/** Files are replaced one after the other (FILE_DEBOUNCE_DURATION). */
const settleMs = 100;
const clockLimitMs = 10_000;
/** Authorities date certificates back by two minutes. */
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
    /** Verifies that a certificate matches its key, leads to its roots and has not expired. The result is stored in memory under its version. */
    obtain: promiseEffect<ObtainResult, ObtainOrder>('obtain'),
    readClock: promiseEffect<{ atMs: number }, undefined>('readClock'),
    /** Completes after a step of the wall clock in either direction, because the timers were set by the earlier time. */
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
    /** The authority no longer accepts the token, but may accept the current certificate until it expires. */
    canUseCertificate: ({ context }, result: ObtainResult) =>
      result.outcome === 'refused' &&
      result.unknown &&
      context.credential === 'token' &&
      context.source === 'authority' &&
      context.version !== '' &&
      context.endsAtMs !== null &&
      context.endsAtMs > result.atMs,
    hasExpired: ({ context: { endsAtMs } }, { atMs }: ObtainResult) => endsAtMs !== null && endsAtMs <= atMs,
    /** The renewal is also due if the clock was set back: by this clock, the certificate may not be valid yet. */
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
    recordObtained: assign(({ context }, { version, root, endsAtMs, atMs, draw }: ObtainedResult) => ({
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
        { version, authorities, root, serialNumber, endsAtMs }: ObtainedResult,
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
    recordFailure: assign(
      ({ context }, { atMs, draw, pushbackMs }: Pick<RefusedResult, 'atMs' | 'draw' | 'pushbackMs'>) => {
        const failures = Math.min(context.failures + 1, maxFailures);
        const remainingMs = context.endsAtMs === null ? 0 : Math.max(0, context.endsAtMs - atMs);
        return {
          failures,
          nowMs: atMs,
          pauseMs:
            context.source === 'authority'
              ? pauseMs({ failures, draw, leftMs: remainingMs, pushbackMs })
              : filesPauseMs(failures),
        };
      },
    ),
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
    /** Resets the backoff, which failures while the certificate was valid may have lengthened. */
    clearExpired: assign({ version: '', root: '', endsAtMs: null, failures: 0 }),
    reportExpired: sendParent(({ context: { name } }): SecretExpired => ({ type: 'secret.expired', name })),
    useCertificate: assign({ credential: 'certificate' }),
    useTokenNext: assign({ credential: 'token' }),
    recordTime: assign({ nowMs: (_, { atMs }: { atMs: number }) => atMs }),
  },
});

function clearResult({ nowMs }: SecretContext) {
  return { atMs: nowMs, draw: 0.5, pushbackMs: 0 };
}

/** Obtains a secret again before its expiry or when its source changes. */
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
    credential: 'token',
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
      description: 'Discards the previous request.',
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
        input: ({ context: { name, source, credential, version, parts } }) => ({
          name,
          source,
          credential,
          version,
          parts,
        }),
        onDone: [
          {
            guard: { type: 'isObtained', params: ({ event }) => event.output },
            target: 'valid',
            actions: [
              { type: 'recordObtained', params: ({ event }) => event.output as ObtainedResult },
              { type: 'reportObtained', params: ({ event }) => event.output as ObtainedResult },
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
              { type: 'recordFailure', params: ({ event }) => event.output as RefusedResult },
              { type: 'reportUnavailable', params: ({ event }) => event.output as RefusedResult },
              'reportExpired',
            ],
            description: 'An expired certificate is neither served nor used to authenticate.',
          },
          {
            target: 'backing off',
            actions: [
              { type: 'recordFailure', params: ({ event }) => event.output as RefusedResult },
              { type: 'reportUnavailable', params: ({ event }) => event.output as RefusedResult },
            ],
          },
        ],
        onError: {
          description: 'An internal error of the agent.',
          target: 'backing off',
          actions: [
            { type: 'recordFailure', params: ({ context }) => clearResult(context) },
            { type: 'reportUnavailable', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
          ],
        },
      },
      after: {
        obtainLimit: {
          target: 'backing off',
          actions: [
            { type: 'recordFailure', params: ({ context }) => clearResult(context) },
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
          description: 'Not due for renewal. The clock is read every hour and after each step.',
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
            'The root of the certificate is tainted. Renews after a random delay, so that workloads do not renew at the same time.',
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
      description: 'The files of the secret are changing.',
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
        onError: { description: 'The pause continues.' },
      },
      after: { pause: 'obtaining' },
    },
  },
});
