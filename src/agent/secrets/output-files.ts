/** What is issued, written to files for programs that read it there (OUTPUT_CERTS, spec/agent.md §7.7). */
import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fromCallback } from 'xstate';
import { identityName, rootsName } from '../../../machines/agent/secrets/held-secrets.ts';
import type { OutputFailed, OutputWrite } from '../../../machines/agent/secrets-protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import { makeFolder } from '../../runtime/files/make-folder.ts';
import { readSmallFile } from '../certificates/certificate-reading.ts';
import { privateKeyPem } from '../identity/key-pair.ts';
import type { SecretVault } from './secret-vault.ts';

export interface OutputMeans {
  readonly vault: SecretVault;
  /** Empty: nothing is written. */
  readonly directory: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Writes files of OUTPUT_CERTS, one set after the other; of several that wait only the last is written. */
export function writeOutput({ vault, directory, env }: OutputMeans) {
  return fromCallback<OutputWrite, undefined>(({ receive, sendBack }) => {
    let next: OutputWrite | undefined;
    let isWriting = false;
    const work = async (): Promise<void> => {
      isWriting = true;
      while (next !== undefined) {
        const order = next;
        next = undefined;
        const pair = vault.get(identityName, order.certificate)?.pair;
        const roots = vault.get(rootsName, order.roots)?.roots;
        if (pair === undefined || roots === undefined) continue;
        const mode = env.KUBERNETES_SERVICE_HOST ? 0o644 : 0o600;
        try {
          makeFolder(directory);
          await writeWhole(join(directory, 'key.pem'), privateKeyPem(pair.key), mode);
          await writeWhole(join(directory, 'cert-chain.pem'), pair.chain, mode);
          await writeWhole(join(directory, 'root-cert.pem'), roots, mode);
        } catch (error) {
          sendBack({ type: 'output.failed', reason: `${directory}: ${messageOf(error)}` } satisfies OutputFailed);
        }
      }
      isWriting = false;
    };
    receive((order) => {
      next = order;
      if (!isWriting && directory !== '') void work();
    });
    return () => {
      next = undefined;
    };
  });
}

/** A reader sees the old content or the new one; where nothing is new, nothing is written. What is there may be anything: others have the directory. */
async function writeWhole(file: string, content: string | Buffer, mode: number): Promise<void> {
  const found = await readSmallFile(file);
  if (!('problem' in found) && found.equals(Buffer.from(content))) return;
  const beside = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const handle = await open(beside, 'wx', mode);
    try {
      await handle.writeFile(content);
    } finally {
      await handle.close();
    }
    await rename(beside, file);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}
