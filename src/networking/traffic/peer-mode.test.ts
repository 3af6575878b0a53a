import { describe, expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { activePeerModes, peerOrigins, unenforcedMutualTls } from './peer-mode.ts';

function policy(name: string, namespace: string, spec: string): string {
  return `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: ${name}, namespace: ${namespace} }
spec: ${spec}
---`;
}

const mesh = policy('mesh', 'istio-system', '{ mtls: { mode: STRICT } }');
const ownObject = policy(
  'web',
  'shop',
  '{ selector: { matchLabels: { app: web } }, portLevelMtls: { 9000: { mode: DISABLE }, 9001: { mode: UNSET } } }',
);

function givenModes(yaml: string, metadata: Record<string, string> = {}) {
  const { context } = givenMesh(yaml);
  const shape = givenShape({ namespace: 'shop', labels: { app: 'web' }, metadata }, context);
  return { context, shape };
}

describe('active peer modes', () => {
  it('PeerAuthentication determines the modes of a proxy with certificates, and all ports of other proxies accept only plaintext', () => {
    const withAgent = givenModes(mesh + ownObject, { ISTIO_VERSION: '1.30.0' });
    expect(activePeerModes(withAgent.shape, withAgent.context)).toEqual({
      mode: 'STRICT',
      ports: new Map([
        [9000, 'DISABLE'],
        [9001, 'STRICT'],
      ]),
    });
    const withoutMeshPolicy = givenModes(mesh + ownObject);
    expect(activePeerModes(withoutMeshPolicy.shape, withoutMeshPolicy.context)).toEqual({
      mode: 'DISABLE',
      ports: new Map(),
    });
  });
});

describe("the origin of a port's mode", () => {
  it.each([
    ['the field for the port', 9000, 'shop', ['spec', 'portLevelMtls', 9000]],
    ['the next wider object if the object has no mode for the port', 9001, 'istio-system', ['spec', 'mtls']],
    ['the next wider object for all other ports', 0, 'istio-system', ['spec', 'mtls']],
  ])('the origin is %s', (_, port, namespace, path) => {
    const { context, shape } = givenModes(mesh + ownObject);
    expect(peerOrigins(context.policiesFor(shape), port)).toMatchObject([{ key: { namespace }, path }]);
  });

  it('the origin is undefined if no object sets the mode', () => {
    const { context, shape } = givenModes(policy('empty', 'shop', '{}'));
    expect(peerOrigins(context.policiesFor(shape), 80)).toEqual([]);
  });
});

describe('proxy without certificates under STRICT', () => {
  it('the missing protection is reported with the object', () => {
    const { context, shape } = givenModes(mesh);
    expect(unenforcedMutualTls(shape, context)).toContain('PeerAuthentication istio-system/mesh requires mutual TLS');
  });

  it('the missing protection is reported with the ports that the object lists', () => {
    const strict = '{ selector: { matchLabels: { app: web } }, portLevelMtls: { 9000: { mode: STRICT } } }';
    const { context, shape } = givenModes(policy('web', 'shop', strict));
    expect(unenforcedMutualTls(shape, context)).toContain('shop/web requires mutual TLS on port 9000,');
  });

  it.each([
    ['no object requires mutual TLS', policy('lax', 'shop', '{ mtls: { mode: PERMISSIVE } }'), {}],
    ['the proxy has certificates', mesh, { WORKLOAD_CERTIFICATES: 'true' }],
  ])('no warning is reported if %s', (_, yaml, metadata) => {
    const { context, shape } = givenModes(yaml, metadata as Record<string, string>);
    expect(unenforcedMutualTls(shape, context)).toBeUndefined();
  });
});
