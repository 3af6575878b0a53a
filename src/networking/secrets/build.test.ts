import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { createAuthority } from '../../../test/certs/authority.ts';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import type { Secret } from '../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import { buildSecrets, unservedCredential } from './build.ts';
import { credentialsOfServer, parseCredentialName, serverCredentials, subjectOfCredential } from './credential-name.ts';

const authority = createAuthority();
const web = authority.issue(['web.test']);
const pair = { 'tls.crt': web.certificate, 'tls.key': web.privateKey };

function object(kind: string, id: string, entries: object): string {
  const [namespace, name] = id.split('/');
  const objectHead = { apiVersion: 'v1', kind, metadata: { namespace, name } };
  return stringify(kind === 'Secret' ? { ...objectHead, stringData: entries } : { ...objectHead, data: entries });
}

function context(...documents: string[]) {
  return givenMesh(documents.join('---\n')).context;
}

const edge = givenShape({ type: 'router', namespace: 'edge' });

/** Returns `NAME: TYPE` for each resource. */
function servedTypes(push: ReturnType<typeof context>, ...names: string[]): Record<string, string> {
  return Object.fromEntries(
    buildSecrets(edge, push, names).map(({ name, message }) => {
      const { type } = message as Secret;
      const bytes =
        type.case === 'tlsCertificate'
          ? type.value.privateKey?.specifier.value
          : type.case === 'validationContext'
            ? type.value.trustedCa?.specifier.value
            : undefined;
      return [name, `${type.case} ${Buffer.from(bytes as Uint8Array).toString()}`];
    }),
  );
}

const certificate = `tlsCertificate ${web.privateKey}`;
const roots = `validationContext ${authority.certificate}`;

describe('Secrets requested by name', () => {
  it('a Secret provides the certificate, the key and the roots', () => {
    const push = context(object('Secret', 'edge/web', { ...pair, 'ca.crt': authority.certificate }));
    expect(servedTypes(push, 'kubernetes://web', 'kubernetes://web-cacert', 'kubernetes://edge/web')).toEqual({
      'kubernetes://web': certificate,
      'kubernetes://web-cacert': roots,
      'kubernetes://edge/web': certificate,
    });
  });

  it('roots are read from a separate object', () => {
    const rootsObject = object('Secret', 'edge/web-cacert', { cacert: authority.certificate });
    const push = context(object('Secret', 'edge/web', { ...pair, 'ca.crt': web.certificate }), rootsObject);
    expect(servedTypes(push, 'kubernetes://web-cacert')).toEqual({ 'kubernetes://web-cacert': roots });
    expect(
      servedTypes(
        context(object('ConfigMap', 'edge/ca', { 'ca.crt': authority.certificate })),
        'configmap://ca-cacert',
      ),
    ).toEqual({
      'configmap://ca-cacert': roots,
    });
  });

  it.each([
    ['of a Secret in another namespace', 'kubernetes://other/web', /in namespace other/],
    ['of a Secret that only exists in another namespace', 'kubernetes://there', /no Secret edge\/there/],
    ['of a Secret without a credential', 'kubernetes://bad', /Secret edge\/bad has no entries tls\.crt and tls\.key/],
    ['of CA certificates that the Secret lacks', 'kubernetes://web-cacert', /has no entry ca\.crt/],
    ['of a missing ConfigMap', 'configmap://ca', /no ConfigMap edge\/ca/],
    ['with another scheme', 'file-cert:/etc/cert~/etc/key', /must be kubernetes:\/\/NAME/],
    ['with too many segments', 'kubernetes://a/b/c', /must be kubernetes:\/\/NAME/],
  ])('the name %s is omitted with a reason', (_, name, reason) => {
    const push = context(
      object('Secret', 'edge/web', pair),
      object('Secret', 'edge/bad', { password: 'x' }),
      object('Secret', 'other/web', pair),
      object('Secret', 'other/there', pair),
      object('ConfigMap', 'edge/ca', { 'ca.crt': authority.certificate }),
    );
    expect(servedTypes(push, name)).toEqual({});
    expect(unservedCredential(name, 'edge', push)?.text).toMatch(reason);
    expect(unservedCredential('kubernetes://web', 'edge', push)).toBeUndefined();
  });

  it('a resource depends on the object that it is built from', () => {
    const push = context(object('Secret', 'edge/web', pair));
    const [built] = buildSecrets(edge, push, ['kubernetes://web']);
    expect(built?.dependsOn).toEqual([{ kind: 'Secret', namespace: 'edge', name: 'web' }]);
  });
});

describe('credential names', () => {
  it('credential names are parsed', () => {
    expect(parseCredentialName('kubernetes://web', 'edge')).toEqual({
      kind: 'Secret',
      namespace: 'edge',
      name: 'web',
      roots: false,
    });
    expect(parseCredentialName('configmap://other/ca-cacert', 'edge')).toEqual({
      kind: 'ConfigMap',
      namespace: 'other',
      name: 'ca',
      roots: true,
    });
    for (const name of ['web', 'kubernetes://', 'kubernetes://-cacert', 'kubernetes:///web', 'other://web']) {
      expect(parseCredentialName(name, 'edge'), name).toBeUndefined();
    }
  });

  it('names with and without the suffix refer to the same subject', () => {
    for (const name of [
      'kubernetes://web',
      'kubernetes://web-cacert',
      'configmap://edge/web-cacert',
      'web',
      'web-cacert',
    ]) {
      expect(subjectOfCredential(name), name).toBe('web');
    }
  });

  it('a server requests the credentials in its settings', () => {
    expect(credentialsOfServer({ mode: 'SIMPLE', credentialName: 'web' })).toEqual(['kubernetes://web']);
    expect(credentialsOfServer({ mode: 'MUTUAL', credentialNames: ['a', 'b'] })).toEqual([
      'kubernetes://a',
      'kubernetes://b',
      'kubernetes://a-cacert',
    ]);
    expect(
      credentialsOfServer({ mode: 'OPTIONAL_MUTUAL', credentialName: 'web', caCertCredentialName: 'configmap://ca' }),
    ).toEqual(['kubernetes://web', 'configmap://ca-cacert']);
    const fields = (tls: Parameters<typeof serverCredentials>[0]) => serverCredentials(tls).map(({ field }) => field);
    expect(fields({ mode: 'MUTUAL', credentialNames: ['a', 'b'] })).toEqual([
      ...['credentialNames[0]', 'credentialNames[1]', 'credentialNames[0]'],
    ]);
    expect(fields({ mode: 'MUTUAL', credentialName: 'web', caCertCredentialName: 'ca' })).toEqual([
      ...['credentialName', 'caCertCredentialName'],
    ]);
    expect(credentialsOfServer({ mode: 'PASSTHROUGH' })).toEqual([]);
    expect(credentialsOfServer({ mode: 'SIMPLE', serverCertificate: '/c', privateKey: '/k' })).toEqual([]);
  });
});
