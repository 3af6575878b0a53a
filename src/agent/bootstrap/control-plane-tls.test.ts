import { expect, test } from 'vitest';
import { controlPlaneTls } from './control-plane-tls.ts';

const mutual = {
  controlPlaneAuthPolicy: 'MUTUAL_TLS',
  discoveryAddress: 'istiod.istio-system.svc:15012',
  proxyMetadata: {},
} as const;
const present =
  (...files: string[]) =>
  (path: string): boolean =>
    files.includes(path);

test('uses plaintext with policy NONE, even if root files exist', () => {
  expect(controlPlaneTls({ ...mutual, controlPlaneAuthPolicy: 'NONE' }, {}, () => true)).toBeUndefined();
});

test('uses plaintext for port 15010 regardless of the policy', () => {
  expect(controlPlaneTls({ ...mutual, discoveryAddress: '127.0.0.1:15010' }, {}, () => false)).toBeUndefined();
});

test.each([
  [{ XDS_ROOT_CA: '/ca.pem' }, ['/ca.pem', './etc/certs/root-cert.pem'], '/ca.pem'],
  [{ XDS_ROOT_CA: 'SYSTEM' }, ['/etc/pki/tls/certs/ca-bundle.crt'], '/etc/pki/tls/certs/ca-bundle.crt'],
  [{}, ['./etc/certs/root-cert.pem', './var/run/secrets/istio/root-cert.pem'], './etc/certs/root-cert.pem'],
  [{}, ['./var/run/secrets/istio/root-cert.pem'], './var/run/secrets/istio/root-cert.pem'],
])('selects the root file by environment (%o) and existing files (%o)', (env, files, expected) => {
  expect(controlPlaneTls(mutual, env, present(...files))).toEqual({
    rootFile: expected,
    serverName: 'istiod.istio-system.svc',
  });
});

test('reports a missing root certificate with a hint', () => {
  expect(() => controlPlaneTls(mutual, {}, () => false)).toThrow(
    /root certificate of the control plane .*root-cert\.pem does not exist/,
  );
});

test.each([
  [{}, 'localhost:15012', 'istiod.istio-system.svc'],
  [{}, '127.0.0.1:15012', 'istiod.istio-system.svc'],
  [{}, 'pilot.example.com:15012', 'pilot.example.com'],
  [{ ISTIOD_SAN: 'other' }, 'pilot.example.com:15012', 'other'],
])('selects the expected SAN by environment (%o) for the address %s', (env, discoveryAddress, expected) => {
  expect(controlPlaneTls({ ...mutual, discoveryAddress }, env, () => true)?.serverName).toBe(expected);
});
