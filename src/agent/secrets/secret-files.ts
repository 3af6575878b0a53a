/** Secrets that lie in files: checked, and as Envoy gets them (spec/agent.md §7.6). */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { messageOf } from '../../runtime/errors.ts';
import { readSmallFile } from '../certificates/certificate-reading.ts';
import type { KeyPair } from '../identity/control-plane-credentials.ts';
import { isCertificate, isEncrypted, isPrivateKey, pemBlocks } from '../identity/pem-file.ts';
import { certificatesIn } from '../identity/root-set.ts';

class SecretFileError extends Error {
  override readonly name = 'SecretFileError';
}

/** @throws SecretFileError for what Envoy could not use: a key of another certificate above all */
export async function readPair({ certificate, key }: { certificate: string; key: string }): Promise<KeyPair> {
  const chain = await contentOf(certificate);
  const keyContent = await contentOf(key);
  const [leaf] = pemBlocks(chain).filter(isCertificate);
  const keyBlock = pemBlocks(keyContent).find(isPrivateKey);
  if (leaf === undefined || !leaf.isWhole) throw new SecretFileError(`${certificate} holds no certificate`);
  if (keyBlock === undefined || !keyBlock.isWhole) throw new SecretFileError(`${key} holds no private key`);
  if (isEncrypted(keyBlock)) throw new SecretFileError(`${key} is encrypted, and nobody is asked for a passphrase`);
  if (!fits(leaf.text, keyBlock.text)) throw new SecretFileError(`${key} is not the key of ${certificate}`);
  return { chain: chain.toString('latin1'), key: keyContent.toString('latin1') };
}

function fits(certificate: string, key: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

/** @throws SecretFileError where no certificate is in it */
export async function readRoots(file: string): Promise<string[]> {
  const roots = certificatesIn(await contentOf(file));
  if (roots.length === 0) throw new SecretFileError(`${file} holds no certificate that can be read`);
  return roots;
}

async function contentOf(file: string): Promise<Buffer> {
  const content = await readSmallFile(file).catch((error: unknown) => ({ problem: messageOf(error) }));
  if ('problem' in content) throw new SecretFileError(`${file} ${content.problem}`);
  return content;
}
