import { expect, it } from 'vitest';
import { document } from '../../../../test/fixtures/given-objects.ts';
import { validateFiles } from './validate-files.ts';

const policy = (name: string, validation: string, creationTime = '2024-01-01T00:00:00Z'): string =>
  document(
    'BackendTLSPolicy',
    name,
    `{targetRefs: [{group: "", kind: Service, name: cart}], validation: {hostname: a.test, ${validation}}}`,
    { created: creationTime },
  );
const system = 'wellKnownCACertificates: System';

async function warnings(...documents: string[]): Promise<string[]> {
  const { problems } = await validateFiles([], [{ file: 'a.yaml', text: documents.join('') }]);
  return problems.map(({ severity, object, message }) => `${severity} ${object}: ${message}`);
}

it('validate warns about a BackendTLSPolicy without usable CA certificates', async () => {
  expect(await warnings(policy('tls', 'caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]'))).toEqual([
    'warning BackendTLSPolicy shop/tls: no reference has a valid CA certificate: requests get 503; ConfigMap shop/ca does not exist',
  ]);
});

it('validate warns about the younger of two BackendTLSPolicies for one Service', async () => {
  expect(await warnings(policy('a', system, '2024-02-01T00:00:00Z'), policy('b', system))).toEqual([
    'warning BackendTLSPolicy shop/a: BackendTLSPolicy shop/b applies to Service cart instead: it is older, or first by name',
  ]);
});

it('validate warns about a port name that the Service does not have, because connections then stay unencrypted', async () => {
  const service = document('Service', 'cart', '{ports: [{name: https, port: 443}]}');
  const targets = '{targetRefs: [{group: "", kind: Service, name: cart, sectionName: nosuch}], ';
  const mistyped = document('BackendTLSPolicy', 'tls', `${targets}validation: {hostname: a.test, ${system}}}`);
  expect(await warnings(service, mistyped)).toEqual([
    expect.stringMatching(
      /^warning BackendTLSPolicy shop\/tls: Service shop\/cart has no port named nosuch \(its ports: https\),.* connections to the port are plaintext/,
    ),
  ]);
});

it('validate reports which connections an invalid BackendTLSPolicy closes', async () => {
  expect(await warnings(policy('tls', `${system}, crl: list`))).toEqual([
    'warning BackendTLSPolicy shop/tls: the object is rejected and has no valid earlier version, so requests from gateways to Service cart of namespace shop get 503',
    'error BackendTLSPolicy shop/tls: unknown field',
  ]);
});

it('validate accepts a BackendTLSPolicy that gateways can apply', async () => {
  expect(await warnings(policy('tls', system))).toEqual([]);
});
