import { fromCallback } from 'xstate';
import { measureIntervalMs, streamAdmissionMachine } from '../../../machines/discovery/xds/stream-admission.machine.ts';
import { LoadMeter } from './admission/load-meter.ts';

export interface AdmissionEffects {
  readonly requests: () => number;
  readonly proxies: () => number;
  readonly isFull: () => boolean;
  readonly applySlots: (slots: number) => void;
  readonly onMeasured: () => void;
}

export function streamAdmissionWithEffects({ requests, proxies, isFull, applySlots, onMeasured }: AdmissionEffects) {
  return streamAdmissionMachine.provide({
    actors: {
      load: fromCallback(({ sendBack }) => {
        const meter = new LoadMeter();
        const timer = setInterval(() => {
          const load = { turnMs: meter.meanTurnMs(), requests: requests(), proxies: proxies(), isFull: isFull() };
          sendBack({ type: 'load.measured', ...load });
          onMeasured();
        }, measureIntervalMs);
        return () => clearInterval(timer);
      }),
    },
    actions: { applySlots: (_, { slots }) => applySlots(slots) },
  });
}
