import { reasonOf } from '../effect.ts';

/** Transitions after failed requests to other systems. They require the actions `countFailure` and `reportFailed`, and a state `backing off`. */
const backOff = <Params>(params: Params) =>
  ({ target: 'backing off', actions: ['countFailure', { type: 'reportFailed', params }] }) as const;

export const onFailedResponse = backOff(({ event }: { event: { output: { outcome: string; reason?: string } } }) => ({
  reason: event.output.reason ?? '',
}));

export const onEffectError = backOff(({ event }: { event: { error: unknown } }) => ({ reason: reasonOf(event.error) }));

export const onTimeout = (reason: string) => backOff({ reason });
