import { assign, sendParent, setup } from 'xstate';
import { promiseEffect, reasonOf } from '../../effect.ts';
import { noLane } from '../timeline.ts';
import type { HealthChanged } from '../xds-protocol.ts';

/** When the workload is asked, and what of its answers counts (spec/agent.md §8.4). Times in milliseconds. */
export interface ProbeTimes {
  initialDelayMs: number;
  periodMs: number;
  timeoutMs: number;
  /** How many answers of a kind in a row make the workload's health. */
  successThreshold: number;
  failureThreshold: number;
}

interface WorkloadHealthContext extends ProbeTimes {
  /** Successes in a row, counted up to what matters. */
  successes: number;
  failures: number;
  /** What the control plane was told last. */
  told: 'nothing' | 'healthy' | 'unhealthy';
}

/** How one question ended; the empty reason: it is well. */
export type HealthProbeResult = { reason: string };

/** Whether Envoy is ready is asked as well, and has a limit of its own. */
const additionalTimeoutMs = 6_000;

/** Changes only are told. */
const failed = <Params>(params: Params) =>
  [
    {
      guard: 'becomesUnhealthy',
      target: 'waiting',
      actions: ['countFailure', 'recordUnhealthy', { type: 'reportUnhealthy', params }],
    },
    { target: 'waiting', actions: 'countFailure' },
  ] as const;

/**
 * Whether the workload can serve, for a control plane that no kubelet tells: asked now and then, told when it is another. A workload that
 * has not answered yet is neither.
 */
export const workloadHealthMachine = setup({
  types: {
    context: {} as WorkloadHealthContext,
    input: {} as ProbeTimes,
    children: {} as { probing: 'probeWorkload' },
  },
  actors: {
    /** Asks whether Envoy is ready, and then the workload, which has {@link ProbeTimes.timeoutMs}. */
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
      reason === '' && context.told !== 'healthy' && context.successes + 1 >= context.successThreshold,
    becomesUnhealthy: ({ context }) => context.told !== 'unhealthy' && context.failures + 1 >= context.failureThreshold,
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
    recordHealthy: assign({ told: 'healthy' }),
    recordUnhealthy: assign({ told: 'unhealthy' }),
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
  context: ({ input }) => ({ ...input, successes: 0, failures: 0, told: 'nothing' }),
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
          ...failed(({ event }: { event: { output: HealthProbeResult } }) => event.output),
        ],
        onError: [...failed(({ event }: { event: { error: unknown } }) => ({ reason: reasonOf(event.error) }))],
      },
      after: { probeLimit: [...failed({ reason: 'no response in time' })] },
    },
    waiting: {
      description: 'The last result applies until the next probe.',
      after: { period: 'probing' },
    },
  },
});
