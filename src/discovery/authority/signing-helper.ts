/** A thread that verifies requests and signs certificates: two to five milliseconds each would hold up pushes (spec/identity.md §7). */
import { parentPort } from 'node:worker_threads';
import { readCertificate } from '../../identity/certificate.ts';
import { RequestError, verifyRequest } from '../../identity/certificate-request.ts';
import { type Issuer, issueLeaf } from '../../identity/issue.ts';
import { svidProblems } from '../../identity/x509-svid.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { SignerOrder, SigningAnswer, SigningOrder, SigningOutcome } from './signing-work.ts';

let issuer: Issuer | undefined;

parentPort!.on('message', (order: SigningOrder | SignerOrder) => {
  if ('signer' in order) {
    const { der, privateKey } = order.signer;
    issuer = { certificate: readCertificate(der), privateKey };
  } else parentPort!.postMessage({ id: order.id, ...outcomeOf(order) } satisfies SigningAnswer);
});

function outcomeOf({ request, uri, notBefore, notAfter }: SigningOrder): SigningOutcome {
  if (issuer === undefined) return { failed: 'there is no authority yet' };
  try {
    const key = verifyRequest(request);
    const der = issueLeaf(issuer, key, { uris: [uri], dns: [], ips: [] }, { notBefore, notAfter });
    const certificate = readCertificate(der);
    const problems = svidProblems(certificate);
    if (problems.length > 0) return { failed: `what was made is no X.509-SVID: it ${problems.join(', ')}` };
    return { leaf: certificate.pem, serialNumber: certificate.serialNumber };
  } catch (error) {
    return error instanceof RequestError ? { refused: `the request ${error.message}` } : { failed: messageOf(error) };
  }
}
