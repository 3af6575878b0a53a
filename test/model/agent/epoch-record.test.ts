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
  ['nothing lives', [], false, 'epoch-0'],
  ['nothing lives, and the last one was to be replaced', [], true, 'epoch-0'],
  ['one serves', [record('epoch-0', 'live')], false, 'epoch-1'],
  ['one serves, after many', [record('epoch-41', 'live')], false, 'epoch-42'],
  ['one is to be replaced', [record('epoch-4', 'live')], true, 'epoch-0b'],
  ['one of the second base id serves', [record('epoch-0b', 'live')], false, 'epoch-1b'],
  ['one of the second base id is to be replaced', [record('epoch-1b', 'live')], true, 'epoch-0'],
  ['one serves, its parent leaves', [record('epoch-0', 'leaving'), record('epoch-1', 'live')], false, 'epoch-2'],
  [
    'one serves, the replaced one retires',
    [record('epoch-3', 'retiring'), record('epoch-0b', 'live')],
    false,
    'epoch-1b',
  ],
  ['only a parent is left', [record('epoch-3', 'leaving')], false, 'epoch-4'],
  ['only a replaced one is left', [record('epoch-3', 'retiring')], false, 'epoch-0b'],
  ['only a replaced one of the second base id is left', [record('epoch-2b', 'retiring')], false, 'epoch-0'],
])('the next epoch is determined correctly if %s', (_, epochs, replacing, name) => {
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
