/** What the operating system tells this process. */
import { fromCallback } from 'xstate';
import type { Signal, SignalReceived } from '../../machines/agent/protocol.ts';

/** Signals that mean something to the agent. */
export const handledSignals: readonly Signal[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1'];

/** The source of signals; the process itself unless a test says otherwise. */
export type SignalSource = Pick<NodeJS.Process, 'on' | 'off'>;

/** While this effect lives, the signals that it hears do nothing else. */
export function signals(source: SignalSource = process) {
  return fromCallback<{ type: never }, undefined>(({ sendBack }) => {
    const listener = (signal: NodeJS.Signals): void => {
      const event: SignalReceived = { type: 'signal.received', signal: signal as Signal };
      sendBack(event);
    };
    for (const signal of handledSignals) source.on(signal, listener);
    return () => {
      for (const signal of handledSignals) source.off(signal, listener);
    };
  });
}
