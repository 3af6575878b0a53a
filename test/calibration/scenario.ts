/**
 * Steps of calibration scenarios: orders to the Envoys of one host, and awaited events. A scenario runs against real
 * Envoys (real-run.ts) and against their model (simulated-run.ts).
 */

/**
 * Envoys of one family share a base ID. `beside` is a second family on the same listener port, with a separate admin
 * port.
 */
export type Family = 'main' | 'beside';

/** Condition for a new Envoy to become live. */
export type StartConfiguration =
  | 'complete'
  /** The first configuration comes from an unresponsive control plane; Envoy stops waiting after `giveUpMs`. */
  | 'awaited'
  /** Like `awaited`, without a timeout. */
  | 'never there'
  /** The bootstrap has an unknown field. */
  | 'broken'
  /** Another program listens on the listener port. */
  | 'listener port taken'
  /** Another program listens on the admin port. */
  | 'admin port taken';

export interface StartStep {
  readonly step: 'start';
  /** Name of the process in the scenario. */
  readonly name: string;
  readonly epoch: number;
  readonly family: Family;
  readonly configuration: StartConfiguration;
  /** Multiple of 1000; passed as --parent-shutdown-time-s. */
  readonly parentShutdownMs: number;
  /** Multiple of 1000; passed as --drain-time-s. */
  readonly drainMs: number;
  /** Multiple of 1000; timeout of an `awaited` configuration. */
  readonly giveUpMs: number;
}

export type CalibrationStep =
  | StartStep
  /** Waits until the process reports the state LIVE. */
  | { readonly step: 'live'; readonly name: string }
  /** Waits until the process has the admin port, live or not. */
  | { readonly step: 'admin open'; readonly name: string }
  /** Waits until the admin port accepts connections but does not respond: the main thread of its process is blocked. */
  | { readonly step: 'blocked'; readonly name: string }
  /** Waits until all of these processes have exited, in any order. */
  | { readonly step: 'exits'; readonly names: readonly string[] }
  | { readonly step: 'signal'; readonly name: string; readonly signal: CalibrationSignal }
  /** Requests an exit that the process cannot perform. */
  | { readonly step: 'hang'; readonly name: string }
  /** `POST /drain_listeners`: immediately, or with `graceful` during the drain time. */
  | { readonly step: 'drain'; readonly name: string; readonly gradually: boolean }
  /** Waits until the process accepts no new connection but still runs. */
  | { readonly step: 'closes'; readonly name: string }
  /** Sets the INITIALIZING mark of the main family, like a child that exits before it is live. */
  | { readonly step: 'mark' }
  /** Clears the mark, like the agent. */
  | { readonly step: 'repair' }
  /** Removes the shared memory of the main family. */
  | { readonly step: 'lose memory' }
  /** Records the process at each port. */
  | { readonly step: 'observe' };

/** SIGSEGV simulates a crash. */
export type CalibrationSignal = 'SIGTERM' | 'SIGKILL' | 'SIGUSR1' | 'SIGSEGV';

export interface Scenario {
  readonly name: string;
  readonly steps: readonly CalibrationStep[];
}

/** Long enough for several observations on a busy machine, because observed states must last that long. */
const usualParentShutdownMs = 3_000;
/** Long enough for observations before the process is live. */
const usualGiveUpMs = 4_000;

export function start(epoch: number, options: Partial<Omit<StartStep, 'step' | 'epoch'>> = {}): StartStep {
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

export const live = (name: string): CalibrationStep => ({ step: 'live', name });
export const adminOpen = (name: string): CalibrationStep => ({ step: 'admin open', name });
export const blocked = (name: string): CalibrationStep => ({ step: 'blocked', name });
export const exits = (...names: string[]): CalibrationStep => ({ step: 'exits', names });
export const hang = (name: string): CalibrationStep => ({ step: 'hang', name });
export const drain = (name: string): CalibrationStep => ({ step: 'drain', name, gradually: false });
export const drainGradually = (name: string): CalibrationStep => ({ step: 'drain', name, gradually: true });
export const closes = (name: string): CalibrationStep => ({ step: 'closes', name });
export const term = (name: string): CalibrationStep => ({ step: 'signal', name, signal: 'SIGTERM' });
export const kill = (name: string): CalibrationStep => ({ step: 'signal', name, signal: 'SIGKILL' });
export const crash = (name: string): CalibrationStep => ({ step: 'signal', name, signal: 'SIGSEGV' });
export const reopenLogs = (name: string): CalibrationStep => ({ step: 'signal', name, signal: 'SIGUSR1' });
export const mark: CalibrationStep = { step: 'mark' };
export const repair: CalibrationStep = { step: 'repair' };
export const loseMemory: CalibrationStep = { step: 'lose memory' };
export const observe: CalibrationStep = { step: 'observe' };
