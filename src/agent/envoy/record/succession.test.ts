/** The socket in the record's directory by which a newer agent connects to the older one. */
import { existsSync, lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createActor, sendParent, setup, spawnChild, stopChild } from 'xstate';
import { temporaryFolder } from '../../../../test/fixtures/real-envoy.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { SuccessionServer } from './succession.ts';

/** Starts an older agent's server. */
async function listening(prepare: (path: string) => void = () => {}) {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, 'succession');
  prepare(path);
  const events: string[] = [];
  const parent = setup({ actors: { link: new SuccessionServer(folder.path, () => {}).link } }).createMachine({
    invoke: { id: 'link', src: 'link' },
    on: { '*': { actions: ({ event }) => events.push(event.type) } },
  });
  const actor = createActor(parent).start();
  onTestFinished(() => void actor.stop());
  return { path, events };
}

test('reports that the hand-over socket was removed', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { path, events } = await listening();
  await eventually('it listens', () => existsSync(path));
  vi.advanceTimersByTime(20_000);
  expect(events).toEqual([]);
  rmSync(path);
  writeFileSync(path, 'no socket');
  vi.advanceTimersByTime(10_000);
  expect(events).toEqual(['link.failed']);
});

test.each([
  ['a file at its path', (path: string) => writeFileSync(path, '')],
  ['a non-empty folder at its path', (path: string) => mkdirSync(join(path, 'of somebody'), { recursive: true })],
  ['a file of an earlier process with the same PID', (path: string) => writeFileSync(`${path}.${process.pid}.0`, '')],
])('creates the hand-over socket despite %s', async (_, prepare) => {
  const { path, events } = await listening(prepare);
  await eventually('it listens', () => isSocket(path));
  expect(events).toEqual([]);
});

test('accepts another newer agent immediately after a failed hand-over', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, 'succession');
  const events: string[] = [];
  // As in the agent's chart, the new server starts before the old one has stopped.
  const predecessor = setup({ actors: { link: new SuccessionServer(folder.path, () => {}).link } }).createMachine({
    invoke: { id: 'link', src: 'link' },
    on: {
      'take.back': { actions: sendParent({ type: 'succession.failed' }) },
      'link.failed': { actions: ({ event }) => events.push(event.type) },
    },
  });
  const agent = setup({ actors: { predecessor } }).createMachine({
    entry: spawnChild('predecessor', { id: 'predecessor' }),
    on: {
      'succession.failed': { actions: [stopChild('predecessor'), spawnChild('predecessor', { id: 'predecessor' })] },
    },
  });
  const actor = createActor(agent).start();
  onTestFinished(() => void actor.stop());
  const accepts = (): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect(path, () => resolve(true)).on('error', () => resolve(false));
      onTestFinished(() => void socket.destroy());
    });
  await eventually('it listens', accepts);
  actor.getSnapshot().children.predecessor!.send({ type: 'take.back' });
  await eventually('it listens anew', accepts);
  expect(events).toEqual([]);
});

const isSocket = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true;
