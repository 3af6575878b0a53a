import { describe, expect, it } from 'vitest';
import { createActor } from 'xstate';
import type { NameAnswer } from '../../../machines/discovery/registry/gateway-name.machine.ts';
import { gatewayNamesWithEffects } from './gateway-names.effects.ts';
import { answerOf, GatewayNames, resolveByDns } from './gateway-names.ts';

function given() {
  const wanted: string[][] = [];
  let changes = 0;
  const names = new GatewayNames(() => changes++);
  const forget = names.onWanted((hostnames) => wanted.push([...hostnames]));
  return { names, wanted, forget, changes: () => changes };
}

const found = (address: string, ttl: number) => ({ status: 'fulfilled', value: [{ address, ttl }] }) as const;
const failed = (reason: string) => ({ status: 'rejected', reason: new Error(reason) }) as const;

describe('names of gateways', () => {
  it('have no address until one is adopted, which is a change', () => {
    const { names, wanted, changes } = given();
    names.want(new Set(['gw']));
    expect([names.addressesOf('gw'), wanted]).toEqual([[], [['gw']]]);
    names.adopt('gw', ['1.1.1.1']);
    expect([names.addressesOf('gw'), changes()]).toEqual([['1.1.1.1'], 1]);
  });

  it('are told to who follows them only when they are others', () => {
    const { names, wanted, forget } = given();
    names.want(new Set(['a', 'b']));
    names.want(new Set(['b', 'a']));
    names.want(new Set(['a', 'c']));
    forget();
    names.want(new Set());
    expect(wanted).toEqual([
      ['a', 'b'],
      ['a', 'c'],
    ]);
  });

  it('are forgotten with their addresses once nobody wants them, and a late answer changes nothing', () => {
    const { names, changes } = given();
    names.want(new Set(['gw']));
    names.adopt('gw', ['1.1.1.1']);
    names.want(new Set(['other']));
    names.adopt('gw', ['2.2.2.2']);
    expect([names.addressesOf('gw'), changes()]).toEqual([[], 1]);
  });

  it('are resolved by their chart as soon as they are wanted', async () => {
    const { names } = given();
    const asked: string[] = [];
    const answer: NameAnswer = { outcome: 'resolved', addresses: ['1.1.1.1'], timeToLiveMs: 30_000 };
    const chart = createActor(
      gatewayNamesWithEffects(names, async (hostname) => {
        asked.push(hostname);
        return answer;
      }),
    ).start();
    names.want(new Set(['gw']));
    await expect.poll(() => names.addressesOf('gw')).toEqual(['1.1.1.1']);
    chart.stop();
    names.want(new Set(['gw', 'other']));
    expect(asked).toEqual(['gw']);
  });
});

describe('an answer of DNS', () => {
  it('has the addresses of both families, each once and sorted, and the shortest time to live', () => {
    expect(answerOf([found('2.2.2.2', 90), found('1::1', 60)])).toEqual({
      outcome: 'resolved',
      addresses: ['1::1', '2.2.2.2'],
      timeToLiveMs: 60_000,
    });
    expect(answerOf([found('2.2.2.2', 90), found('2.2.2.2', 90)])).toMatchObject({ addresses: ['2.2.2.2'] });
  });

  it('of one family is enough; of none says why', () => {
    expect(answerOf([failed('SERVFAIL'), found('1::1', 60)])).toMatchObject({ addresses: ['1::1'] });
    expect(answerOf([failed('ETIMEOUT a'), failed('ENOTFOUND b')])).toEqual({
      outcome: 'failed',
      reason: 'ETIMEOUT a; ENOTFOUND b',
    });
    expect(answerOf([{ status: 'fulfilled', value: [] }])).toEqual({
      outcome: 'failed',
      reason: 'the name has no address',
    });
  });

  it('of what cannot be a name is a failure, and never thrown', async () => {
    const answer = await resolveByDns(`${'a'.repeat(70)}.example`, AbortSignal.timeout(30_000));
    expect(answer).toMatchObject({ outcome: 'failed' });
  });
});
