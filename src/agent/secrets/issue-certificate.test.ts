import { expect, test } from 'vitest';
import { optionsOf } from '../../../test/fixtures/made-bootstrap.ts';
import { FileTurns } from '../../runtime/files/file-turns.ts';
import { issueCertificate, workOf } from './issue-certificate.ts';
import { NotObtained } from './obtain-secret.ts';
import { SecretVault } from './secret-vault.ts';

test('§1.3 ISTIO_META_CERT_SIGNER is told to the authority, beside the node; empty it is nobody', () => {
  const metadataOf = (env: Record<string, string>): unknown =>
    workOf({ identity: optionsOf({ env }).identity, env, nodeId: 'sidecar~a~b~c' }).metadata;
  expect(metadataOf({ ISTIO_META_CERT_SIGNER: 'signers.example/a' })).toEqual({
    NodeID: 'sidecar~a~b~c',
    CertSigner: 'signers.example/a',
  });
  expect(metadataOf({ ISTIO_META_CERT_SIGNER: '' })).toEqual({ NodeID: 'sidecar~a~b~c' });
});

test('files that are never read are given up: whoever waits is told, and sees whether its certificate has ended', async () => {
  const credentialTurns = new FileTurns();
  void credentialTurns.ask(() => new Promise(() => {}), new AbortController().signal);
  const env = { CA_ADDR: '127.0.0.1:1' };
  const { identity, config } = optionsOf({ env });
  const issue = issueCertificate({
    ...{ vault: new SecretVault(), credentialTurns, identity, config, env, nodeId: 'a', now: Date.now },
  });
  const order = { name: 'default', source: 'authority', shown: 'token', version: '' } as const;
  const asked = issue({ ...order, parts: { authorities: '', bundle: '' } }, new AbortController().signal);
  await expect(asked).rejects.toThrow(NotObtained);
  await expect(asked).rejects.toThrow('not read within 10000 ms');
}, 20_000);
