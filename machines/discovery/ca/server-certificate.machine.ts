import { sendParent, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import type { FilesChanged } from '../protocol.ts';
import { serverCertificateTimeline } from '../timeline.ts';
import type { CertificateChanged, CertificateRejected, CertificateWatch } from './authority-protocol.ts';

export interface ServerCertificateInput {
  /** How often it is looked at without an event: one may be missed, and a certificate ends without any. */
  checkMs: number;
  /** From the first event of a batch to the reading: a certificate and its key are two files. */
  settleMs: number;
}

export type CertificateReading =
  /** Handshakes from now on show another one. */
  | { outcome: 'taken'; serialNumber: string; endsAt: number }
  /** It is what is shown already, and has time. */
  | { outcome: 'same' }
  /** What there is would not do: a key that does not fit, a chain that does not verify, a time that is over. */
  | { outcome: 'refused'; reason: string };

/**
 * What the port with TLS shows its clients, kept in force without a restart: files that a person replaces, or a certificate
 * that the authority signs. Connections that there are go on with what they have; what is no good changes nothing.
 */
export const serverCertificateMachine = setup({
  types: {
    context: {} as ServerCertificateInput,
    input: {} as ServerCertificateInput,
    events: {} as CertificateWatch | FilesChanged,
    children: {} as { files: 'watchCertificate'; reading: 'readCertificate' },
  },
  actors: {
    /** Watches the files; without any it has nothing to tell. */
    watchCertificate: callbackEffect<{ type: never }, undefined>('watchCertificate'),
    /** Reads the files, or has the authority sign when it is time; what is good is shown from then on. */
    readCertificate: promiseEffect<CertificateReading, undefined>('readCertificate'),
  },
  delays: {
    checkInterval: ({ context }) => context.checkMs,
    settleTime: ({ context }) => context.settleMs,
  },
  guards: {
    isTaken: (_, params: CertificateReading) => params.outcome === 'taken',
    isRefused: (_, params: CertificateReading) => params.outcome === 'refused',
  },
  actions: {
    reportChanged: sendParent((_, params: CertificateReading): CertificateChanged => {
      const { serialNumber, endsAt } = params.outcome === 'taken' ? params : { serialNumber: '', endsAt: 0 };
      return { type: 'certificate.changed', serialNumber, endsAt };
    }),
    reportRejected: sendParent(
      (_, params: { reason: string }): CertificateRejected => ({ type: 'certificate.rejected', reason: params.reason }),
    ),
  },
}).createMachine({
  id: 'server-certificate',
  description: 'The certificate of the port with TLS.',
  meta: { timeline: serverCertificateTimeline },
  context: ({ input }) => input,
  initial: 'idle',
  states: {
    idle: {
      description: 'There is no such port, or the start has not read its certificate yet.',
      meta: { waitsFor: 'certificate.watch, which the start sends when the certificate was read' },
      on: { 'certificate.watch': 'at work' },
    },
    'at work': {
      description: 'There is one, and it is shown.',
      invoke: {
        id: 'files',
        src: 'watchCertificate',
        onError: {
          description: 'The files are looked at on time all the same.',
          actions: { type: 'reportRejected', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
        },
      },
      on: { 'certificate.watch': { description: 'It is watched already.' } },
      initial: 'settled',
      states: {
        settled: {
          description: 'Nothing has happened to the files since they were read.',
          after: { checkInterval: 'reading' },
          on: { 'files.changed': 'settling' },
        },
        settling: {
          description: 'Somebody is writing the files; the delay counts from the first event.',
          after: { settleTime: 'reading' },
          on: { 'files.changed': { description: 'The reading to come sees it.' } },
        },
        reading: {
          description: 'What is shown is shown until there is another that is good.',
          meta: { waitsFor: 'the reading of three files, or a signature' },
          invoke: {
            id: 'reading',
            src: 'readCertificate',
            onDone: [
              {
                guard: { type: 'isTaken', params: ({ event }) => event.output },
                target: 'settled',
                actions: { type: 'reportChanged', params: ({ event }) => event.output },
              },
              {
                guard: { type: 'isRefused', params: ({ event }) => event.output },
                target: 'settled',
                actions: { type: 'reportRejected', params: ({ event }) => ({ reason: reasonIn(event.output) }) },
              },
              { target: 'settled' },
            ],
            onError: {
              target: 'settled',
              actions: { type: 'reportRejected', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
            },
          },
          on: { 'files.changed': { description: 'They are read again.', target: 'settling' } },
        },
      },
    },
  },
});

function reasonIn(reading: CertificateReading): string {
  return reading.outcome === 'refused' ? reading.reason : '';
}
