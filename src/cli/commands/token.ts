/** `pilot-discovery token`: who a workload is, for machines without Kubernetes. */
import { join } from 'node:path';
import { Command } from 'commander';
import {
  defaultAudience,
  issueToken,
  localTokenFile,
  localTokenKey,
} from '../../discovery/authentication/local-tokens.ts';
import { durationMsOf } from '../../model/fields/duration.ts';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { standardOutput } from '../../runtime/output/standard-streams.ts';

interface TokenFlags {
  readonly dir?: string;
  readonly ttl: string;
  readonly audience: string;
}

const longestTtlMs = 365 * 24 * 3_600_000;

export function tokenCommand(print: (text: string) => void = (text) => standardOutput.print(text)): Command {
  return new Command('token')
    .summary('say who a workload is, without Kubernetes')
    .description(
      'Prints a token of a service account, signed by the key in DIR/token.key, which is made when it is not there. ' +
        'The control plane that has the same SELF_SIGNED_CA_DIR takes it: a workload that shows it gets a certificate. ' +
        'Whoever can read the key can be anybody: it has mode 0600.\n\nExit code: 0, or 1 when there is no such key.',
    )
    .argument('<namespace/serviceAccount>', 'whose token it is')
    .option('--dir <dir>', 'where the key lies (default: SELF_SIGNED_CA_DIR)')
    .option('--ttl <duration>', 'how long it is good', '1h')
    .option('--audience <audience>', 'for whom it is', defaultAudience)
    .addHelpText('after', '\nExample:\n  pilot-discovery token shop/cart --dir ./ca > ./token')
    .action(async (account: string, { dir = process.env.SELF_SIGNED_CA_DIR, ttl, audience }: TokenFlags) => {
      if (dir === undefined || dir === '') {
        throw new ChartpilotError('FLAG_INVALID', '--dir is needed, or SELF_SIGNED_CA_DIR: the directory with the key');
      }
      const [namespace = '', serviceAccount = '', ...rest] = account.split('/');
      const ttlMs = durationMsOf(ttl) ?? 0;
      if (ttlMs < 1_000 || ttlMs > longestTtlMs) {
        throw new ChartpilotError('FLAG_INVALID', `--ttl is ${JSON.stringify(ttl)}; it must be from 1s to 8760h`);
      }
      const key = localTokenKey(join(dir, localTokenFile));
      try {
        if (rest.length > 0) throw new RangeError('there is more than one slash');
        const order = { namespace, serviceAccount, audience, ttlSeconds: Math.floor(ttlMs / 1000) };
        print(`${await issueToken(key, order, new Date())}\n`);
      } catch (error) {
        const what = `${JSON.stringify(account)} is no workload: ${messageOf(error)}`;
        throw new ChartpilotError('FLAG_INVALID', what, { hint: 'write it as NAMESPACE/SERVICEACCOUNT' });
      }
    });
}
