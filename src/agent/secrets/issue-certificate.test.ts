import { expect, test } from 'vitest';
import { optionsOf } from '../../../test/fixtures/generated-bootstrap.ts';
import { FileTurns } from '../../runtime/files/file-turns.ts';
import { issueCertificate, requestOf } from './issue-certificate.ts';
import { ObtainError } from './obtain-secret.ts';
import { SecretVault } from './secret-vault.ts';

test('sends ISTIO_META_CERT_SIGNER and the node ID to the authority unless empty (agent §1.3)', () => {
  const metadataOf = (env: Record<string, string>): unknown =>
    requestOf({ identity: optionsOf({ env }).identity, env, nodeId: 'sidecar~a~b~c' }).metadata;
  expect(metadataOf({ ISTIO_META_CERT_SIGNER: 'signers.example/a' })).toEqual({
    NodeID: 'sidecar~a~b~c',
    CertSigner: 'signers.example/a',
  });
  expect(metadataOf({ ISTIO_META_CERT_SIGNER: '' })).toEqual({ NodeID: 'sidecar~a~b~c' });
});

test("reports an error if reading files times out, so that the certificate's expiry is checked", async () => {
  const credentialTurns = new FileTurns();
  void credentialTurns.run(() => new Promise(() => {}), new AbortController().signal);
  const env = { CA_ADDR: '127.0.0.1:1' };
  const { identity, config } = optionsOf({ env });
  const issue = issueCertificate({
    ...{ vault: new SecretVault(), credentialTurns, identity, config, env, nodeId: 'a', now: Date.now },
  });
  const order = { name: 'default', source: 'authority', credential: 'token', version: '' } as const;
  const metadata = issue({ ...order, parts: { authorities: '', bundle: '' } }, new AbortController().signal);
  await expect(metadata).rejects.toThrow(ObtainError);
  await expect(metadata).rejects.toThrow('not read within 10000 ms');
});
