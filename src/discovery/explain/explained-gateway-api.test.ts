import { expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { document, service } from '../../../test/fixtures/given-objects.ts';
import { configKeyText } from '../../model/config/config.ts';
import { explain } from '../../networking/explain/explain.ts';
import { generatedConfiguration } from './generated.ts';
import { ConfigOrigins } from './sources.ts';
import { describeExplanation } from './text.ts';

const yaml = [
  document('Gateway', 'front', '{gatewayClassName: istio, listeners: [{name: web, port: 8080, protocol: HTTP}]}'),
  document(
    'HTTPRoute',
    'r',
    '{parentRefs: [{name: front}], hostnames: [a.test], rules: [{matches: [{path: {value: /a}}, {path: {value: /b}}], backendRefs: [{name: cart, port: 80}]}]}',
  ),
  service('cart'),
].join('');

it('explain names Gateway API objects and their fields instead of the generated objects', () => {
  const { context, configs } = givenMesh(yaml);
  const all = new Map(Object.values(configs).flatMap((list) => list.map((one) => [configKeyText(one), one])));
  const labels = { 'gateway.networking.k8s.io/gateway-name': 'front' };
  const shape = givenShape({ type: 'router', namespace: 'shop', labels }, context);
  const explanation = explain(generatedConfiguration(shape, context), {
    direction: 'outbound',
    destination: { port: 8080 },
    http: { version: 'HTTP/1.1', authority: 'a.test', path: '/b', method: 'GET', headers: {} },
  });
  const { steps } = describeExplanation(explanation, new ConfigOrigins((key) => all.get(configKeyText(key))));
  const from = Object.fromEntries(
    steps.map((step) => [step.what, step.from.map(({ object, field }) => `${object} ${field}`)]),
  );
  expect(from).toMatchObject({
    'filter chain': ['KubernetesGateway shop/front spec.listeners[0]'],
    'virtual host': ['KubernetesGateway shop/front spec.listeners[0]', 'HTTPRoute shop/r spec.hostnames'],
    route: ['HTTPRoute shop/r spec.rules[0].matches[1]'],
  });
  expect(steps.find(({ what }) => what === 'route')!.from[0]!.place).toMatch(/^given.yaml:/);
});

it('explain names the BackendTLSPolicy and its ConfigMaps for a connection to a Service', () => {
  const spec =
    '{targetRefs: [{group: "", kind: Service, name: cart}], validation: {hostname: a.test, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}';
  const { context, configs } = givenMesh(yaml + document('BackendTLSPolicy', 'tls', spec));
  const all = new Map(Object.values(configs).flatMap((list) => list.map((one) => [configKeyText(one), one])));
  const labels = { 'gateway.networking.k8s.io/gateway-name': 'front' };
  const shape = givenShape({ type: 'router', namespace: 'shop', labels }, context);
  const explanation = explain(generatedConfiguration(shape, context), {
    direction: 'outbound',
    destination: { port: 8080 },
    http: { version: 'HTTP/1.1', authority: 'a.test', path: '/a', method: 'GET', headers: {} },
  });
  const { steps } = describeExplanation(explanation, new ConfigOrigins((key) => all.get(configKeyText(key))));
  const cluster = steps.find(({ what }) => what === 'cluster')!;
  expect(cluster.from.map(({ object }) => object)).toEqual(
    expect.arrayContaining(['BackendTLSPolicy shop/tls', 'ConfigMap shop/ca']),
  );
});

it.each([
  ['TCPRoute', '{name: l, port: 8080, protocol: TCP}', '', {}],
  [
    'TLSRoute',
    '{name: l, port: 8080, protocol: TLS, tls: {mode: Passthrough}}',
    'hostnames: [a.test], ',
    { tls: { sni: 'a.test', alpn: [] } },
  ],
])('explain names the %s that routes a connection', (kind, listener, extraSpec, flags) => {
  const { context, configs } = givenMesh(
    document('Gateway', 'front', `{gatewayClassName: istio, listeners: [${listener}]}`) +
      document(
        kind,
        'r',
        `{parentRefs: [{name: front}], ${extraSpec}rules: [{backendRefs: [{name: cart, port: 80}]}]}`,
      ) +
      service('cart'),
  );
  const all = new Map(Object.values(configs).flatMap((list) => list.map((one) => [configKeyText(one), one])));
  const labels = { 'gateway.networking.k8s.io/gateway-name': 'front' };
  const shape = givenShape({ type: 'router', namespace: 'shop', labels }, context);
  const question = { direction: 'outbound' as const, destination: { port: 8080 }, ...flags };
  const { steps } = describeExplanation(
    explain(generatedConfiguration(shape, context), question),
    new ConfigOrigins((key) => all.get(configKeyText(key))),
  );
  const chain = steps.find(({ what }) => what === 'filter chain')!;
  expect(chain.from.map(({ object, field }) => `${object} ${field}`)).toEqual([
    `${kind} shop/r spec.rules[0]`,
    'KubernetesGateway shop/front spec.listeners[0]',
  ]);
});
