/**
 * For test files that share a process: changes of global state are undone after each file, and an irreversible change fails the file, so that no file
 * depends on earlier ones.
 */
import { afterAll, beforeAll, expect, vi } from 'vitest';

/** Events that a program's main file listens to; a remaining listener would change how the next file ends. */
const observedEvents = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1', 'uncaughtException', 'unhandledRejection', 'warning'];

interface GlobalState {
  readonly environment: NodeJS.ProcessEnv;
  readonly directory: string;
  readonly listeners: Record<string, number>;
}

const globalState = (): GlobalState => ({
  environment: { ...process.env },
  directory: process.cwd(),
  listeners: Object.fromEntries(observedEvents.map((event) => [event, process.listenerCount(event)])),
});

let initialState: GlobalState;

beforeAll(() => {
  initialState = globalState();
});

afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.resetConfig();
  expect(globalState(), 'what this file leaves behind in its process').toEqual(initialState);
});
