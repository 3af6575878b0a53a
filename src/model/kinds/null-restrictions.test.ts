/** Tests that `null` is rejected in restrictions. As an empty list it would deny everything, and as an absent field allow everything. */
import { expect, test } from 'vitest';
import { readConfigFile } from '../config/config-file.ts';

function read(kind: string, group: string, spec: string): { valid: number; messages: string[] } {
  const text = `apiVersion: ${group}/v1\nkind: ${kind}\nmetadata: {name: a, namespace: b}\nspec: ${spec}\n`;
  const { configs, problems } = readConfigFile('a.yaml', text, { creationTimestamp: 0 });
  return { valid: configs.length, messages: problems.map(({ severity, field }) => `${severity} ${field}`) };
}

const mutual = (field: string): string =>
  `{selector: {a: b}, servers: [{port: {number: 443, name: h, protocol: HTTPS}, hosts: [a.com], tls: {mode: MUTUAL, credentialName: x, ${field}}}]}`;

test.each([
  ['AuthorizationPolicy', '{action: ALLOW, rules: [{}], targetRef: null}', 'spec.targetRef'],
  ['RequestAuthentication', '{targetRef: null}', 'spec.targetRef'],
])('a %s with a null target is rejected, and does not apply to everything', (kind, spec, field) => {
  expect(read(kind, 'security.istio.io', spec)).toEqual({ valid: 0, messages: [`error ${field}`] });
});

test.each(['subjectAltNames', 'verifyCertificateHash', 'verifyCertificateSpki'])(
  'a null restriction of gateway clients by %s is rejected, and an empty list causes a warning',
  (field) => {
    const path = `spec.servers[0].tls.${field}`;
    expect(read('Gateway', 'networking.istio.io', mutual(`${field}: null`))).toEqual({
      valid: 0,
      messages: [`error ${path}`],
    });
    expect(read('Gateway', 'networking.istio.io', mutual(`${field}: []`))).toEqual({
      valid: 1,
      messages: [`warning ${path}`],
    });
  },
);

test.each(['subjectAltNames', 'caCertificates'])(
  "a null restriction of a DestinationRule's servers by %s is rejected, and an empty list causes a warning",
  (field) => {
    const spec = `{host: a.b, trafficPolicy: {tls: {mode: SIMPLE, ${field}: null}}}`;
    const messages = [`error spec.trafficPolicy.tls.${field}`];
    expect(read('DestinationRule', 'networking.istio.io', spec)).toEqual({ valid: 0, messages });
  },
);

test('the deprecated spelling of a mirror percentage is accepted', () => {
  const spec = '{hosts: [a.b], http: [{route: [{destination: {host: a.b}}], mirror: {host: c.d}, mirror_percent: 50}]}';
  expect(read('VirtualService', 'networking.istio.io', spec)).toEqual({ valid: 1, messages: [] });
});
