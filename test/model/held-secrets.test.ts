/** A client acknowledges clusters once it has their secrets, so a change of secrets does not wait for that acknowledgement. */
import { expect, test } from 'vitest';
import { type ExchangeEvent, newExchange, stepOf } from '../../machines/discovery/xds/ads-exchange.ts';
import {
  clusterType,
  listenerType,
  nameTableType,
  proxyConfigType,
  routeType,
  secretType,
} from '../../machines/discovery/xds/ads-types.ts';

const rules = { resendsEndpoints: true, acceptsLateNames: true, maxNames: 10, maxNameChars: 100 };

/** A client that has acknowledged neither its last clusters nor anything else that is pushed. */
function withWarmingClusters(typeUrl: string) {
  let exchange = newExchange;
  const applyEvent = (event: ExchangeEvent): string[] => {
    const step = stepOf(exchange, event, rules);
    exchange = step.exchange;
    return step.orders.map((order) => order.typeUrl);
  };
  const subscribe = (type: string, nonce: string): void => {
    const names = type === clusterType || type === listenerType ? [] : ['a'];
    applyEvent({
      type: 'request.received',
      request: { protocol: 'sotw', typeUrl: type, nonce: '', names, rejection: null },
    });
    const figures = { resources: 1, removed: 0, sentAt: 1 };
    applyEvent({ type: 'response.sent', typeUrl: type, nonce, version: nonce, ...figures });
  };
  subscribe(typeUrl, '1');
  applyEvent({
    type: 'request.received',
    request: { protocol: 'sotw', typeUrl, nonce: '1', names: ['a'], rejection: null },
  });
  subscribe(clusterType, '2');
  return applyEvent;
}

test.each([secretType, nameTableType, proxyConfigType])(
  'a response of type %s is sent while a change of clusters waits',
  (typeUrl) => {
    const applyEvent = withWarmingClusters(typeUrl);
    expect(applyEvent({ type: 'connection.push', version: 'v', types: [clusterType] })).toEqual([]);
    expect(applyEvent({ type: 'connection.push', version: 'v', types: [clusterType, typeUrl] })).toEqual([typeUrl]);
  },
);

test.each([listenerType, routeType])('a response of type %s waits together with the change of clusters', (typeUrl) => {
  const applyEvent = withWarmingClusters(typeUrl);
  expect(applyEvent({ type: 'connection.push', version: 'v', types: [clusterType, typeUrl] })).toEqual([]);
});
