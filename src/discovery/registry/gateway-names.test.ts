import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { GatewayNames, minAnswerMs, type ResolvedName } from './gateway-names.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function given(answers: (ResolvedName | Error)[]) {
  const asked: string[] = [];
  let changes = 0;
  const names = new GatewayNames(
    async (hostname) => {
      asked.push(hostname);
      const answer = answers[Math.min(asked.length, answers.length) - 1]!;
      if (answer instanceof Error) throw answer;
      return answer;
    },
    () => changes++,
  );
  return { names, asked, changes: () => changes };
}

const answer = (ttlMs: number, ...addresses: string[]): ResolvedName => ({ addresses, ttlMs });

describe('names of gateways', () => {
  it('have no address until they are resolved, and say when they have', async () => {
    const { names, changes } = given([answer(0, '2.2.2.2', '1.1.1.1')]);
    expect(names.addressesOf('gw')).toEqual([]);
    await vi.advanceTimersByTimeAsync(0);
    expect([names.addressesOf('gw'), changes()]).toEqual([['1.1.1.1', '2.2.2.2'], 1]);
    names.stop();
  });

  it('are asked for again after their time to live, and not within half a minute', async () => {
    const { names, asked, changes } = given([
      answer(1_000, '1.1.1.1'),
      answer(90_000, '1.1.1.1'),
      answer(0, '3.3.3.3'),
    ]);
    names.addressesOf('gw');
    await vi.advanceTimersByTimeAsync(minAnswerMs - 1);
    expect(asked).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect([asked.length, changes()]).toEqual([2, 1]);
    await vi.advanceTimersByTimeAsync(89_000);
    expect(asked).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([names.addressesOf('gw'), changes()]).toEqual([['3.3.3.3'], 2]);
    names.stop();
  });

  it('keep their last addresses while nobody can resolve them', async () => {
    const { names, asked } = given([answer(0, '1.1.1.1'), new Error('SERVFAIL')]);
    names.addressesOf('gw');
    await vi.advanceTimersByTimeAsync(3 * minAnswerMs);
    expect([names.addressesOf('gw'), asked.length]).toEqual([['1.1.1.1'], 4]);
    names.stop();
  });

  it('are not asked for any more once nobody wants them', async () => {
    const { names, asked } = given([answer(0, '1.1.1.1')]);
    names.addressesOf('gw');
    await vi.advanceTimersByTimeAsync(0);
    names.keepOnly(new Set());
    await vi.advanceTimersByTimeAsync(10 * minAnswerMs);
    expect(asked).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});
