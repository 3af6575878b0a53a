/** Where a newer agent finds the older one: a socket in the record's directory. */
import { existsSync, lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createActor, sendParent, setup, spawnChild, stopChild } from 'xstate';
import { temporaryFolder } from '../../../../test/fixtures/real-envoy.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { SuccessionServer } from './succession.ts';

/** An older agent that listens. */
async function listening(prepare: (path: string) => void = () => {}) {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, 'succession');
  prepare(path);
  const told: string[] = [];
  const parent = setup({ actors: { link: new SuccessionServer(folder.path, () => {}).link } }).createMachine({
    invoke: { id: 'link', src: 'link' },
    on: { '*': { actions: ({ event }) => told.push(event.type) } },
  });
  const actor = createActor(parent).start();
  onTestFinished(() => void actor.stop());
  return { path, told };
}

test('an agent whose socket somebody has removed says so, and can be asked to listen anew', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { path, told } = await listening();
  await eventually('it listens', () => existsSync(path));
  vi.advanceTimersByTime(20_000);
  expect(told).toEqual([]);
  rmSync(path);
  writeFileSync(path, 'no socket');
  vi.advanceTimersByTime(10_000);
  expect(told).toEqual(['link.failed']);
});

test.each([
  ['a file', (path: string) => writeFileSync(path, '')],
  ['a folder that is not empty', (path: string) => mkdirSync(join(path, 'of somebody'), { recursive: true })],
  ['what an earlier process of this number has left', (path: string) => writeFileSync(`${path}.${process.pid}.0`, '')],
])('%s in the place of the socket does not keep an agent from listening', async (_, prepare) => {
  const { path, told } = await listening(prepare);
  await eventually('it listens', () => isSocket(path));
  expect(told).toEqual([]);
});

test('an agent that takes back what it has given up can be found by the next newer one at once', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, 'succession');
  const told: string[] = [];
  // As the chart of the agent does, while the old listener's parent is still at work: the new one begins before the old one has ended.
  const predecessor = setup({ actors: { link: new SuccessionServer(folder.path, () => {}).link } }).createMachine({
    invoke: { id: 'link', src: 'link' },
    on: {
      'take.back': { actions: sendParent({ type: 'succession.failed' }) },
      'link.failed': { actions: ({ event }) => told.push(event.type) },
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
  const answers = (): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect(path, () => resolve(true)).on('error', () => resolve(false));
      onTestFinished(() => void socket.destroy());
    });
  await eventually('it listens', answers);
  actor.getSnapshot().children.predecessor!.send({ type: 'take.back' });
  await eventually('it listens anew', answers);
  expect(told).toEqual([]);
});

const isSocket = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true;
