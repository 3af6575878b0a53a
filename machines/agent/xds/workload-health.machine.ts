import { assign, sendParent, setup } from 'xstate';
import { promiseEffect, reasonOf } from '../../effect.ts';
import { noLane } from '../timeline.ts';
import type { HealthChanged } from '../xds-protocol.ts';

/** Times are in milliseconds. */
export interface ProbeTimes {
  initialDelayMs: number;
  periodMs: number;
  timeoutMs: number;
  /** The reported health changes after this number of consecutive results. */
  successThreshold: number;
  failureThreshold: number;
}

interface WorkloadHealthContext extends ProbeTimes {
  successes: number;
  failures: number;
  reportedHealth: 'nothing' | 'healthy' | 'unhealthy';
}

/** `reason` is empty if the workload is healthy. */
export type HealthProbeResult = { reason: string };

/** The probe of Envoy's readiness has a separate timeout. */
const additionalTimeoutMs = 6_000;

const onFailed = <Params>(params: Params) =>
  [
    {
      guard: 'becomesUnhealthy',
      target: 'waiting',
      actions: ['countFailure', 'recordUnhealthy', { type: 'reportUnhealthy', params }],
    },
    { target: 'waiting', actions: 'countFailure' },
  ] as const;

/** For workloads whose health no kubelet reports to the control plane. */
export const workloadHealthMachine = setup({
  types: {
    context: {} as WorkloadHealthContext,
    input: {} as ProbeTimes,
    children: {} as { probing: 'probeWorkload' },
  },
  actors: {
    /** Probes Envoy's readiness, then the workload within {@link ProbeTimes.timeoutMs}. */
    probeWorkload: promiseEffect<HealthProbeResult, { timeoutMs: number }>('probeWorkload'),
  },
  delays: {
    initialDelay: ({ context }) => context.initialDelayMs,
    period: ({ context }) => context.periodMs,
    probeLimit: ({ context }) => context.timeoutMs + additionalTimeoutMs,
  },
  guards: {
    isHealthy: (_, { reason }: HealthProbeResult) => reason === '',
    becomesHealthy: ({ context }, { reason }: HealthProbeResult) =>
      reason === '' && context.reportedHealth !== 'healthy' && context.successes + 1 >= context.successThreshold,
    becomesUnhealthy: ({ context }) =>
      context.reportedHealth !== 'unhealthy' && context.failures + 1 >= context.failureThreshold,
  },
  actions: {
    countSuccess: assign({
      successes: ({ context }) => Math.min(context.successes + 1, context.successThreshold),
      failures: 0,
    }),
    countFailure: assign({
      successes: 0,
      failures: ({ context }) => Math.min(context.failures + 1, context.failureThreshold),
    }),
    recordHealthy: assign({ reportedHealth: 'healthy' }),
    recordUnhealthy: assign({ reportedHealth: 'unhealthy' }),
    reportHealthy: sendParent({ type: 'health.changed', healthy: true, message: '' } satisfies HealthChanged),
    reportUnhealthy: sendParent(
      (_, { reason }: HealthProbeResult): HealthChanged => ({
        type: 'health.changed',
        healthy: false,
        message: reason,
      }),
    ),
  },
}).createMachine({
  id: 'workload-health',
  description: 'Health of the workload, probed periodically.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, successes: 0, failures: 0, reportedHealth: 'nothing' }),
  initial: 'delayed',
  states: {
    delayed: {
      description: 'The initial delay of the workload.',
      after: { initialDelay: 'probing' },
    },
    probing: {
      description: 'Envoy and the workload are being probed.',
      invoke: {
        id: 'probing',
        src: 'probeWorkload',
        input: ({ context: { timeoutMs } }) => ({ timeoutMs }),
        onDone: [
          {
            guard: { type: 'becomesHealthy', params: ({ event }) => event.output },
            target: 'waiting',
            actions: ['countSuccess', 'recordHealthy', 'reportHealthy'],
          },
          {
            guard: { type: 'isHealthy', params: ({ event }) => event.output },
            target: 'waiting',
            actions: 'countSuccess',
          },
          ...onFailed(({ event }: { event: { output: HealthProbeResult } }) => event.output),
        ],
        onError: [...onFailed(({ event }: { event: { error: unknown } }) => ({ reason: reasonOf(event.error) }))],
      },
      after: { probeLimit: [...onFailed({ reason: 'no response in time' })] },
    },
    waiting: {
      description: 'The last result applies until the next probe.',
      after: { period: 'probing' },
    },
  },
});
