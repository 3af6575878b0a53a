import { expect, test } from 'vitest';
import { type EpochRecord, nextEpochId, withPhase } from '../../../machines/agent/envoy/epoch-record.ts';

const record = (name: string, phase: EpochRecord['phase']): EpochRecord => ({
  name,
  epoch: Number(name.match(/\d+/)![0]),
  baseId: name.endsWith('b') ? 8 : 7,
  adminPort: name.endsWith('b') ? 16_001 : 15_000,
  pid: 100,
  digest: 'digest',
  orders: 0,
  binary: 'first',
  phase,
  doomed: false,
});

test.each<[string, EpochRecord[], boolean, string]>([
  ['no epoch is running', [], false, 'epoch-0'],
  ['no epoch is running after a replacement was due', [], true, 'epoch-0'],
  ['epoch-0 serves', [record('epoch-0', 'live')], false, 'epoch-1'],
  ['epoch-41 serves', [record('epoch-41', 'live')], false, 'epoch-42'],
  ['epoch-4 must be replaced', [record('epoch-4', 'live')], true, 'epoch-0b'],
  ['epoch-0b with the second base ID serves', [record('epoch-0b', 'live')], false, 'epoch-1b'],
  ['epoch-1b with the second base ID must be replaced', [record('epoch-1b', 'live')], true, 'epoch-0'],
  ['epoch-1 serves and its parent drains', [record('epoch-0', 'leaving'), record('epoch-1', 'live')], false, 'epoch-2'],
  [
    'epoch-0b serves and the replaced epoch-3 retires',
    [record('epoch-3', 'retiring'), record('epoch-0b', 'live')],
    false,
    'epoch-1b',
  ],
  ['only the parent epoch-3 is running', [record('epoch-3', 'leaving')], false, 'epoch-4'],
  ['only the replaced epoch-3 is running', [record('epoch-3', 'retiring')], false, 'epoch-0b'],
  ['only the replaced epoch-2b with the second base ID is running', [record('epoch-2b', 'retiring')], false, 'epoch-0'],
])('the next epoch is $3 if %s', (_, epochs, replacing, name) => {
  expect(nextEpochId(epochs, [7, 8], replacing)).toEqual({
    name,
    epoch: record(name, 'starting').epoch,
    baseId: record(name, 'starting').baseId,
  });
});

test('an agent with one base ID has no spare base ID', () => {
  expect(nextEpochId([record('epoch-3', 'retiring')], [7], false)).toEqual({ name: 'epoch-4', epoch: 4, baseId: 7 });
});

test('a phase change applies to one epoch only', () => {
  const epochs = [record('epoch-0', 'live'), record('epoch-1', 'starting')];
  expect(withPhase(epochs, { name: 'epoch-1' }, 'live').map(({ phase }) => phase)).toEqual(['live', 'live']);
  expect(withPhase(epochs, { name: 'epoch-0' }, 'leaving').map(({ phase }) => phase)).toEqual(['leaving', 'starting']);
});
