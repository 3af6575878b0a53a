import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { CertificateError, problemOf } from '../../identity/certificate-problem.ts';
import type { CertificateCode } from '../../runtime/error-codes/certificates.ts';
import { readConsistently } from '../../runtime/files/read-together.ts';
import type { KeyPair } from '../../runtime/grpc/key-pair.ts';
import { readSmallFile } from '../files/certificate-reading.ts';
import { isCertificate, isEncrypted, isPrivateKey, type PemFileBlock, pemBlocks } from '../identity/pem-file.ts';
import { parseCertificates } from '../identity/root-set.ts';

/** The message contains the path of the file. */
export class SecretFileError extends CertificateError {
  override readonly name = 'SecretFileError';

  constructor(code: CertificateCode, path: string, message: string) {
    super(problemOf(code, `${path}${message.startsWith(':') ? '' : ' '}${message}`, { path }));
  }
}

/**
 * Ignores other blocks: Envoy's config dump hides only key fields, so a chain must not contain a key.
 *
 * @throws SecretFileError if Envoy could not use the files, for example with a key of another certificate
 */
export function readPair(files: { certificate: string; key: string }): Promise<KeyPair> {
  return readConsistently(async (resolvePath) => {
    const chain = await contentOf(files.certificate, await resolvePath(files.certificate));
    return pairOf(files, chain, await contentOf(files.key, await resolvePath(files.key)));
  });
}

function pairOf(
  { certificate, key }: { certificate: string; key: string },
  chain: Buffer,
  keyContent: Buffer,
): KeyPair {
  const certificates = pemBlocks(chain).filter(isCertificate);
  const [leaf] = certificates;
  const keyBlock = pemBlocks(keyContent).find(isPrivateKey);
  if (leaf === undefined || !leaf.isWhole)
    throw new SecretFileError('CERTIFICATE_MISSING', certificate, 'contains no PEM certificate');
  if (certificates.some(({ isWhole }) => !isWhole))
    throw new SecretFileError('PEM_INVALID', certificate, 'contains an unterminated PEM certificate');
  if (keyBlock === undefined || !keyBlock.isWhole)
    throw new SecretFileError('PRIVATE_KEY_INVALID', key, 'contains no PEM private key');
  if (isEncrypted(keyBlock)) throw new SecretFileError('PRIVATE_KEY_INVALID', key, 'must not be encrypted');
  const privateKey = keyOf(leaf.text, keyBlock.text);
  if (privateKey === undefined)
    throw new SecretFileError('PRIVATE_KEY_MISMATCH', key, `is not the private key of ${certificate}`);
  return { chain: textOf(certificates), key: privateKey };
}

function textOf(blocks: readonly PemFileBlock[]): string {
  return blocks.map(({ text }) => `${text}\n`).join('');
}

function keyOf(certificate: string, key: string): KeyObject | undefined {
  try {
    const privateKey = createPrivateKey(key);
    return new X509Certificate(certificate).checkPrivateKey(privateKey) ? privateKey : undefined;
  } catch {
    return undefined;
  }
}

/** @throws SecretFileError without a certificate */
export async function readRoots(file: string): Promise<string[]> {
  const roots = parseCertificates(await contentOf(file));
  if (roots.length === 0) throw new SecretFileError('CERTIFICATE_MISSING', file, 'contains no valid PEM certificate');
  return roots;
}

/** @param path with resolved links */
export async function contentOf(file: string, path = file): Promise<Buffer> {
  const content = await readSmallFile(path);
  if ('problem' in content) throw new SecretFileError(content.code, file, content.problem);
  return content;
}
