/**
 * A bug in a copy of the supervisor, for the debugger to find: after a hot restart it skips an epoch number. Envoy finds its parent by that number,
 * so every later hot restart fails.
 */
import { enqueueActions } from 'xstate';
import { newestOf } from '../../machines/agent/envoy/epoch-record.ts';
import { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { traceFile } from '../../src/runtime/trace/trace-file.ts';
import { randomAgent } from './random-effects.ts';
import { run } from './random-run.ts';
import type { Schedule } from './random-schedule.ts';

const { startEpoch } = supervisorMachine.implementations.actions;

const skippingSupervisor = supervisorMachine.provide({
  actions: {
    startEpoch: enqueueActions(({ context, enqueue }) => {
      const newest = newestOf(context.epochs);
      // Counts an epoch that was hot restarted twice: it treats `epoch-1` as number 2.
      if (newest !== undefined && newest.epoch > 0 && newest.name === `epoch-${newest.epoch}`) {
        enqueue.assign({ epochs: [...context.epochs.slice(0, -1), { ...newest, epoch: newest.epoch + 1 }] });
      }
      enqueue(startEpoch as never);
    }),
  },
});

/** The first change of a certificate succeeds, the second one triggers the bug. */
const certificateChangedTwice: Schedule = {
  settings: 'short times',
  startConditions: 'in order',
  durationSeed: 0,
  steps: [
    { gap: { ms: 5_000 }, scheduledEvent: { kind: 'certificate' } },
    { gap: { ms: 20_000 }, scheduledEvent: { kind: 'certificate' } },
    { gap: { ms: 20_000 }, scheduledEvent: { kind: 'ready?' } },
  ],
  ending: 'in trouble',
};

/** Writes the trace of the agent with the skipping supervisor whose certificate changes twice, in virtual time. */
export function writeSkippedEpochTrace(path: string): void {
  const agent = randomAgent({ supervisor: skippingSupervisor });
  // Without invariants, because the first violation would end the run.
  run(certificateChangedTwice, { agent, invariants: [], sink: traceFile(path) });
}
