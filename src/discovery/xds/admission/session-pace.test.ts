import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { keepPace } from './session-pace.ts';

class Session extends EventEmitter {
  readonly told: (number | string)[] = [];

  goaway(code: number): void {
    this.told.push(code);
  }

  destroy(): void {
    this.told.push('destroyed');
  }
}

test.each([
  ['ping', 1_000],
  ['remoteSettings', 100],
  ['stream', 5_000],
])(
  'a session with more of %s in ten seconds than anybody needs is told to calm down, and ended',
  async (event, most) => {
    let time = 0;
    const session = new Session();
    keepPace(session, () => time);
    keepPace(session, () => time);
    for (let period = 0; period < 3; period++, time += 10_000) {
      for (let i = 0; i < most; i++) session.emit(event);
    }
    expect(session.told).toEqual([]);
    for (let i = 0; i <= most; i++) session.emit(event);
    await new Promise((resolve) => setImmediate(resolve));
    const enhanceYourCalm = 11;
    expect(session.told).toEqual([enhanceYourCalm, 'destroyed']);
  },
);
