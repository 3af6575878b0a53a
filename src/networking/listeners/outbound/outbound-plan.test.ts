import { describe, expect, it } from 'vitest';
import type { ApplicationProtocol } from '../../../model/fields/protocol.ts';
import { OutboundPlan, type TcpChainPlan } from './outbound-plan.ts';

const place = { bind: '0.0.0.0', port: 80, bindToPort: false, isExclusive: false };
const http = { routeName: '80', grpcWeb: false };

function chain(
  cluster: string,
  match: TcpChainPlan['match'] = {},
  protocol: ApplicationProtocol = 'TCP',
): TcpChainPlan {
  return { match, protocol, port: 80, first: { host: cluster }, destinations: [{ cluster, weight: 0 }], origins: [] };
}

function clusters(plan: OutboundPlan): string[][] {
  return plan.listeners.map(({ tcp }) => tcp.map(({ destinations }) => destinations[0]!.cluster));
}

describe('services of one address', () => {
  it('HTTP and TCP share one listener, in any order', () => {
    const plan = new OutboundPlan();
    plan.addTcp(place, [chain('a')], []);
    plan.addHttp(place, http, []);
    expect(plan.listeners).toHaveLength(1);
    expect(plan.listeners[0]?.http).toEqual(http);
    expect(clusters(plan)).toEqual([['a']]);
  });

  it('the older of two TCP services with equal matches is kept', () => {
    const plan = new OutboundPlan();
    plan.addTcp(place, [chain('older')], []);
    plan.addTcp(place, [chain('newer'), chain('by-sni', { serverNames: ['b', 'a'] })], []);
    plan.addTcp(place, [chain('same-sni', { serverNames: ['a', 'b'] })], []);
    expect(clusters(plan)).toEqual([['older', 'by-sni']]);
  });

  it('a younger TCP service keeps the server names that are free', () => {
    const plan = new OutboundPlan();
    plan.addTcp(place, [chain('older', { serverNames: ['a', 'b'] })], []);
    plan.addTcp(place, [chain('newer', { serverNames: ['b', 'c'] })], []);
    expect(plan.listeners[0]?.tcp.map(({ match }) => match.serverNames)).toEqual([['a', 'b'], ['c']]);
  });

  it('a server-first protocol shares its address with no other', () => {
    const plan = new OutboundPlan();
    plan.addTcp(place, [chain('mongo', {}, 'Mongo')], []);
    plan.addHttp(place, http, []);
    plan.addTcp(place, [chain('tcp', { destinationSubnets: ['10.0.0.0/8'] })], []);
    expect(plan.listeners[0]?.http).toBeUndefined();
    expect(clusters(plan)).toEqual([['mongo']]);
  });

  it('an egress listener of the Sidecar object keeps its address', () => {
    const plan = new OutboundPlan();
    plan.addHttp({ ...place, isExclusive: true }, http, []);
    plan.addTcp(place, [chain('a')], []);
    expect(clusters(plan)).toEqual([[]]);
  });
});
