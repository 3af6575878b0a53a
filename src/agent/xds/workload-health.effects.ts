import { fromPromise } from 'xstate';
import { type HealthProbeResult, workloadHealthMachine } from '../../../machines/agent/xds/workload-health.machine.ts';

export function workloadHealthWithEffects(probeWorkload: (stopSignal: AbortSignal) => Promise<string>) {
  return workloadHealthMachine.provide({
    actors: {
      probeWorkload: fromPromise<HealthProbeResult, { timeoutMs: number }>(async ({ signal }) => ({
        reason: await probeWorkload(signal),
      })),
    },
  });
}
