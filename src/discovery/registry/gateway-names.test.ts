import { describe, expect, it } from 'vitest';
import { createActor } from 'xstate';
import type { NameResolution } from '../../../machines/discovery/registry/gateway-name.machine.ts';
import { gatewayNamesWithEffects } from './gateway-names.effects.ts';
import { GatewayNames, mergeDnsResults, resolveByDns } from './gateway-names.ts';

function createNames() {
  const tracked: string[][] = [];
  let changes = 0;
  const names = new GatewayNames(() => changes++);
  const forget = names.onTrackedChanged((hostnames) => tracked.push([...hostnames]));
  return { names, tracked, forget, changes: () => changes };
}

const resolvedAddress = (address: string, ttl: number) => ({ status: 'fulfilled', value: [{ address, ttl }] }) as const;
const failedLookup = (reason: string) => ({ status: 'rejected', reason: new Error(reason) }) as const;

describe('host names of network gateways', () => {
  it('have no addresses until addresses are set, and setting them counts as a change', () => {
    const { names, tracked, changes } = createNames();
    names.track(new Set(['gw']));
    expect([names.addressesOf('gw'), tracked]).toEqual([[], [['gw']]]);
    names.setAddresses('gw', ['1.1.1.1']);
    expect([names.addressesOf('gw'), changes()]).toEqual([['1.1.1.1'], 1]);
  });

  it('are reported to listeners only when they change', () => {
    const { names, tracked, forget } = createNames();
    names.track(new Set(['a', 'b']));
    names.track(new Set(['b', 'a']));
    names.track(new Set(['a', 'c']));
    forget();
    names.track(new Set());
    expect(tracked).toEqual([
      ['a', 'b'],
      ['a', 'c'],
    ]);
  });

  it('are dropped with their addresses when they are no longer tracked, and ignore late responses', () => {
    const { names, changes } = createNames();
    names.track(new Set(['gw']));
    names.setAddresses('gw', ['1.1.1.1']);
    names.track(new Set(['other']));
    names.setAddresses('gw', ['2.2.2.2']);
    expect([names.addressesOf('gw'), changes()]).toEqual([[], 1]);
  });

  it('are resolved by their chart when they are tracked', async () => {
    const { names } = createNames();
    const resolvedNames: string[] = [];
    const result: NameResolution = { outcome: 'resolved', addresses: ['1.1.1.1'], timeToLiveMs: 30_000 };
    const chart = createActor(
      gatewayNamesWithEffects(names, async (hostname) => {
        resolvedNames.push(hostname);
        return result;
      }),
    ).start();
    names.track(new Set(['gw']));
    await expect.poll(() => names.addressesOf('gw')).toEqual(['1.1.1.1']);
    chart.stop();
    names.track(new Set(['gw', 'other']));
    expect(resolvedNames).toEqual(['gw']);
  });
});

describe('a DNS result', () => {
  it('contains distinct, sorted addresses of both families and the shortest TTL', () => {
    expect(mergeDnsResults([resolvedAddress('2.2.2.2', 90), resolvedAddress('1::1', 60)])).toEqual({
      outcome: 'resolved',
      addresses: ['1::1', '2.2.2.2'],
      timeToLiveMs: 60_000,
    });
    expect(mergeDnsResults([resolvedAddress('2.2.2.2', 90), resolvedAddress('2.2.2.2', 90)])).toMatchObject({
      addresses: ['2.2.2.2'],
    });
  });

  it('is successful if one address family succeeds, and contains both reasons if both fail', () => {
    expect(mergeDnsResults([failedLookup('SERVFAIL'), resolvedAddress('1::1', 60)])).toMatchObject({
      addresses: ['1::1'],
    });
    expect(mergeDnsResults([failedLookup('ETIMEOUT a'), failedLookup('ENOTFOUND b')])).toEqual({
      outcome: 'failed',
      reason: 'ETIMEOUT a; ENOTFOUND b',
    });
    expect(mergeDnsResults([{ status: 'fulfilled', value: [] }])).toEqual({
      outcome: 'failed',
      reason: 'the name has no address',
    });
  });

  it('is a failure, not an exception, if the name is invalid', async () => {
    const result = await resolveByDns(`${'a'.repeat(70)}.example`, AbortSignal.timeout(30_000));
    expect(result).toMatchObject({ outcome: 'failed' });
  });
});
