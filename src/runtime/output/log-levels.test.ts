import { expect, test } from 'vitest';
import { createLogger, type Logger } from './log.ts';
import { maxProxyLevels } from './log-levels.ts';

interface Written {
  readonly log: Logger;
  /** Scope and level of the lines since the last call. */
  readonly lines: () => string[];
}

function createLog(outputLevel: string): Written {
  const lines: string[] = [];
  const log = createLogger({ outputLevel, write: (line) => lines.push(line.split('\t').slice(1, 3).join(' ')) });
  return { log, lines: () => lines.splice(0) };
}

test('a change of a log level applies to existing loggers of that scope only', () => {
  const { log, lines } = createLog('default:info');
  const [ads, push] = [log.scope('ads'), log.scope('push')];
  log.levels.change('ads', { outputLevel: 'debug' });
  for (const one of [log, ads, push, log.scope('ads')]) one.debug('request.judged.stale');
  expect(lines()).toEqual(['debug ads', 'debug ads']);
  expect([ads.enabled('debug'), push.enabled('debug')]).toEqual([true, false]);
  log.levels.change('ads', { outputLevel: 'none' });
  ads.error('stream.failed');
  expect(lines()).toEqual([]);
});

test('a change of the level of all scopes also applies to scopes without a logger, and a later change of one scope overrides it', () => {
  const { log, lines } = createLog('ads:error,default:info');
  log.scope('ads');
  log.levels.change('all', { outputLevel: 'debug' });
  log.levels.change('push', { outputLevel: 'warn' });
  for (const scope of ['default', 'ads', 'push', 'cluster']) log.scope(scope).debug('request.judged.stale');
  expect(lines()).toEqual(['debug default', 'debug ads', 'debug cluster']);
});

test('stacks and callers in log lines can be switched on and off', () => {
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line) }).scope('ads');
  const origin = /caller=log-levels\.test\.ts:\d+ {2}stack="at /;
  log.levels.change('ads', { stackTraceLevel: 'warn', logCallers: true });
  log.warn('upstream.failed');
  log.levels.change('ads', { stackTraceLevel: 'none', logCallers: false });
  log.warn('upstream.failed');
  expect(lines.map((line) => origin.test(line))).toEqual([true, false]);
});

test('the log level of a proxy adds lines about the proxy in one scope, and removes none', () => {
  const { log, lines } = createLog('default:info');
  const web = log.scope('ads').ofProxy('web-0.shop');
  const cart = log.scope('ads').ofProxy('cart-0.shop');
  log.levels.changeProxy('web-0.shop', 'ads', 'debug');
  for (const one of [web, cart, web.scope('push')]) one.debug('request.judged.stale');
  expect(lines()).toEqual(['debug ads']);
  log.levels.changeProxy('web-0.shop', 'ads', 'error');
  web.info('client.connected');
  web.debug('request.judged.stale');
  expect(lines()).toEqual(['info ads']);
  log.levels.changeProxy('web-0.shop', 'ads', 'debug');
  log.levels.changeProxy('web-0.shop', 'ads', 'none');
  web.debug('request.judged.stale');
  expect([lines(), [...log.levels.proxiesOf('ads')]]).toEqual([[], []]);
});

test('the number of proxies with log levels is limited, and removing one frees a slot', () => {
  const { levels } = createLog('').log;
  for (let index = 0; index < maxProxyLevels + 10; index++) levels.changeProxy(`web-${index}.shop`, 'ads', 'debug');
  expect(levels.proxiesOf('ads').size).toBe(maxProxyLevels);
  expect([levels.canChangeProxy('web-0.shop'), levels.canChangeProxy('cart-0.shop')]).toEqual([true, false]);
  levels.changeProxy('web-0.shop', 'ads', 'none');
  expect(levels.canChangeProxy('cart-0.shop')).toBe(true);
});
