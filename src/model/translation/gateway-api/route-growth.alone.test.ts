/** Counts the work per Gateway API route, which must not grow with the number of routes. */
import { expect, it } from 'vitest';
import { document, service, setOf } from '../../../../test/fixtures/given-objects.ts';
import { countedWork, growthOfWork } from '../../../../test/harness/counted-work.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import { computeGatewayApiStatusInSteps } from './gateway-api-status.ts';
import { translateGatewayApi } from './translate.ts';

const [smallCount, largeCount] = [100, 400];
const maxExponent = 1.2;

const list = (size: number, build: (index: number) => string, separator = ''): string =>
  Array.from({ length: size }, (_, index) => build(index)).join(separator);
const gateway = (listeners: string): string =>
  document('Gateway', 'front', `{gatewayClassName: istio, listeners: [${listeners}]}`);
const route = (kind: string, index: number, extraSpec = '', matches = ''): string =>
  document(
    kind,
    `r${index}`,
    `{parentRefs: [{name: front}], ${extraSpec}rules: [{${matches}backendRefs: [{name: cart, port: 80}]}]}`,
  );
const tcpListeners = list(16, (i) => `{name: l${i}, port: ${9000 + i}, protocol: TCP}`, ', ');
const passthrough = '{name: l, port: 443, protocol: TLS, tls: {mode: Passthrough}}';
const plain = '{name: l, port: 80, protocol: HTTP}';

it.each<[string, string, (index: number) => string]>([
  ['TCPRoutes at 16 listeners', tcpListeners, (i) => route('TCPRoute', i)],
  ['TLSRoutes of different names', passthrough, (i) => route('TLSRoute', i, `hostnames: [h${i}.test], `)],
  ['TLSRoutes of one name', passthrough, (i) => route('TLSRoute', i, 'hostnames: [x.test], ')],
  ['GRPCRoutes of different names', plain, (i) => route('GRPCRoute', i, `hostnames: [h${i}.test], `)],
  [
    'GRPCRoutes of different methods',
    plain,
    (i) =>
      route(
        'GRPCRoute',
        i,
        '',
        `matches: [{method: {service: a.B${i}}}, {method: {type: RegularExpression, service: "a|b${i}"}}], `,
      ),
  ],
])('translating %s and computing their status has a linear cost', (_, listeners, build) => {
  const { exponent, tooFast } = growthOfWork(
    (size) => {
      const objects = setOf(gateway(listeners) + service('cart') + list(size, build));
      return countedWork(() => {
        translateGatewayApi(objects, 'cluster.local');
        runToEnd(computeGatewayApiStatusInSteps(objects, 'cluster.local'));
      });
    },
    smallCount,
    largeCount,
  );
  expect(tooFast).toEqual([]);
  expect(exponent).toBeLessThan(maxExponent);
});
