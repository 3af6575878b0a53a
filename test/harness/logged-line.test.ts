import { expect, test } from 'vitest';
import { createLogger } from '../../src/runtime/output/log.ts';
import { linesOf, type loggedLine } from './logged-line.ts';

test.each([
  ['text', false],
  ['JSON', true],
] as const)('loggedLine matches a line of %s by its event and fields', (_, asJson) => {
  const lines: string[] = [];
  const log = createLogger({ asJson, write: (line) => lines.push(line.trimEnd()) });
  log.scope('agent').info('restart.ended.live', { epoch: 'epoch-1', 'restart.how': 'hot restart', timeToLiveMs: 88 });
  log.info('state.changed', { actor: 'supervisor', from: 'starting', to: 'serving', cause: 'start', on: 'x' });
  log.warn('upstream.failed', { reason: 'no "answer" = 1' });
  const [live, state, failed] = lines;
  const findLines = (...condition: Parameters<typeof loggedLine>): string[] => linesOf(lines, ...condition);
  expect(findLines('restart.ended.live')).toEqual([live]);
  expect(findLines('restart.ended.live', { epoch: 'epoch-1', timeToLiveMs: 88 })).toEqual([live]);
  expect(findLines('restart.ended.live', { 'restart.how': 'hot restart' })).toEqual([live]);
  expect(findLines('restart.ended.live', { epoch: 'epoch-10' })).toEqual([]);
  expect(findLines('restart.ended.live', { epoch: 'epoch' })).toEqual([]);
  expect(findLines('restart.ended.live', { epoch: /^epoch-\d$/ })).toEqual([]);
  expect(findLines('restart.ended.live', { epoch: /epoch-\d/ })).toEqual([live]);
  expect(findLines('restart.ended.live', { epoch: /88/ })).toEqual([]);
  expect(findLines('restart.ended.canceled')).toEqual([]);
  expect(findLines('state.changed', { actor: 'supervisor', to: 'serving' })).toEqual([state]);
  expect(findLines('state.changed', { actor: 'supervisor', to: 'starting' })).toEqual([]);
  expect(findLines('state.changed', { on: 'x' })).toEqual([state]);
  expect(findLines('state.degraded')).toEqual([]);
  expect(findLines('upstream.failed', { reason: 'no "answer" = 1' })).toEqual([failed]);
  expect(findLines('readiness.ready')).toEqual([]);
});
