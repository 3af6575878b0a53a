/** Looks at certificates as Envoy would, before an Envoy is started with them: it would serve without them. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { messageOf } from '../runtime/errors.ts';

/** Names under which a certificate and its key lie beside each other (spec/agent.md §3.1). */
const pairs: readonly (readonly [certificate: string, key: string])[] = [
  ['tls.crt', 'tls.key'],
  ['cert-chain.pem', 'key.pem'],
];

/**
 * Why the files of one directory would not do, by file: broken PEM, a certificate without its key or the other way
 * round, a key of another certificate. Never shows a file's content.
 *
 * @param contents by name; every name is one of a certificate or a key.
 */
export function certificateProblems(contents: ReadonlyMap<string, Buffer>): string[] {
  const broken = [...contents].flatMap(([name, content]) => {
    const problem = whyBroken(content);
    return problem === undefined ? [] : [`${name}: ${problem}`];
  });
  return broken.length > 0 ? broken : pairs.flatMap(([certificate, key]) => pairProblem(contents, certificate, key));
}

function whyBroken(content: Buffer): string | undefined {
  const text = content.toString('latin1');
  try {
    if (text.includes('PRIVATE KEY-----')) createPrivateKey(content);
    else if (text.includes('-----BEGIN CERTIFICATE-----')) new X509Certificate(content);
    else return 'holds neither a certificate nor a private key';
    return undefined;
  } catch (error) {
    return `cannot be read as PEM: ${messageOf(error)}`;
  }
}

function pairProblem(contents: ReadonlyMap<string, Buffer>, certificate: string, key: string): string[] {
  const chain = contents.get(certificate);
  const secret = contents.get(key);
  if (chain === undefined && secret === undefined) return [];
  if (chain === undefined) return [`${key} is there without ${certificate}`];
  if (secret === undefined) return [`${certificate} is there without ${key}`];
  const matches = new X509Certificate(chain).checkPrivateKey(createPrivateKey(secret));
  return matches ? [] : [`${key} is not the key of ${certificate}`];
}
