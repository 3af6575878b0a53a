import { describe, expect, it } from 'vitest';
import type { ApplicationProtocol } from '../../../model/fields/protocol.ts';
import { OutboundPlan, type TcpChainPlan } from './outbound-plan.ts';

const listenerPlace = { bind: '0.0.0.0', port: 80, bindToPort: false, isExclusive: false };
const http = { routeName: '80', grpcWeb: false };

function chain(
  cluster: string,
  match: TcpChainPlan['match'] = {},
  protocol: ApplicationProtocol = 'TCP',
): TcpChainPlan {
  return {
    match,
    protocol,
    port: 80,
    firstDestination: { host: cluster },
    destinations: [{ cluster, weight: 0 }],
    origins: [],
  };
}

function clusters(plan: OutboundPlan): string[][] {
  return plan.listeners.map(({ tcp }) => tcp.map(({ destinations }) => destinations[0]!.cluster));
}

describe('services with the same address', () => {
  it('HTTP and TCP services share one listener, regardless of order', () => {
    const plan = new OutboundPlan();
    plan.addTcp(listenerPlace, [chain('a')], []);
    plan.addHttp(listenerPlace, http, []);
    expect(plan.listeners).toHaveLength(1);
    expect(plan.listeners[0]?.http).toEqual(http);
    expect(clusters(plan)).toEqual([['a']]);
  });

  it('the older of two TCP services with equal matches applies', () => {
    const plan = new OutboundPlan();
    plan.addTcp(listenerPlace, [chain('older')], []);
    plan.addTcp(listenerPlace, [chain('newer'), chain('by-sni', { serverNames: ['b', 'a'] })], []);
    plan.addTcp(listenerPlace, [chain('same-sni', { serverNames: ['a', 'b'] })], []);
    expect(clusters(plan)).toEqual([['older', 'by-sni']]);
  });

  it('a younger TCP service gets the remaining server names', () => {
    const plan = new OutboundPlan();
    plan.addTcp(listenerPlace, [chain('older', { serverNames: ['a', 'b'] })], []);
    plan.addTcp(listenerPlace, [chain('newer', { serverNames: ['b', 'c'] })], []);
    expect(plan.listeners[0]?.tcp.map(({ match }) => match.serverNames)).toEqual([['a', 'b'], ['c']]);
  });

  it('a server-first service does not share its address', () => {
    const plan = new OutboundPlan();
    plan.addTcp(listenerPlace, [chain('mongo', {}, 'Mongo')], []);
    plan.addHttp(listenerPlace, http, []);
    plan.addTcp(listenerPlace, [chain('tcp', { destinationSubnets: ['10.0.0.0/8'] })], []);
    expect(plan.listeners[0]?.http).toBeUndefined();
    expect(clusters(plan)).toEqual([['mongo']]);
  });

  it("a Sidecar object's egress listener keeps its address", () => {
    const plan = new OutboundPlan();
    plan.addHttp({ ...listenerPlace, isExclusive: true }, http, []);
    plan.addTcp(listenerPlace, [chain('a')], []);
    expect(clusters(plan)).toEqual([[]]);
  });
});
