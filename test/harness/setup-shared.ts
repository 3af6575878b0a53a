/**
 * For files that share a process with others: what one of them changes is put back after it, and what cannot be put back
 * makes it fail, so that no file depends on which others ran before it.
 */
import { afterAll, beforeAll, expect, vi } from 'vitest';

/** What a program's main file may hear; a file that leaves a listener behind changes how the next one ends. */
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
