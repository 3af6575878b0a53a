/**
 * The language of calibration scenarios: what is done to the Envoys of one host, and what is waited for. Written once, run
 * against real Envoys (real-run.ts) and against the model of them (simulated-run.ts).
 */

/** Envoys find each other by it. `beside`: a second family on the same listener port, with an admin port of its own. */
export type Family = 'main' | 'beside';

/** What a newcomer needs before it is live. */
export type Configuration =
  | 'complete'
  /** Its first configuration comes from a control plane that does not answer; it gives up waiting after a while. */
  | 'awaited'
  /** The same, and it never gives up. */
  | 'never there'
  /** Its bootstrap has a field that nobody knows. */
  | 'broken'
  /** Another program has its listener port. */
  | 'listener port taken'
  /** Another program has its admin port. */
  | 'admin port taken';

export interface Start {
  readonly step: 'start';
  /** How the scenario calls the process. */
  readonly name: string;
  readonly epoch: number;
  readonly family: Family;
  readonly configuration: Configuration;
  /** Whole seconds; its own --parent-shutdown-time-s. */
  readonly parentShutdownMs: number;
  /** Whole seconds; its own --drain-time-s. */
  readonly drainMs: number;
  /** Whole seconds; for how long an `awaited` configuration is waited for. */
  readonly giveUpMs: number;
}

export type Step =
  | Start
  /** Waits until it answers as live. */
  | { readonly step: 'live'; readonly name: string }
  /** Waits until it has the admin port, live or not. */
  | { readonly step: 'answers'; readonly name: string }
  /** Waits until nobody answers at an admin port that is open: the main thread of who has it is blocked. */
  | { readonly step: 'blocked'; readonly name: string }
  /** Waits until all of them are gone. The order among them is left open. */
  | { readonly step: 'exits'; readonly names: readonly string[] }
  | { readonly step: 'signal'; readonly name: string; readonly signal: CalibrationSignal }
  /** It is told to end, and is in no state to do it. */
  | { readonly step: 'hang'; readonly name: string }
  /** `POST /drain_listeners`: at once; gradually, with `graceful`, it takes its drain time. */
  | { readonly step: 'drain'; readonly name: string; readonly gradually: boolean }
  /** Waits until it answers no new connection, though it lives. */
  | { readonly step: 'closes'; readonly name: string }
  /** The INITIALIZING mark of the main family is set, as a child leaves it that dies before it is live. */
  | { readonly step: 'mark' }
  /** And cleared, as the agent does it. */
  | { readonly step: 'repair' }
  /** The shared memory of the main family is removed. */
  | { readonly step: 'lose memory' }
  /** Notes who answers where. */
  | { readonly step: 'look' };

/** SIGSEGV: a crash. */
export type CalibrationSignal = 'SIGTERM' | 'SIGKILL' | 'SIGUSR1' | 'SIGSEGV';

export interface Scenario {
  readonly name: string;
  readonly steps: readonly Step[];
}

/** Longer than a few looks take on a loaded machine: what a scenario looks at must be over by then. */
const usualParentShutdownMs = 3_000;
/** The same for what is seen before it is live. */
const usualGiveUpMs = 4_000;

export function start(epoch: number, options: Partial<Omit<Start, 'step' | 'epoch'>> = {}): Start {
  return {
    step: 'start',
    epoch,
    name: String(epoch),
    family: 'main',
    configuration: 'complete',
    parentShutdownMs: usualParentShutdownMs,
    drainMs: 1_000,
    giveUpMs: usualGiveUpMs,
    ...options,
  };
}

export const live = (name: string): Step => ({ step: 'live', name });
export const answers = (name: string): Step => ({ step: 'answers', name });
export const blocked = (name: string): Step => ({ step: 'blocked', name });
export const exits = (...names: string[]): Step => ({ step: 'exits', names });
export const hang = (name: string): Step => ({ step: 'hang', name });
export const drain = (name: string): Step => ({ step: 'drain', name, gradually: false });
export const drainGradually = (name: string): Step => ({ step: 'drain', name, gradually: true });
export const closes = (name: string): Step => ({ step: 'closes', name });
export const term = (name: string): Step => ({ step: 'signal', name, signal: 'SIGTERM' });
export const kill = (name: string): Step => ({ step: 'signal', name, signal: 'SIGKILL' });
export const crash = (name: string): Step => ({ step: 'signal', name, signal: 'SIGSEGV' });
export const reopenLogs = (name: string): Step => ({ step: 'signal', name, signal: 'SIGUSR1' });
export const mark: Step = { step: 'mark' };
export const repair: Step = { step: 'repair' };
export const loseMemory: Step = { step: 'lose memory' };
export const look: Step = { step: 'look' };
