/** Effects of the chart `secrets`, and of the charts that it starts. */
import { secretsMachine } from '../../../machines/agent/secrets/secrets.machine.ts';
import type { Clocks } from '../../runtime/clock-steps.ts';
import { FileTurns } from '../../runtime/files/file-turns.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { Ownership } from '../../runtime/ownership.ts';
import type { ToldRoots } from '../identity/told-roots.ts';
import type { ProxyOptions } from '../options/options.ts';
import { issueCertificate } from './issue-certificate.ts';
import { lookForServer } from './look-for-server.ts';
import { obtainSecret } from './obtain-secret.ts';
import { writeOutput } from './output-files.ts';
import type { RevocationWarning } from './revocation-files.ts';
import { secretWithEffects } from './secret.effects.ts';
import type { SecretCounts } from './secret-counts.ts';
import { serveSecrets } from './secret-server.ts';
import { SecretVault } from './secret-vault.ts';

export interface WorkloadSecretsOptions extends Pick<ProxyOptions, 'identity' | 'env' | 'config'> {
  /** The node's id, as Envoy has it. */
  readonly nodeId: string;
  readonly log: Logger;
  /** Turns for the file systems that certificates lie on. */
  readonly turns: FileTurns;
  /** Turns for the file systems that the agent's credentials lie on. */
  readonly credentialTurns?: FileTurns;
  readonly vault?: SecretVault;
  readonly counts?: SecretCounts;
  /** What the control plane is known by, beside a file. */
  readonly told?: ToldRoots;
  /** Another agent may serve them before or after this one. */
  readonly ownership?: Ownership;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** For tests; by default those of this process. */
  readonly clocks?: Clocks;
  /** Draws a number from 0 to 1: randomness for the charts. */
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
  told,
  ownership,
  now = Date.now,
  clocks,
  draw = Math.random,
}: WorkloadSecretsOptions) {
  const { mounted, outputDirectory } = identity;
  const shows = { ...(told && { told }), credentialTurns };
  const issue = issueCertificate({ vault, ...shows, identity, config, env, nodeId, now });
  return secretsMachine.provide({
    actors: {
      lookForServer: lookForServer(ownership),
      serveSecrets: serveSecrets({ vault, log, ...(ownership && { ownership }) }),
      writeOutput: writeOutput({ vault, directory: outputDirectory, env }),
      secret: secretWithEffects({
        obtain: obtainSecret({
          vault,
          turns,
          mounted,
          issue,
          now,
          draw,
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

/** Warnings that are remembered: those of the files that Envoy may ask for. */
const maxRemembered = 200;

/** Files are read again at each change, and before their lists expire: a warning is not repeated. */
function warnOnce(log: Logger): (warning: RevocationWarning) => void {
  const logged = new Set<string>();
  return (warning) => {
    const key = `${warning.file} ${warning.reason}`;
    if (logged.has(key)) return;
    if (logged.size === maxRemembered) logged.clear();
    logged.add(key);
    log.warn('revocationList.invalid', warning);
  };
}
