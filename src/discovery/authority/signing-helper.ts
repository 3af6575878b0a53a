/** A thread that verifies requests and signs certificates: two to five milliseconds each would hold up pushes (spec/identity.md §7). */
import { constants, getPriority, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { readCertificate } from '../../identity/certificate.ts';
import { RequestError, verifyRequest } from '../../identity/certificate-request.ts';
import { type Issuer, issueLeaf } from '../../identity/issue.ts';
import { LeafCheck } from '../../identity/leaf-check.ts';
import { pemOf } from '../../identity/pem.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { SignerOrder, SigningAnswer, SigningOrder, SigningOutcome } from './signing-work.ts';

/**
 * A push is waited for now, a certificate has hours: where all want a processor, this thread has a tenth of it. Of whoever calls, Linux
 * changes the thread and not the process (setpriority(2), "C library/kernel differences").
 */
setPriority(Math.min(getPriority() + constants.priority.PRIORITY_BELOW_NORMAL, constants.priority.PRIORITY_LOW));

let signing: { readonly issuer: Issuer; readonly check: LeafCheck } | undefined;

parentPort!.on('message', (order: SigningOrder | SignerOrder) => {
  if ('signer' in order) {
    const { der, privateKey } = order.signer;
    const issuer = { certificate: readCertificate(der), privateKey };
    signing = { issuer, check: new LeafCheck(issuer) };
  } else parentPort!.postMessage({ id: order.id, ...outcomeOf(order) } satisfies SigningAnswer);
});

function outcomeOf({ request, uri, notBefore, notAfter }: SigningOrder): SigningOutcome {
  if (signing === undefined) return { failed: 'there is no authority yet' };
  try {
    const key = verifyRequest(request);
    const lifetime = { notBefore, notAfter };
    const der = issueLeaf(signing.issuer, key, { uris: [uri], dns: [], ips: [] }, lifetime);
    const serialNumber = signing.check.serialNumberOf(der, { key, uri, lifetime });
    return { leaf: pemOf('CERTIFICATE', der), serialNumber };
  } catch (error) {
    return error instanceof RequestError ? { refused: `the request ${error.message}` } : { failed: messageOf(error) };
  }
}
