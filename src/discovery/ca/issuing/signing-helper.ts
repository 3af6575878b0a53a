/** On the main thread, 2 to 5 ms for each certificate would delay pushes. */
import { constants, getPriority, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { readCertificate } from '../../../identity/certificate.ts';
import { CertificateRequestError, requestedNamesIn, verifyRequest } from '../../../identity/certificate-request.ts';
import { type Issuer, issueLeaf } from '../../../identity/issue.ts';
import { LeafCheck } from '../../../identity/leaf-check.ts';
import { pemOf } from '../../../identity/pem.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type {
  LeafOrder,
  SignerOrder,
  SigningOrder,
  SigningOutcome,
  ThreadReply,
  VerifiedRequest,
  VerifyOrder,
} from './signing-work.ts';

/**
 * If all processors are busy, this thread gets about a tenth of one. Linux applies the priority to the calling thread, not to the process
 * (setpriority(2), "C library/kernel differences").
 */
setPriority(Math.min(getPriority() + constants.priority.PRIORITY_BELOW_NORMAL, constants.priority.PRIORITY_LOW));

let activeSigner: { readonly issuer: Issuer; readonly check: LeafCheck } | undefined;

parentPort!.on('message', (order: SigningOrder | SignerOrder) => {
  if ('signer' in order) {
    const { der, privateKey } = order.signer;
    const issuer = { certificate: readCertificate(der), privateKey };
    activeSigner = { issuer, check: new LeafCheck(issuer) };
  } else {
    const signingOutcome = 'requestToVerify' in order ? verifyCertificateRequest(order) : signLeaf(order);
    parentPort!.postMessage({ id: order.id, ...signingOutcome } satisfies ThreadReply);
  }
});

function verifyCertificateRequest({ requestToVerify, uri }: VerifyOrder): VerifiedRequest {
  try {
    const key = verifyRequest(requestToVerify);
    const { uris, dns, ips, otherNames } = requestedNamesIn(requestToVerify);
    if (uris.length === 1 && uris[0] === uri && dns.length + ips.length + otherNames === 0) return { key };
    return { refused: `the certificate request must have the URI ${uri} and no other name` };
  } catch (error) {
    return failureOf(error);
  }
}

function signLeaf({ request, uri, notBefore, notAfter }: LeafOrder): SigningOutcome {
  if (activeSigner === undefined) return { failed: 'the certificate authority is not ready' };
  try {
    const key = verifyRequest(request);
    const lifetime = { notBefore, notAfter };
    const der = issueLeaf(activeSigner.issuer, key, { uris: [uri], dns: [], ips: [] }, lifetime);
    const serialNumber = activeSigner.check.serialNumberOf(der, { key, uri, lifetime });
    return { leaf: pemOf('CERTIFICATE', der), serialNumber };
  } catch (error) {
    return failureOf(error);
  }
}

function failureOf(error: unknown): { readonly refused: string } | { readonly failed: string } {
  return error instanceof CertificateRequestError
    ? { refused: `the certificate request ${error.message}` }
    : { failed: messageOf(error) };
}
