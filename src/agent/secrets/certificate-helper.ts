/** The thread exits after one certificate, because ASN.1 parsers take 20 MB. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from '../../gen/istio/v1/auth/ca_pb.ts';
import { readCertificates } from '../../identity/certificate.ts';
import { earliestExpiryOf, findPath } from '../../identity/certificate-path.ts';
import { CertificateError } from '../../identity/certificate-problem.ts';
import { createRequest } from '../../identity/certificate-request.ts';
import { TrustBundle } from '../../identity/trust-bundle.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { HelperOrder, HelperResult, HelperWork } from './certificate-work.ts';

const { uri, key, lifetimeSeconds, metadata } = workerData as HelperWork;

const privateKey = newKey();
const message = create(IstioCertificateRequestSchema, {
  csr: createRequest(privateKey, [uri]),
  validityDuration: BigInt(lifetimeSeconds),
  metadata,
});
respond({ request: toBinary(IstioCertificateRequestSchema, message) });

parentPort!.once('message', ({ response, nowMs }: HelperOrder) => {
  try {
    respond(checkResponse(response, new Date(nowMs)));
  } catch (error) {
    respond({
      problem: messageOf(error),
      code: error instanceof CertificateError ? error.code : 'CERTIFICATE_NOT_ISSUED',
    });
  }
});

function newKey(): KeyObject {
  return key.type === 'rsa'
    ? generateKeyPairSync('rsa', { modulusLength: key.bits }).privateKey
    : generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
}

function checkResponse(response: Uint8Array, validateResponse: Date): HelperResult {
  const { certChain } = fromBinary(IstioCertificateResponseSchema, response);
  if (certChain.length < 2) {
    const problem = `CA response must contain a certificate and its roots, got ${certChain.length} PEM texts`;
    return { problem, code: 'CERTIFICATE_MISSING' };
  }
  // The last element contains the roots: several during a rotation.
  const roots = TrustBundle.fromPem('', certChain.at(-1)!);
  const [leaf, ...intermediates] = certChain.slice(0, -1).flatMap((pem) => readCertificates(pem));
  if (leaf === undefined) {
    return { problem: 'CA response contains no certificate', code: 'CERTIFICATE_MISSING' };
  }
  if (!leaf.x509.checkPrivateKey(privateKey)) {
    return { problem: 'CA response: certificate is for another key', code: 'PRIVATE_KEY_MISMATCH' };
  }
  const pathResult = findPath({ certificate: leaf, intermediates, roots: roots.roots, at: validateResponse });
  if ('problem' in pathResult) {
    return { problem: `CA response: no valid chain to its roots: ${pathResult.problem}`, code: pathResult.code };
  }
  return {
    pair: {
      chain: [leaf, ...intermediates].map(({ pem }) => pem).join(''),
      key: privateKey,
    },
    roots: roots.roots.map(({ pem }) => pem),
    authorities: roots.hash,
    root: pathResult.path.at(-1)!.sha256,
    serialNumber: leaf.serialNumber,
    endsAtMs: earliestExpiryOf(pathResult.path).getTime(),
  };
}

function respond(result: HelperResult): void {
  parentPort!.postMessage(result);
}
