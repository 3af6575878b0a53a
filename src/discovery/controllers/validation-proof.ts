/**
 * Verifies that the API server can call `/validate`, by a dry run with an object that the webhook always rejects. Only after that may a webhook
 * failure reject objects (`failurePolicy: Fail`).
 */

import { alwaysRejectAnnotation } from '../../injection/review-envelope.ts';
import { type LabelSelector, selectsLabels } from '../../model/kinds/label-selector.ts';
import { revisionLabel } from '../../model/kinds/metadata-keys.ts';
import { messageOf, reasonError } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import { statusOf } from '../kubernetes/api-failure.ts';
import { apiVersionOf, resourceOf } from '../kubernetes/api-resource.ts';
import type { ApiServer } from '../kubernetes/api-server.ts';

/** Annotation of a ValidatingWebhookConfiguration. The value `keep` protects its `failurePolicy`. */
export const failurePolicyAnnotation = 'chartpilot/failure-policy';

/** Longer than the API server's default webhook timeout (10 s), to receive its error message. */
const proofTimeoutMs = 12_000;

const gateways = resourceOf('Gateway');

export interface ValidationEntry {
  readonly name: string;
  readonly objectSelector: unknown;
}

/** @returns `undefined` if the entry needs no proof, because its policy is not `Ignore` */
export function unprovedEntry(entry: Readonly<Record<string, unknown>>): ValidationEntry | undefined {
  const { name, failurePolicy, objectSelector } = entry;
  return failurePolicy === 'Ignore' && typeof name === 'string' ? { name, objectSelector } : undefined;
}

/**
 * Resolves when the entry has rejected the object.
 * @throws an error that contains the reason
 */
export async function proveValidation(
  server: Pick<ApiServer, 'request'>,
  { name, objectSelector }: ValidationEntry,
  { revision, namespace }: { readonly revision: string; readonly namespace: string },
): Promise<void> {
  const selector = (isObject(objectSelector) ? objectSelector : {}) as LabelSelector;
  const labels = [{ [revisionLabel]: revision }, {}].find((candidate) => selectsLabels(selector, candidate));
  if (labels === undefined) throw unprovedError(name, 'its objectSelector selects no object of this revision');
  const body = {
    ...{ apiVersion: apiVersionOf(gateways), kind: gateways.kind },
    metadata: { generateName: 'webhook-proof-', namespace, labels, annotations: { [alwaysRejectAnnotation]: 'true' } },
    spec: {
      selector: { istio: 'none' },
      servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }],
    },
  };
  const request = {
    method: 'POST',
    resource: gateways,
    namespace,
    body,
    query: { dryRun: 'All' },
    timeoutMs: proofTimeoutMs,
  } as const;
  try {
    await server.request(request, new AbortController().signal);
  } catch (error) {
    const message = messageOf(error);
    if (message.includes(`admission webhook ${JSON.stringify(name)} denied the request`)) return;
    if (statusOf(error) === 404)
      throw unprovedError(name, 'the API server does not serve Gateways of networking.istio.io');
    throw unprovedError(name, message);
  }
  throw unprovedError(
    name,
    'the API server accepted an object that the webhook rejects; it may not reach port 443 of the Service',
  );
}

function unprovedError(name: string, reason: string): Error {
  return reasonError('WEBHOOK_UNPROVED', `failurePolicy of webhook ${name} stays Ignore: ${reason}`);
}
