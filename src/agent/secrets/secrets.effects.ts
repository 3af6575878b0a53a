import { secretsMachine } from '../../../machines/agent/secrets/secrets.machine.ts';
import type { Clocks } from '../../runtime/clock-steps.ts';
import { FileTurns } from '../../runtime/files/file-turns.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { Ownership } from '../../runtime/ownership.ts';
import type { DistributedRoots } from '../identity/distributed-roots.ts';
import type { ProxyOptions } from '../options/options.ts';
import { detectServer } from './detect-server.ts';
import { issueCertificate } from './issue-certificate.ts';
import { obtainSecret } from './obtain-secret.ts';
import { writeOutput } from './output-files.ts';
import type { RevocationWarning } from './revocation-files.ts';
import { secretWithEffects } from './secret.effects.ts';
import type { SecretCounts } from './secret-counts.ts';
import { serveSecrets } from './secret-server.ts';
import { SecretVault } from './secret-vault.ts';

export interface WorkloadSecretsOptions extends Pick<ProxyOptions, 'identity' | 'env' | 'config'> {
  readonly nodeId: string;
  readonly log: Logger;
  readonly turns: FileTurns;
  readonly credentialTurns?: FileTurns;
  readonly vault?: SecretVault;
  readonly counts?: SecretCounts;
  readonly distributedRoots?: DistributedRoots;
  readonly ownership?: Ownership;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  readonly clocks?: Clocks;
  readonly draw?: () => number;
}

export function secretsWithEffects({
  identity,
  env,
  config,
  nodeId,
  log,
  turns,
  credentialTurns = new FileTurns(),
  vault = new SecretVault(),
  counts,
  distributedRoots,
  ownership,
  now = Date.now,
  clocks,
  draw = Math.random,
}: WorkloadSecretsOptions) {
  const { mounted, outputDirectory } = identity;
  const sharedOptions = { ...(distributedRoots && { distributedRoots }), credentialTurns };
  const issue = issueCertificate({ vault, ...sharedOptions, identity, config, env, nodeId, now });
  return secretsMachine.provide({
    actors: {
      probeServer: detectServer(ownership),
      serveSecrets: serveSecrets({ vault, log, ...(ownership && { ownership }) }),
      writeOutput: writeOutput({ vault, directory: outputDirectory, env }),
      secret: secretWithEffects({
        obtain: obtainSecret({
          vault,
          turns,
          mounted,
          issue,
          now,
          random: draw,
          warn: warnOnce(log),
          ...(counts && { counts }),
        }),
        now,
        log,
        ...(clocks && { clocks }),
      }),
    },
    actions: { storeBundle: (_, { hash, roots }) => vault.keepSet('bundle', hash, roots) },
  });
}

const maxRemembered = 200;

/** Files are read again at each change, and before their lists expire, so equal warnings would repeat. */
function warnOnce(log: Logger): (warning: RevocationWarning) => void {
  const loggedProblems = new Set<string>();
  return (warning) => {
    const key = `${warning.file} ${warning.reason}`;
    if (loggedProblems.has(key)) return;
    if (loggedProblems.size === maxRemembered) loggedProblems.clear();
    loggedProblems.add(key);
    log.warn('revocationList.invalid', warning);
  };
}
