import { fromPromise } from 'xstate';
import { type Clocks, clockStepText, watchClockSteps } from '../../runtime/clock-steps.ts';
import type { Logger } from '../../runtime/output/log.ts';

export function awaitClockStep(log: Logger, clocks?: Clocks) {
  return fromPromise<void, undefined>(
    ({ signal }) =>
      new Promise((resolve) => {
        const stop = watchClockSteps((stepMs) => {
          stop();
          log.warn('clock.stepped', { step: clockStepText(stepMs) });
          resolve();
        }, clocks);
        signal.addEventListener('abort', stop, { once: true });
      }),
  );
}
