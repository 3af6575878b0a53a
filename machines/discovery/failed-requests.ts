import { reasonOf } from '../effect.ts';

/**
 * Transitions after failed requests to other systems: the failure is counted and reported, and the request is repeated after a delay. Requires the
 * actions `countFailure` and `reportFailed`, and a state `backing off`.
 */
const backOff = <Params>(params: Params) =>
  ({ target: 'backing off', actions: ['countFailure', { type: 'reportFailed', params }] }) as const;

/** The response is unusable and contains the reason. */
export const onFailedResponse = backOff(({ event }: { event: { output: { outcome: string; reason?: string } } }) => ({
  reason: event.output.reason ?? '',
}));

export const onEffectError = backOff(({ event }: { event: { error: unknown } }) => ({ reason: reasonOf(event.error) }));

export const onTimeout = (reason: string) => backOff({ reason });
