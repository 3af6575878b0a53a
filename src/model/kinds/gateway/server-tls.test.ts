/** Tests that server TLS settings are rejected or reported if they would accept clients unintentionally. */

import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { codedError } from '../../../../test/fixtures/coded-error.ts';
import type { FieldError } from '../../fields/violation.ts';
import { kinds } from '../index.ts';

const gatewayTls = (tls: string): unknown =>
  parse(`servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {${tls}}}]`);
const sidecarTls = (tls: string): unknown =>
  parse(`ingress: [{port: {number: 443, name: https, protocol: HTTPS}, tls: {${tls}}}]`);

const tlsPlaces = [
  ['Gateway', 'servers[0].tls', gatewayTls],
  ['Sidecar', 'ingress[0].tls', sidecarTls],
] as const;

const pair = 'tlsCertificates: [{serverCertificate: /c, privateKey: /k}]';

describe.each(tlsPlaces)('server TLS of a %s', (kind, at, spec) => {
  const errorsOf = (tls: string): string[] => {
    const decoded = kinds[kind].decode(spec(tls), 'shop');
    return E.isLeft(decoded) ? decoded.left.map(codedError) : [];
  };
  const warnings = (tls: string): string[] => {
    const decoded = kinds[kind].decode(spec(tls), 'shop');
    if (E.isLeft(decoded)) throw new Error(JSON.stringify(decoded.left));
    const fieldErrors = (kinds[kind].warnings as (spec: unknown) => readonly FieldError[])(decoded.right);
    return fieldErrors.map(codedError);
  };

  it('is rejected if a file name contains NUL, because the name would be truncated there', () => {
    const oddCertificate = String.raw`tlsCertificates: [{serverCertificate: "/c\0.pem", privateKey: /k}]`;
    expect(errorsOf(`mode: SIMPLE, ${oddCertificate}`)).toEqual([
      `${at}.tlsCertificates[0].serverCertificate: FIELD_NOT_ALLOWED`,
    ]);
    expect(errorsOf(String.raw`mode: MUTUAL, caCertificates: "/ca\0", ${pair}`)).toContain(
      `${at}.caCertificates: FIELD_NOT_ALLOWED`,
    );
    expect(errorsOf(`mode: SIMPLE, tlsCertificates: [{serverCertificate: "/a certificate", privateKey: /k}]`)).toEqual(
      [],
    );
  });

  describe.each(['MUTUAL', 'OPTIONAL_MUTUAL'])('with mode %s', (mode) => {
    it.each([
      ['certificate files', pair],
      [
        'several certificate files',
        'tlsCertificates: [{serverCertificate: /a, privateKey: /b}, {serverCertificate: /c, privateKey: /d}]',
      ],
      ['an empty list of credentials with certificate files', `credentialNames: [], ${pair}`],
    ])('is rejected without a CA certificate: %s', (_, tls) => {
      expect(errorsOf(`mode: ${mode}, ${tls}`)).toEqual([`${at}.caCertificates: FIELD_REQUIRED`]);
    });

    it.each([
      ['a CA certificate file', `${pair}, caCertificates: /ca`],
      [
        'a CA certificate file of one of the certificates',
        'tlsCertificates: [{serverCertificate: /c, privateKey: /k, caCertificates: /ca}]',
      ],
      ['a CA certificate by name', `${pair}, caCertCredentialName: roots`],
      ['the CA certificate of its credential', 'credentialName: web'],
    ])('is accepted with a CA certificate: %s', (_, tls) => {
      expect(errorsOf(`mode: ${mode}, ${tls}`)).toEqual([]);
      expect(warnings(`mode: ${mode}, ${tls}`)).toEqual([]);
    });

    it.each([
      ['serverCertificate: /c, privateKey: /k', 'caCertificates', 'FIELD_REQUIRED'],
      ['serverCertificate: /c, privateKey: /k, caCertificates: ""', 'caCertificates', 'FIELD_EMPTY'],
      ['serverCertificate: /c, privateKey: /k, caCertificates: null', 'caCertificates', 'FIELD_REQUIRED'],
      ['credentialName: ""', 'credentialName', 'FIELD_EMPTY'],
      ['credentialName: web, subjectAltNames: [""]', 'subjectAltNames[0]', 'FIELD_EMPTY'],
    ])('is rejected without a required field: %s', (tls, field, coded) => {
      expect(errorsOf(`mode: ${mode}, ${tls}`)).toContain(`${at}.${field}: ${coded}`);
    });
  });

  it.each(['mutual', 'Mutual', 'MUTUAL ', 'MTLS', ''])('is rejected with the unknown mode %j', (mode) => {
    const nearHint = /^mutual ?$/i.test(mode) ? ' near MUTUAL' : '';
    expect(errorsOf(`mode: ${JSON.stringify(mode)}, credentialName: web`)).toContain(
      `${at}.mode: FIELD_VALUE_UNKNOWN got ${JSON.stringify(mode)}${nearHint}`,
    );
  });

  it('is rejected with a revocation list if clients do not present certificates', () => {
    expect(errorsOf('mode: SIMPLE, serverCertificate: /c, privateKey: /k, caCrl: /crl')).toEqual([
      `${at}.caCrl: FIELDS_EXCLUSIVE`,
    ]);
  });

  it('has a warning for a restriction without effect', () => {
    expect(warnings('mode: SIMPLE, credentialName: web, subjectAltNames: [client.test]')).toEqual([
      `${at}.subjectAltNames: FIELD_WITHOUT_EFFECT`,
    ]);
    expect(warnings('mode: SIMPLE, serverCertificate: /c, privateKey: /k, caCertificates: /ca')).toEqual([
      `${at}.caCertificates: FIELD_WITHOUT_EFFECT`,
    ]);
  });
});

it('server TLS with a misspelled restriction is rejected', () => {
  const decoded = kinds.Gateway.decode(
    gatewayTls('mode: MUTUAL, credentialName: web, subjectAltName: [client.test]'),
    'shop',
  );
  expect(E.isLeft(decoded) && decoded.left.map(({ path }) => path)).toEqual(['servers[0].tls.subjectAltName']);
});

it('server TLS that is not terminated at the gateway needs no certificates, and has a warning for configured ones', () => {
  const decoded = kinds.Gateway.decode(gatewayTls('credentialName: web, caCertCredentialName: roots'), 'shop');
  if (E.isLeft(decoded)) throw new Error(JSON.stringify(decoded.left));
  expect(kinds.Gateway.warnings(decoded.right).map(codedError)).toEqual([
    'servers[0].tls.credentialName: FIELD_WITHOUT_EFFECT',
    'servers[0].tls.caCertCredentialName: FIELD_WITHOUT_EFFECT',
  ]);
});

it('server TLS with ISTIO_MUTUAL is rejected with another CA certificate, because it uses the CA of the mesh', () => {
  const decoded = kinds.Gateway.decode(gatewayTls('mode: ISTIO_MUTUAL, caCertCredentialName: roots'), 'shop');
  expect(E.isLeft(decoded) && decoded.left.map(codedError)).toEqual(['servers[0].tls: FIELD_CONFLICT']);
});
