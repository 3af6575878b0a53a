/** What the operating system tells this process. */
import { fromCallback } from 'xstate';
import type { AgentSignalReceived, Signal } from '../../machines/agent/protocol.ts';

/** Signals that mean something to the agent, or would end it as if they did. */
export const handledSignals: readonly Signal[] = [
  ...(['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const),
  // The last: bin/pilot-agent takes its handler as the sign that all are heard.
  'SIGHUP',
];

/** The source of signals; the process itself unless a test says otherwise. */
export type SignalSource = Pick<NodeJS.Process, 'on'>;

/**
 * Hears signals from its making on, and keeps those that come while nobody asks for them: a SIGTERM that comes while the
 * agent is being put together ends it all the same. From then on no signal of these does anything else.
 */
export class SignalInbox {
  readonly #ignored: ReadonlySet<Signal>;
  readonly #waiting: Signal[] = [];
  readonly #heard = new Map<Signal, number>();
  #listener: ((signal: Signal) => void) | undefined;

  /** @param terminalIsAnothers Ctrl-C and Ctrl-\ are passed on as a SIGTERM by who started this process: see {@link startedByLauncher} */
  constructor({ source = process as SignalSource, terminalIsAnothers = false } = {}) {
    this.#ignored = new Set(terminalIsAnothers ? (['SIGINT', 'SIGQUIT'] as const) : []);
    for (const signal of handledSignals) source.on(signal, this.#hear);
  }

  /** @returns how to stop listening */
  listen(listener: (signal: Signal) => void): () => void {
    this.#listener = listener;
    for (const signal of this.#waiting.splice(0)) listener(signal);
    return () => {
      this.#listener = undefined;
    };
  }

  /** How often each has come. */
  get heard(): ReadonlyMap<Signal, number> {
    return this.#heard;
  }

  /** What nobody has asked for yet. */
  get waiting(): readonly Signal[] {
    return this.#waiting;
  }

  readonly #hear = (name: NodeJS.Signals): void => {
    const signal = name as Signal;
    if (this.#ignored.has(signal)) return;
    this.#heard.set(signal, (this.#heard.get(signal) ?? 0) + 1);
    if (this.#listener === undefined) this.#waiting.push(signal);
    else this.#listener(signal);
  };
}

/** The effect that hands on what the inbox hears, from what waits in it on. */
export function signals(inbox: SignalInbox) {
  return fromCallback<{ type: never }, undefined>(({ sendBack }) =>
    inbox.listen((signal) => {
      const event: AgentSignalReceived = { type: 'signal.received', signal };
      sendBack(event);
    }),
  );
}

/**
 * Whether bin/pilot-agent runs as the container's first process and has started this one. A terminal's signals reach the
 * whole process group, so both of them: the launcher's count.
 */
export function startedByLauncher(env: NodeJS.ProcessEnv, parentPid = process.ppid): boolean {
  return env.CHARTPILOT_LAUNCHER === String(parentPid);
}
