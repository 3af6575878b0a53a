/** Which settings of a server's TLS would let in whom they are to keep out: they are refused, or told. */
import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { kinds } from './index.ts';

const ofGateway = (tls: string): unknown =>
  parse(`servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {${tls}}}]`);
const ofSidecar = (tls: string): unknown =>
  parse(`ingress: [{port: {number: 443, name: https, protocol: HTTPS}, tls: {${tls}}}]`);

const places = [
  ['Gateway', 'servers[0].tls', ofGateway],
  ['Sidecar', 'ingress[0].tls', ofSidecar],
] as const;

const pair = 'tlsCertificates: [{serverCertificate: /c, privateKey: /k}]';

describe.each(places)('of a %s', (kind, at, spec) => {
  const errorsOf = (tls: string): string[] => {
    const decoded = kinds[kind].decode(spec(tls), 'shop');
    return E.isLeft(decoded) ? decoded.left.map(({ path, message }) => `${path}: ${message}`) : [];
  };
  const warnings = (tls: string): string[] => {
    const decoded = kinds[kind].decode(spec(tls), 'shop');
    if (E.isLeft(decoded)) throw new Error(JSON.stringify(decoded.left));
    const found = (kinds[kind].warnings as (spec: unknown) => readonly { path: string; message: string }[])(
      decoded.right,
    );
    return found.map(({ path, message }) => `${path}: ${message}`);
  };

  it('names of files have no NUL, before which another name would be read', () => {
    const odd = String.raw`tlsCertificates: [{serverCertificate: "/c\0.pem", privateKey: /k}]`;
    expect(errorsOf(`mode: SIMPLE, ${odd}`).join()).toContain('in which there is no NUL');
    expect(errorsOf(String.raw`mode: MUTUAL, caCertificates: "/ca\0", ${pair}`).join()).toContain('no NUL');
    expect(errorsOf(`mode: SIMPLE, tlsCertificates: [{serverCertificate: "/a certificate", privateKey: /k}]`)).toEqual(
      [],
    );
  });

  describe.each(['MUTUAL', 'OPTIONAL_MUTUAL'])('%s', (mode) => {
    it.each([
      ['certificates of files', pair],
      [
        'several of them',
        'tlsCertificates: [{serverCertificate: /a, privateKey: /b}, {serverCertificate: /c, privateKey: /d}]',
      ],
      ['an empty list of credentials beside them', `credentialNames: [], ${pair}`],
    ])('without an authority is refused: %s', (_, tls) => {
      expect(errorsOf(`mode: ${mode}, ${tls}`)).toEqual([
        `${at}.caCertificates: is required with mode ${mode}, here or in tlsCertificates, or else caCertCredentialName`,
      ]);
    });

    it.each([
      ['one of its own', `${pair}, caCertificates: /ca`],
      [
        'that of one of the certificates',
        'tlsCertificates: [{serverCertificate: /c, privateKey: /k, caCertificates: /ca}]',
      ],
      ['one by name', `${pair}, caCertCredentialName: roots`],
      ['that of its credential', 'credentialName: web'],
    ])('with an authority is taken: %s', (_, tls) => {
      expect(errorsOf(`mode: ${mode}, ${tls}`)).toEqual([]);
      expect(warnings(`mode: ${mode}, ${tls}`)).toEqual([]);
    });

    it.each([
      ['serverCertificate: /c, privateKey: /k', 'caCertificates', 'is required'],
      ['serverCertificate: /c, privateKey: /k, caCertificates: ""', 'caCertificates', 'must not be empty'],
      ['serverCertificate: /c, privateKey: /k, caCertificates: null', 'caCertificates', 'is required'],
      ['credentialName: ""', 'credentialName', 'must not be empty'],
      ['credentialName: web, subjectAltNames: [""]', 'subjectAltNames[0]', 'must not be empty'],
    ])('without what it needs is refused: %s', (tls, field, fragment) => {
      expect(errorsOf(`mode: ${mode}, ${tls}`)).toContainEqual(
        expect.stringMatching(`^${`${at}.${field}`.replace(/[[\].]/g, '\\$&')}: ${fragment}`),
      );
    });
  });

  it.each(['mutual', 'Mutual', 'MUTUAL ', 'MTLS', ''])('a mode that nobody knows is refused: %j', (mode) => {
    expect(errorsOf(`mode: ${JSON.stringify(mode)}, credentialName: web`)).toContainEqual(
      expect.stringMatching(/tls\.mode: must be one of/),
    );
  });

  it('a revocation list is refused where clients show no certificates', () => {
    expect(errorsOf('mode: SIMPLE, serverCertificate: /c, privateKey: /k, caCrl: /crl')).toEqual([
      `${at}.caCrl: must not be given with mode SIMPLE: use MUTUAL`,
    ]);
  });

  it('what restricts nobody is told', () => {
    const inVain = 'restricts nobody with mode SIMPLE, in which clients show no certificates: use MUTUAL';
    expect(warnings('mode: SIMPLE, credentialName: web, subjectAltNames: [client.test]')).toEqual([
      `${at}.subjectAltNames: ${inVain}`,
    ]);
    expect(warnings('mode: SIMPLE, serverCertificate: /c, privateKey: /k, caCertificates: /ca')).toEqual([
      `${at}.caCertificates: ${inVain}`,
    ]);
  });
});

it('a misspelt restriction is refused, not left out', () => {
  const decoded = kinds.Gateway.decode(
    ofGateway('mode: MUTUAL, credentialName: web, subjectAltName: [client.test]'),
    'shop',
  );
  expect(E.isLeft(decoded) && decoded.left.map(({ path }) => path)).toEqual(['servers[0].tls.subjectAltName']);
});

it('TLS that does not end at the gateway needs no certificates: what is given is told', () => {
  const decoded = kinds.Gateway.decode(ofGateway('credentialName: web, caCertCredentialName: roots'), 'shop');
  if (E.isLeft(decoded)) throw new Error(JSON.stringify(decoded.left));
  expect(kinds.Gateway.warnings(decoded.right).map(({ path, message }) => `${path}: ${message}`)).toEqual([
    'servers[0].tls.credentialName: has no effect with mode PASSTHROUGH, in which TLS does not end here',
    'servers[0].tls.caCertCredentialName: has no effect with mode PASSTHROUGH, in which TLS does not end here',
  ]);
});

it('authorities of others are refused with ISTIO_MUTUAL, which has the mesh’s', () => {
  const decoded = kinds.Gateway.decode(ofGateway('mode: ISTIO_MUTUAL, caCertCredentialName: roots'), 'shop');
  expect(E.isLeft(decoded) && decoded.left.map(({ message }) => message)).toEqual([
    'must not have caCertCredentialName with ISTIO_MUTUAL',
  ]);
});
