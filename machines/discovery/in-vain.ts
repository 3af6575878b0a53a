import { reasonOf } from '../effect.ts';

/**
 * Questions that came to nothing, of charts that ask somebody outside of this program now and then: that is counted and told, and it is asked
 * again after a rest. Such a chart has the actions `countFailure` and `reportFailed`, and a state `backing off`.
 */
const inVain = <Params>(params: Params) =>
  ({ target: 'backing off', actions: ['countFailure', { type: 'reportFailed', params }] }) as const;

/** What was answered is of no use; the answer says why. */
export const answeredInVain = inVain(({ event }: { event: { output: { outcome: string; reason?: string } } }) => ({
  reason: event.output.reason ?? '',
}));

/** The effect that asks is broken. */
export const brokenOff = inVain(({ event }: { event: { error: unknown } }) => ({ reason: reasonOf(event.error) }));

export const unanswered = (reason: string) => inVain({ reason });
