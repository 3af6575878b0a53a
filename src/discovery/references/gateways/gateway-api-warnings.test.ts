import { expect, it } from 'vitest';
import { warningTable } from '../../../runtime/errors.ts';
import { validateFiles } from '../../config/validation/validate-files.ts';

const api = 'gateway.networking.k8s.io/v1';

function object(apiVersion: string, kind: string, name: string, body: string, namespace = 'shop'): string {
  return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\n${body}\n---\n`;
}

const service = (name: string, namespace?: string): string =>
  object('v1', 'Service', name, 'spec: {clusterIP: 10.0.0.1, ports: [{port: 80, name: http}]}', namespace);
const secret = (name: string, namespace?: string): string =>
  object('v1', 'Secret', name, 'type: Opaque\nstringData: {key: ""}', namespace);
const gateway = (listener: string): string =>
  object(api, 'Gateway', 'edge', `spec: {gatewayClassName: istio, listeners: [${listener}]}`);
const http = '{name: http, port: 80, protocol: HTTP}';
const https = (tls: string): string => `{name: https, port: 443, protocol: HTTPS, tls: ${tls}}`;
const route = (spec: string): string => object(api, 'HTTPRoute', 'web', `spec: ${spec}`);
const toEdge = 'parentRefs: [{name: edge}]';

async function warningsOf(yaml: string): Promise<string[]> {
  const { problems } = await validateFiles([], [{ file: 'mesh.yaml', text: yaml }]);
  return problems
    .filter(({ code = '' }) => code in warningTable)
    .map(({ code, object, field }) => `${code} ${object} ${field}`);
}

it.each([
  [
    'an unknown option of a listener',
    gateway(https('{certificateRefs: [{name: web}], options: {gateway.istio.io/tls-terminate-mod: MUTUAL}}')) +
      secret('web'),
    'OPTION_UNKNOWN Gateway shop/edge spec.listeners[0].tls.options',
  ],
  [
    'an unknown cipher suite',
    gateway(
      https(
        '{certificateRefs: [{name: web}], options: {gateway.istio.io/tls-cipher-suites: "ECDHE-RSA-AES128-GCM-SHA256,NONE"}}',
      ),
    ) + secret('web'),
    'OPTION_UNKNOWN Gateway shop/edge spec.listeners[0].tls.options',
  ],
  [
    'a Secret of another namespace without a grant',
    gateway(https('{certificateRefs: [{name: web, namespace: keys}]}')) + secret('web', 'keys'),
    'REFERENCE_NOT_GRANTED Gateway shop/edge spec.listeners[0].tls.certificateRefs[0]',
  ],
  [
    'a Secret that does not exist',
    gateway(https('{certificateRefs: [{name: missing}]}')) + secret('web'),
    'CREDENTIAL_NOT_FOUND Gateway shop/edge spec.listeners[0].tls.certificateRefs[0]',
  ],
  [
    'a backend of another namespace without a grant',
    gateway(http) +
      service('web', 'back') +
      route(`{${toEdge}, rules: [{backendRefs: [{name: web, namespace: back, port: 80}]}]}`),
    'REFERENCE_NOT_GRANTED HTTPRoute shop/web spec.rules[0].backendRefs[0]',
  ],
  [
    'a backend that does not exist',
    gateway(http) + service('web') + route(`{${toEdge}, rules: [{backendRefs: [{name: wep, port: 80}]}]}`),
    'HOST_NOT_FOUND HTTPRoute shop/web spec.rules[0].backendRefs[0]',
  ],
  [
    'a port that the backend does not have',
    gateway(http) + service('web') + route(`{${toEdge}, rules: [{backendRefs: [{name: web, port: 81}]}]}`),
    'PORT_NOT_FOUND HTTPRoute shop/web spec.rules[0].backendRefs[0]',
  ],
  [
    'a mirror to a Service that does not exist',
    gateway(http) +
      service('web') +
      route(
        `{${toEdge}, rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: none, port: 80}}}], backendRefs: [{name: web, port: 80}]}]}`,
      ),
    'HOST_NOT_FOUND HTTPRoute shop/web spec.rules[0].filters[0].requestMirror.backendRef',
  ],
  [
    'a parentRef of a missing Gateway',
    gateway(http) +
      service('web') +
      route('{parentRefs: [{name: egde}], rules: [{backendRefs: [{name: web, port: 80}]}]}'),
    'GATEWAY_NOT_FOUND HTTPRoute shop/web spec.parentRefs[0]',
  ],
  [
    'a parentRef of a missing listener',
    gateway(http) +
      service('web') +
      route('{parentRefs: [{name: edge, sectionName: none}], rules: [{backendRefs: [{name: web, port: 80}]}]}'),
    'NOT_PROGRAMMED HTTPRoute shop/web spec.parentRefs[0]',
  ],
  [
    'a missing GatewayClass',
    gateway(http).replace('gatewayClassName: istio', 'gatewayClassName: none') +
      object(api, 'GatewayClass', 'other', 'spec: {controllerName: example.test/other}'),
    'CLASS_NOT_FOUND Gateway shop/edge spec.gatewayClassName',
  ],
])('validate reports %s', async (_, yaml, expected) => {
  expect(await warningsOf(yaml)).toEqual([expected]);
});

it.each([
  ['backends', gateway(http) + route(`{${toEdge}, rules: [{backendRefs: [{name: web, port: 80}]}]}`)],
  ['Gateways', service('web') + route('{parentRefs: [{name: edge}], rules: [{backendRefs: [{name: web, port: 80}]}]}')],
  ['Secrets', gateway(https('{certificateRefs: [{name: web}]}'))],
  ['ReferenceGrants', gateway(https('{certificateRefs: [{name: web, namespace: keys}]}'))],
])('validate does not report missing %s that can be in the cluster', async (_, yaml) => {
  expect(await warningsOf(yaml)).toEqual([]);
});
