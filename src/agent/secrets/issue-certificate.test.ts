import { expect, test } from 'vitest';
import { optionsOf } from '../../../test/fixtures/made-bootstrap.ts';
import { workOf } from './issue-certificate.ts';

test('§1.3 ISTIO_META_CERT_SIGNER is told to the authority, beside the node; empty it is nobody', () => {
  const metadataOf = (env: Record<string, string>): unknown =>
    workOf({ identity: optionsOf({ env }).identity, env, nodeId: 'sidecar~a~b~c' }).metadata;
  expect(metadataOf({ ISTIO_META_CERT_SIGNER: 'signers.example/a' })).toEqual({
    NodeID: 'sidecar~a~b~c',
    CertSigner: 'signers.example/a',
  });
  expect(metadataOf({ ISTIO_META_CERT_SIGNER: '' })).toEqual({ NodeID: 'sidecar~a~b~c' });
});
