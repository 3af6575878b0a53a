/**
 * For files that share a process with others: changes of one file are undone after it, and a change that cannot be undone
 * makes it fail, so that no file depends on the files before it.
 */
import { afterAll, beforeAll, expect, vi } from 'vitest';

/** Events that a program's main file listens to; a file that leaves a listener behind changes how the next one ends. */
const heard = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1', 'uncaughtException', 'unhandledRejection', 'warning'];

interface Surroundings {
  readonly environment: NodeJS.ProcessEnv;
  readonly directory: string;
  readonly listeners: Record<string, number>;
}

const surroundings = (): Surroundings => ({
  environment: { ...process.env },
  directory: process.cwd(),
  listeners: Object.fromEntries(heard.map((event) => [event, process.listenerCount(event)])),
});

let before: Surroundings;

beforeAll(() => {
  before = surroundings();
});

afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.resetConfig();
  expect(surroundings(), 'what this file leaves behind in its process').toEqual(before);
});
