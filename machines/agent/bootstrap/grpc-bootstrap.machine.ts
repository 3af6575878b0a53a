import { assign, sendParent, sendTo, setup } from 'xstate';
import { promiseEffect, reasonOf } from '../../effect.ts';
import type { GrpcBootstrapFailed, GrpcBootstrapWritten } from '../grpc-bootstrap-protocol.ts';
import { peer } from '../peers.ts';
import { grpcBootstrapTimeline } from '../timeline.ts';

interface GrpcBootstrapContext {
  pauseMs: number;
}

export type BootstrapWriteOutcome = { file: string } | { reason: string };

/** A write to a hanging file system may never return. */
const writeLimitMs = 10_000;
const minPauseMs = 500;
const maxPauseMs = 30_000;

/**
 * The bootstrap file for gRPC programs of the pod is written when the certificates are on disk, because gRPC reads them once the file exists. The
 * workload is not ready before.
 */
export const grpcBootstrapMachine = setup({
  types: {
    context: {} as GrpcBootstrapContext,
    events: {} as { type: 'none' },
    children: {} as { write: 'writeGrpcBootstrap' },
  },
  actors: {
    writeGrpcBootstrap: promiseEffect<BootstrapWriteOutcome, undefined>('writeGrpcBootstrap'),
  },
  delays: { writeLimit: writeLimitMs, pause: ({ context }) => context.pauseMs },
  guards: { isWritten: (_, writeOutcome: BootstrapWriteOutcome) => 'file' in writeOutcome },
  actions: {
    lengthenPause: assign({
      pauseMs: ({ context }) => Math.min(maxPauseMs, Math.max(minPauseMs, context.pauseMs * 2)),
    }),
    notifyStatus: sendTo(
      peer('status'),
      (_, writeOutcome: BootstrapWriteOutcome): GrpcBootstrapWritten => ({
        type: 'grpc-bootstrap.written',
        file: 'file' in writeOutcome ? writeOutcome.file : '',
      }),
    ),
    reportFailed: sendParent(
      ({ context }, { reason }: { reason: string }): GrpcBootstrapFailed => ({
        ...{ type: 'grpc-bootstrap.failed', reason, pauseMs: context.pauseMs },
      }),
    ),
  },
}).createMachine({
  id: 'grpc-bootstrap',
  description: 'The bootstrap file of gRPC programs without a proxy.',
  meta: { timeline: grpcBootstrapTimeline },
  context: { pauseMs: 0 },
  initial: 'writing',
  states: {
    writing: {
      description: 'The certificates are on disk, the bootstrap file is not.',
      invoke: {
        id: 'write',
        src: 'writeGrpcBootstrap',
        onDone: [
          {
            guard: { type: 'isWritten', params: ({ event }) => event.output },
            target: 'written',
            actions: { type: 'notifyStatus', params: ({ event }) => event.output },
          },
          {
            target: 'backing off',
            actions: [
              'lengthenPause',
              {
                type: 'reportFailed',
                params: ({ event: { output } }) => ({ reason: 'reason' in output ? output.reason : '' }),
              },
            ],
          },
        ],
        onError: {
          target: 'backing off',
          actions: [
            'lengthenPause',
            { type: 'reportFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
          ],
        },
      },
      after: {
        writeLimit: {
          target: 'backing off',
          actions: [
            'lengthenPause',
            { type: 'reportFailed', params: { reason: `gRPC bootstrap file not written within ${writeLimitMs} ms` } },
          ],
        },
      },
    },
    'backing off': {
      description: 'The last attempt failed.',
      after: { pause: 'writing' },
    },
    written: {
      meta: { waitsFor: 'nothing' },
      description: 'gRPC programs can start. Certificates change in their own files.',
    },
  },
});
