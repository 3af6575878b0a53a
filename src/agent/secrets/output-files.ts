import { join } from 'node:path';
import { fromCallback } from 'xstate';
import type { OutputWritten } from '../../../machines/agent/grpc-bootstrap-protocol.ts';
import { identityName, rootsName } from '../../../machines/agent/secrets/held-secrets.ts';
import type { OutputFailed, OutputWrite } from '../../../machines/agent/secrets-protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import { ensureDirectory } from '../../runtime/files/make-folder.ts';
import { privateKeyPem } from '../../runtime/grpc/key-pair.ts';
import { writeIfDifferent } from '../files/write-if-different.ts';
import type { SecretVault } from './secret-vault.ts';

export interface OutputEnvironment {
  readonly vault: SecretVault;
  readonly directory: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Of several pending sets, writes only the last. */
export function writeOutput({ vault, directory, env }: OutputEnvironment) {
  return fromCallback<OutputWrite, undefined>(({ receive, sendBack }) => {
    let nextWrite: OutputWrite | undefined;
    let isWriting = false;
    const work = async (): Promise<void> => {
      isWriting = true;
      while (nextWrite !== undefined) {
        const order = nextWrite;
        nextWrite = undefined;
        const pair = vault.get(identityName, order.certificate)?.pair;
        const roots = vault.get(rootsName, order.roots)?.roots;
        if (pair === undefined || roots === undefined) continue;
        const mode = env.KUBERNETES_SERVICE_HOST ? 0o644 : 0o600;
        try {
          ensureDirectory(directory);
          await writeIfDifferent(join(directory, 'key.pem'), privateKeyPem(pair.key), mode);
          await writeIfDifferent(join(directory, 'cert-chain.pem'), pair.chain, mode);
          await writeIfDifferent(join(directory, 'root-cert.pem'), roots, mode);
          sendBack({ type: 'output.written' } satisfies OutputWritten);
        } catch (error) {
          sendBack({ type: 'output.failed', reason: `${directory}: ${messageOf(error)}` } satisfies OutputFailed);
        }
      }
      isWriting = false;
    };
    receive((order) => {
      nextWrite = order;
      if (!isWriting && directory !== '') void work();
    });
    return () => {
      nextWrite = undefined;
    };
  });
}
