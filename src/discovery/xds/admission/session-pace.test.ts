import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { limitFrames } from './session-pace.ts';

class Session extends EventEmitter {
  readonly calls: (number | string)[] = [];

  goaway(code: number): void {
    this.calls.push(code);
  }

  destroy(): void {
    this.calls.push('destroyed');
  }
}

test.each([
  ['ping', 1_000],
  ['remoteSettings', 100],
  ['stream', 5_000],
])('A session with too many %s events in 10 s is closed with ENHANCE_YOUR_CALM', async (event, limit) => {
  let time = 0;
  const session = new Session();
  limitFrames(session, () => time);
  limitFrames(session, () => time);
  for (let period = 0; period < 3; period++, time += 10_000) {
    for (let i = 0; i < limit; i++) session.emit(event);
  }
  expect(session.calls).toEqual([]);
  for (let i = 0; i <= limit; i++) session.emit(event);
  await new Promise((resolve) => setImmediate(resolve));
  const enhanceYourCalm = 11;
  expect(session.calls).toEqual([enhanceYourCalm, 'destroyed']);
});
