import { spawnSync } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { type Logger, silentLogger } from '../output/log.ts';
import { catchUncaught, faultLog } from './uncaught.ts';

/** Runs a program in a separate Node process, because Vitest catches errors in this one. */
function run(program: string): { readonly status: number | null; readonly out: string } {
  const module = fileURLToPath(new URL('./uncaught.ts', import.meta.url));
  const text = `
    import { AsyncLocalStorage } from 'node:async_hooks';
    import { catchUncaught } from ${JSON.stringify(module)};
    ${program}`;
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', text], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  return { status, out: stdout };
}

test('a program continues after uncaught errors and rejections, and the handler receives the owner of each', () => {
  const { status, out } = run(`
    const whose = new AsyncLocalStorage();
    catchUncaught((error, origin) => console.log(origin, error?.message ?? error, whose.getStore()));
    whose.run('timer', () => setTimeout(() => { throw new Error('a'); }));
    whose.run('promise', () => void Promise.reject(new Error('b')));
    whose.run('nothing', () => void Promise.reject());
    setTimeout(() => console.log('still here'), 50);
  `);
  expect(out.trim().split('\n').sort()).toEqual([
    'still here',
    'uncaughtException a timer',
    'unhandledRejection b promise',
    'unhandledRejection undefined nothing',
  ]);
  expect(status).toBe(0);
});

test('a handler of uncaught errors neither ends the program nor loops if it throws or causes another error', () => {
  const { status, out } = run(`
    let calls = 0;
    catchUncaught(() => {
      calls += 1;
      process.emit('uncaughtException', new Error('within'));
      throw new Error('the handler is broken');
    });
    setTimeout(() => { throw new Error('a'); });
    setTimeout(() => console.log('called', calls), 50);
  `);
  expect([status, out]).toEqual([0, 'called 1\n']);
});

test('uncaught errors end the program after the handler is removed', () => {
  const source = new EventEmitter();
  const undo = catchUncaught(() => {}, source);
  expect(source.eventNames()).toEqual(['uncaughtException', 'unhandledRejection']);
  undo();
  expect(source.eventNames()).toEqual([]);
});

test('faults are logged with their stacks up to a limit per minute, and the omitted ones are counted', () => {
  const lines: object[] = [];
  const log: Logger = { ...silentLogger, error: (event, fields) => void lines.push({ event, ...fields }) };
  let time = 0;
  const report = faultLog(log, 'fault.uncaught', { maxLines: 2, intervalMs: 1_000, now: () => time });
  const error = new Error('a');
  for (let at = 0; at < 5; at += 1) report(error, { origin: 'here' });
  time = 1_000;
  report('no error at all', { origin: 'here' });
  expect(lines).toEqual([
    { event: 'fault.uncaught', origin: 'here', error: error.stack },
    { event: 'fault.uncaught', origin: 'here', error: error.stack },
    { event: 'fault.uncaught', origin: 'here', error: 'no error at all', leftOut: 3 },
  ]);
});
