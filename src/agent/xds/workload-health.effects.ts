/** Effects of the chart `workload-health`. */
import { fromPromise } from 'xstate';
import { type HealthProbeResult, workloadHealthMachine } from '../../../machines/agent/xds/workload-health.machine.ts';

/** @param askWorkload why the workload cannot serve; empty if it can */
export function workloadHealthWithEffects(askWorkload: (stopped: AbortSignal) => Promise<string>) {
  return workloadHealthMachine.provide({
    actors: {
      probeWorkload: fromPromise<HealthProbeResult, { timeoutMs: number }>(async ({ signal }) => ({
        reason: await askWorkload(signal),
      })),
    },
  });
}
