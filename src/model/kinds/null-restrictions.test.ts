/** `null` where somebody meant to write who may come: it is no list of nobody, and must not be one of everybody. */
import { expect, test } from 'vitest';
import { readConfigFile } from '../config/config-file.ts';

function read(kind: string, group: string, spec: string): { valid: number; told: string[] } {
  const text = `apiVersion: ${group}/v1\nkind: ${kind}\nmetadata: {name: a, namespace: b}\nspec: ${spec}\n`;
  const { configs, problems } = readConfigFile('a.yaml', text, { creationTimestamp: 0 });
  return { valid: configs.length, told: problems.map(({ severity, field }) => `${severity} ${field}`) };
}

const mutual = (field: string): string =>
  `{selector: {a: b}, servers: [{port: {number: 443, name: h, protocol: HTTPS}, hosts: [a.com], tls: {mode: MUTUAL, credentialName: x, ${field}}}]}`;

test.each([
  ['AuthorizationPolicy', '{action: ALLOW, rules: [{}], targetRef: null}', 'spec.targetRef'],
  ['RequestAuthentication', '{targetRef: null}', 'spec.targetRef'],
])('a policy is not for everybody because its target is null: %s', (kind, spec, field) => {
  expect(read(kind, 'security.istio.io', spec)).toEqual({ valid: 0, told: [`error ${field}`] });
});

test.each(['subjectAltNames', 'verifyCertificateHash', 'verifyCertificateSpki'])(
  'clients of a gateway are restricted by %s, or not: null is neither, and an empty list is told',
  (field) => {
    const path = `spec.servers[0].tls.${field}`;
    expect(read('Gateway', 'networking.istio.io', mutual(`${field}: null`))).toEqual({
      valid: 0,
      told: [`error ${path}`],
    });
    expect(read('Gateway', 'networking.istio.io', mutual(`${field}: []`))).toEqual({
      valid: 1,
      told: [`warning ${path}`],
    });
  },
);

test.each(['subjectAltNames', 'caCertificates'])('so are servers that a destination rule checks by %s', (field) => {
  const spec = `{host: a.b, trafficPolicy: {tls: {mode: SIMPLE, ${field}: null}}}`;
  const told = [`error spec.trafficPolicy.tls.${field}`];
  expect(read('DestinationRule', 'networking.istio.io', spec)).toEqual({ valid: 0, told });
});

test('the older spelling of a mirrored share is taken', () => {
  const spec = '{hosts: [a.b], http: [{route: [{destination: {host: a.b}}], mirror: {host: c.d}, mirror_percent: 50}]}';
  expect(read('VirtualService', 'networking.istio.io', spec)).toEqual({ valid: 1, told: [] });
});
