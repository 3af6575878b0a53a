import { expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { unenforcedSettings } from './unenforced.ts';

const sidecar = `apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: web, namespace: shop }
spec:
  ingress:
    - port: { number: 9443, name: https, protocol: HTTPS }
      defaultEndpoint: 127.0.0.1:9000
      tls: { mode: MUTUAL, serverCertificate: /c, privateKey: /k, caCertificates: /ca }
    - { port: { number: 9080, name: http, protocol: HTTP }, defaultEndpoint: 127.0.0.1:9000 }
`;
const peers = (mode: string): string => `---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: web, namespace: shop }
spec: { selector: { matchLabels: { app: web } }, portLevelMtls: { 9443: { mode: ${mode} } } }
`;

const reportedReasons = (yaml: string, certificates: string): string | undefined => {
  const { context } = givenMesh(yaml);
  const node = { namespace: 'shop', labels: { app: 'web' }, metadata: { WORKLOAD_CERTIFICATES: certificates } };
  return unenforcedSettings(givenShape(node, context), context);
};

it("a Sidecar object's TLS is reported with its port if mutual TLS of the mesh overrides it", () => {
  expect(reportedReasons(sidecar, 'true')).toMatch(/does not apply to port 9443 \(PERMISSIVE\)/);
  expect(reportedReasons(sidecar + peers('STRICT'), 'true')).toMatch(/does not apply to port 9443 \(STRICT\)/);
  expect(reportedReasons(sidecar + peers('DISABLE'), 'true')).toBeUndefined();
  expect(reportedReasons(sidecar, 'false')).toBeUndefined();
});

it('the metadata about workload certificates is case-insensitive', () => {
  expect(reportedReasons(sidecar + peers('STRICT'), 'True')).toMatch(/does not apply to port 9443 \(STRICT\)/);
  expect(reportedReasons(sidecar + peers('STRICT'), '0')).toMatch(/requires mutual TLS on port 9443/);
});
