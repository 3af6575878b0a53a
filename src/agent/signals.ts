import { fromCallback } from 'xstate';
import type { AgentSignalReceived, Signal } from '../../machines/agent/protocol.ts';

/** The agent ignores some of these signals, whose default action is to terminate. */
export const handledSignals: readonly Signal[] = [
  ...(['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const),
  // Must be last: bin/pilot-agent detects by its handler that all signals are handled.
  'SIGHUP',
];

export type SignalSource = Pick<NodeJS.Process, 'on'>;

/** Queues signals while there is no listener, so that SIGTERM during the start is not lost. */
export class SignalInbox {
  readonly #ignoredSignals: ReadonlySet<Signal>;
  readonly #waitingSignals: Signal[] = [];
  readonly #counts = new Map<Signal, number>();
  #listener: ((signal: Signal) => void) | undefined;

  /** @param terminalIsAnothers the launcher forwards Ctrl-C and Ctrl-\ as SIGTERM, see {@link isStartedByLauncher} */
  constructor({ source = process as SignalSource, terminalIsAnothers = false } = {}) {
    this.#ignoredSignals = new Set(terminalIsAnothers ? (['SIGINT', 'SIGQUIT'] as const) : []);
    for (const signal of handledSignals) source.on(signal, this.#receive);
  }

  listen(listener: (signal: Signal) => void): () => void {
    this.#listener = listener;
    for (const signal of this.#waitingSignals.splice(0)) listener(signal);
    return () => {
      this.#listener = undefined;
    };
  }

  get counts(): ReadonlyMap<Signal, number> {
    return this.#counts;
  }

  get pendingSignals(): readonly Signal[] {
    return this.#waitingSignals;
  }

  readonly #receive = (name: NodeJS.Signals): void => {
    const signal = name as Signal;
    if (this.#ignoredSignals.has(signal)) return;
    this.#counts.set(signal, (this.#counts.get(signal) ?? 0) + 1);
    if (this.#listener === undefined) this.#waitingSignals.push(signal);
    else this.#listener(signal);
  };
}

export function signals(inbox: SignalInbox) {
  return fromCallback<{ type: never }, undefined>(({ sendBack }) =>
    inbox.listen((signal) => {
      const event: AgentSignalReceived = { type: 'signal.received', signal };
      sendBack(event);
    }),
  );
}

/** Terminal signals reach the launcher bin/pilot-agent too, and it handles them. */
export function isStartedByLauncher(env: NodeJS.ProcessEnv, parentPid = process.ppid): boolean {
  return env.CHARTPILOT_LAUNCHER === String(parentPid);
}
