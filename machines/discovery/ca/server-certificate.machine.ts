import { sendParent, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import type { FilesChanged } from '../protocol.ts';
import { serverCertificateTimeline } from '../timeline.ts';
import type { CertificateChanged, CertificateRejected, CertificateWatch } from './authority-protocol.ts';

export interface ServerCertificateInput {
  /** Interval of reads without an event, because an event may be missed and an expiry causes none. */
  checkMs: number;
  /** Delay from the first event of a batch to the read: certificate and key are two files. */
  settleMs: number;
}

export type CertificateReading =
  | { outcome: 'taken'; serialNumber: string; endsAt: number }
  /** The current certificate, which is not due for renewal. */
  | { outcome: 'same' }
  | { outcome: 'refused'; reason: string };

/** Certificate of the secure port, from files or signed by the authority, replaced without a restart. */
export const serverCertificateMachine = setup({
  types: {
    context: {} as ServerCertificateInput,
    input: {} as ServerCertificateInput,
    events: {} as CertificateWatch | FilesChanged,
    children: {} as { files: 'watchCertificate'; reading: 'readCertificate' },
  },
  actors: {
    watchCertificate: callbackEffect<{ type: never }, undefined>('watchCertificate'),
    readCertificate: promiseEffect<CertificateReading, undefined>('readCertificate'),
  },
  delays: {
    checkInterval: ({ context }) => context.checkMs,
    debounceTime: ({ context }) => context.settleMs,
  },
  guards: {
    isAccepted: (_, params: CertificateReading) => params.outcome === 'taken',
    isRejected: (_, params: CertificateReading) => params.outcome === 'refused',
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
  description: 'The certificate of the secure port.',
  meta: { timeline: serverCertificateTimeline },
  context: ({ input }) => input,
  initial: 'idle',
  states: {
    idle: {
      description: 'There is no secure port, or the start has not read its certificate yet.',
      meta: { waitsFor: 'certificate.watch, sent when the certificate was read' },
      on: { 'certificate.watch': 'active' },
    },
    active: {
      description: 'The port has a certificate.',
      invoke: {
        id: 'files',
        src: 'watchCertificate',
        onError: {
          description: 'The files are read periodically as well.',
          actions: { type: 'reportRejected', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
        },
      },
      on: { 'certificate.watch': { description: 'The files are watched already.' } },
      initial: 'unchanged',
      states: {
        unchanged: {
          description: 'The files have not changed since they were read.',
          after: { checkInterval: 'reading' },
          on: { 'files.changed': 'debouncing' },
        },
        debouncing: {
          description: 'The files are being written. The delay counts from the first event.',
          after: { debounceTime: 'reading' },
          on: { 'files.changed': { description: 'The pending read includes it.' } },
        },
        reading: {
          description: 'The current certificate is used until a valid one replaces it.',
          meta: { waitsFor: 'reading three files, or a signature' },
          invoke: {
            id: 'reading',
            src: 'readCertificate',
            onDone: [
              {
                guard: { type: 'isAccepted', params: ({ event }) => event.output },
                target: 'unchanged',
                actions: { type: 'reportChanged', params: ({ event }) => event.output },
              },
              {
                guard: { type: 'isRejected', params: ({ event }) => event.output },
                target: 'unchanged',
                actions: { type: 'reportRejected', params: ({ event }) => ({ reason: failureReasonOf(event.output) }) },
              },
              { target: 'unchanged' },
            ],
            onError: {
              target: 'unchanged',
              actions: { type: 'reportRejected', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
            },
          },
          on: { 'files.changed': { description: 'The files are read again.', target: 'debouncing' } },
        },
      },
    },
  },
});

function failureReasonOf(certificateReading: CertificateReading): string {
  return certificateReading.outcome === 'refused' ? certificateReading.reason : '';
}
