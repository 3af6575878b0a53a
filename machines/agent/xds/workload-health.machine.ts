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
export type ProbeAnswer = { reason: string };

/** Whether Envoy is ready is asked as well, and has a limit of its own. */
const beyondTimeoutMs = 6_000;

/** Changes only are told. */
const failed = <Params>(params: Params) =>
  [
    {
      guard: 'turnsUnhealthy',
      target: 'resting',
      actions: ['countFailure', 'noteUnhealthy', { type: 'tellUnhealthy', params }],
    },
    { target: 'resting', actions: 'countFailure' },
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
    probeWorkload: promiseEffect<ProbeAnswer, { timeoutMs: number }>('probeWorkload'),
  },
  delays: {
    initialDelay: ({ context }) => context.initialDelayMs,
    period: ({ context }) => context.periodMs,
    probeLimit: ({ context }) => context.timeoutMs + beyondTimeoutMs,
  },
  guards: {
    isWell: (_, { reason }: ProbeAnswer) => reason === '',
    turnsHealthy: ({ context }, { reason }: ProbeAnswer) =>
      reason === '' && context.told !== 'healthy' && context.successes + 1 >= context.successThreshold,
    turnsUnhealthy: ({ context }) => context.told !== 'unhealthy' && context.failures + 1 >= context.failureThreshold,
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
    noteHealthy: assign({ told: 'healthy' }),
    noteUnhealthy: assign({ told: 'unhealthy' }),
    tellHealthy: sendParent({ type: 'health.changed', healthy: true, message: '' } satisfies HealthChanged),
    tellUnhealthy: sendParent(
      (_, { reason }: ProbeAnswer): HealthChanged => ({ type: 'health.changed', healthy: false, message: reason }),
    ),
  },
}).createMachine({
  id: 'workload-health',
  description: 'Whether the workload can serve, as it is asked now and then.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, successes: 0, failures: 0, told: 'nothing' }),
  initial: 'delayed',
  states: {
    delayed: {
      description: 'The workload has its time to start.',
      after: { initialDelay: 'probing' },
    },
    probing: {
      description: 'Envoy and the workload are being asked.',
      invoke: {
        id: 'probing',
        src: 'probeWorkload',
        input: ({ context: { timeoutMs } }) => ({ timeoutMs }),
        onDone: [
          {
            guard: { type: 'turnsHealthy', params: ({ event }) => event.output },
            target: 'resting',
            actions: ['countSuccess', 'noteHealthy', 'tellHealthy'],
          },
          {
            guard: { type: 'isWell', params: ({ event }) => event.output },
            target: 'resting',
            actions: 'countSuccess',
          },
          ...failed(({ event }: { event: { output: ProbeAnswer } }) => event.output),
        ],
        onError: [...failed(({ event }: { event: { error: unknown } }) => ({ reason: reasonOf(event.error) }))],
      },
      after: { probeLimit: [...failed({ reason: 'no response in time' })] },
    },
    resting: {
      description: 'Its last answer counts.',
      after: { period: 'probing' },
    },
  },
});
