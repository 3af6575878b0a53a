import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { expect, onTestFinished, test } from 'vitest';
import { createActor } from 'xstate';
import { IstioCertificateRequestSchema } from '../../../gen/istio/v1/auth/ca_pb.ts';
import { readCertificate } from '../../../identity/certificate.ts';
import { createRequest } from '../../../identity/certificate-request.ts';
import { type Issuer, issueIntermediate, issueRoot } from '../../../identity/issue.ts';
import { TrustBundle } from '../../../identity/trust-bundle.ts';
import { silentLogger } from '../../../runtime/output/log.ts';
import { type AuthorityMaterial, buildAuthorityMaterial, ledgerIdsOf } from '../authority-material.ts';
import { CertificateService } from '../issuing/certificate-service.ts';
import { LedgerKeeper } from './ledger-keeper.ts';
import { WorkloadLedger } from './workload-ledger.ts';

const keyOf = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };

function rootOf(commonName: string): Issuer {
  const privateKey = keyOf();
  return {
    privateKey,
    certificate: readCertificate(issueRoot(privateKey, { organization: 'mesh', commonName }, life)),
  };
}

function intermediateOf(root: Issuer): AuthorityMaterial {
  const privateKey = keyOf();
  const subject = { organization: 'mesh', commonName: 'intermediate' };
  const certificate = readCertificate(issueIntermediate(root, createPublicKey(privateKey), subject, life));
  return buildAuthorityMaterial({ certificate, privateKey }, [], [root.certificate], new Date());
}

test('LedgerKeeper keeps a root while certificates of an earlier intermediate are valid', async () => {
  const oldRoot = rootOf('old');
  const [first, secondIssuer, next] = [
    intermediateOf(oldRoot),
    intermediateOf(oldRoot),
    intermediateOf(rootOf('next')),
  ];
  const materials = [first, secondIssuer, next];
  const keeper = new LedgerKeeper({
    ledger: new WorkloadLedger({ maxLeafMs: 3_600_000 }),
    idsOf: (authority) => ledgerIdsOf(materials.find(({ id }) => id === authority)!),
    distributedSince: () => undefined,
    certificateInUse: () => undefined,
    now: Date.now,
    logger: silentLogger,
  });
  let signer = first;
  const service = new CertificateService({
    authenticators: [{ name: 'test', authenticate: () => ({ identities: ['spiffe://td/ns/shop/sa/cart'] }) }],
    activeAuthority: () => ({
      ...{ material: signer, bundle: new TrustBundle('td', [signer.root]), serverAuthority: signer },
      ...{ authorities: [signer], tainted: [], roots: [signer.id] },
    }),
    signer: {
      sign: async () => ({ leaf: '', serialNumber: signer.id }),
      verify: () => Promise.reject(new Error('no other signer is configured')),
    },
    trustDomains: () => ['td'],
    limits: { defaultMs: 60_000, maxMs: 60_000 },
    now: () => new Date(),
    logger: silentLogger,
    onIssued: (leaf) => keeper.recordIssued(leaf),
  });
  const requestCertificate = async (signingAuthority: AuthorityMaterial, NodeID: string): Promise<void> => {
    signer = signingAuthority;
    const request = create(IstioCertificateRequestSchema, { csr: createRequest(keyOf(), []), metadata: { NodeID } });
    const peer = { host: '10.0.0.1', address: '10.0.0.1:1', metadata: () => [], certificate: undefined };
    await service.create(toBinary(IstioCertificateRequestSchema, request), peer);
  };
  const ledger = createActor(keeper.effect()).start();
  onTestFinished(() => void ledger.stop());
  const missingCount = (): number => {
    ledger.send({ type: 'leaf-certificates.await', authority: secondIssuer.id });
    return keeper.missingWorkloads?.count ?? 0;
  };
  await requestCertificate(first, 'a');
  await requestCertificate(secondIssuer, 'b');
  expect(missingCount()).toBe(2);
  await requestCertificate(next, 'b');
  keeper.recordArrived({ identity: 'spiffe://td/ns/shop/sa/cart', node: 'b', serialNumber: next.id });
  expect(missingCount()).toBe(1);
  await requestCertificate(next, 'a');
  keeper.recordArrived({ identity: 'spiffe://td/ns/shop/sa/cart', node: 'a', serialNumber: next.id });
  expect(missingCount()).toBe(0);
  // Earlier versions recorded the signing authority instead of the root.
  const [identity, endsAt] = ['spiffe://td/ns/shop/sa/cart', Date.now() + 60_000];
  keeper.recordIssued({ identity, node: 'c', authority: secondIssuer.id, serialNumber: '1', endsAt });
  expect(missingCount()).toBe(1);
});
