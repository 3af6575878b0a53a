import { expect, test } from 'vitest';
import { createLogger } from '../output/log.ts';
import { createRecorder } from '../trace/recorder.ts';
import { logRecords } from './log-records.ts';

function recorded(outputLevel = 'default:info'): { recorder: ReturnType<typeof createRecorder>; lines: string[] } {
  const lines: string[] = [];
  let now = 0;
  const recorder = createRecorder({ program: 'test', now: () => (now += 10) });
  const log = createLogger({ outputLevel, write: (line) => lines.push(line.trimEnd().split('\t').slice(1).join(' ')) });
  logRecords(recorder, log, { quiet: (actor) => actor.startsWith('ads-connection') });
  return { recorder, lines };
}

test('a transition is one line with its cause in plain words', () => {
  const { recorder, lines } = recorded();
  recorder.record({ kind: 'transition', actor: 'supervisor', from: '', to: 'idle', on: 'xstate.init' });
  recorder.record({
    kind: 'transition',
    actor: 'supervisor',
    from: 'backing off',
    to: 'deciding',
    on: 'xstate.after.backoff.supervisor.running.backing off',
  });
  recorder.record({ kind: 'transition', actor: 'agent', from: 'a', to: 'b', on: 'xstate.done.actor.claim' });
  expect(lines).toEqual([
    'info default supervisor: idle (start)',
    'info default supervisor: backing off → deciding (after backoff)',
    'info default agent: a → b (claim is done)',
  ]);
});

test('trouble is a warning with its reason, told once however many actors pass it on', () => {
  const { recorder, lines } = recorded();
  const event = { type: 'process.failed', reason: 'no such file' };
  recorder.record({ kind: 'event', from: 'epoch-0/process', to: 'epoch-0', event });
  recorder.record({
    kind: 'event',
    from: 'epoch-0',
    to: 'supervisor',
    event: { type: 'epoch.failed', reason: 'no such file' },
  });
  expect(lines).toEqual(['warn default epoch-0/process: process.failed  reason="no such file"']);
});

test('the same trouble at a later time is told again', () => {
  const { recorder, lines } = recorded();
  for (let turn = 0; turn < 30; turn++) {
    const type = turn % 29 === 0 ? 'epoch.waiting' : 'epoch.live';
    recorder.record({ kind: 'event', from: 'epoch-0', to: 'supervisor', event: { type, reason: 'no answer' } });
  }
  expect(lines).toHaveLength(2);
});

test('facts and orders without trouble are not told', () => {
  const { recorder, lines } = recorded();
  recorder.record({ kind: 'event', from: 'a', to: 'b', event: { type: 'config.changed', digest: 'x' } });
  expect(lines).toEqual([]);
});

test('actors that are many are told only to those who debug', () => {
  const quietly = recorded();
  const debugging = recorded('default:debug');
  for (const { recorder } of [quietly, debugging]) {
    recorder.record({ kind: 'transition', actor: 'ads-connection-7', from: 'a', to: 'b', on: 'x' });
  }
  expect(quietly.lines).toEqual([]);
  expect(debugging.lines).toHaveLength(1);
});

test('a transition tells what its cause said, in short and without secrets', () => {
  const { recorder, lines } = recorded();
  const digest = '0123456789abcdef0123456789abcdef';
  const event = { type: 'config.changed', digest, files: 3, token: 'x', list: [1] };
  recorder.record({ kind: 'event', from: 'cert-watcher', to: 'supervisor', event });
  recorder.record({ kind: 'transition', actor: 'supervisor', from: 'a', to: 'b', on: 'config.changed' });
  recorder.record({ kind: 'transition', actor: 'status', from: 'c', to: 'd', on: 'config.changed' });
  expect(lines).toEqual([
    'info default supervisor: a → b (config.changed digest=0123456789ab… files=3 token=[redacted])',
    'info default status: c → d (config.changed)',
  ]);
});
