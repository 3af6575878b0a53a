import { join } from 'node:path';
import { Command } from 'commander';
import { defaultAudience, issueToken, localTokenFile, localTokenKey } from '../../discovery/xds/access/local-tokens.ts';
import { durationMsOf } from '../../model/fields/duration.ts';
import { missingValue, mustBe, outOfRange } from '../../model/fields/violation.ts';
import { messageOf } from '../../runtime/errors.ts';
import { optionError } from '../../runtime/option-errors.ts';
import { standardOutput } from '../../runtime/output/standard-streams.ts';
import { addHelpSections } from './help-sections.ts';

interface TokenFlags {
  readonly dir?: string;
  readonly ttl: string;
  readonly audience: string;
}

const maxTtlMs = 365 * 24 * 3_600_000;

export function tokenCommand(print: (text: string) => void = (text) => standardOutput.print(text)): Command {
  const command = new Command('token')
    .summary('Issue a workload token without Kubernetes')
    .description(
      'Print a service account token that is signed by DIR/token.key (created with mode 0600 if it does not exist). A ' +
        'control plane with the same SELF_SIGNED_CA_DIR accepts it and issues a certificate. Anyone who can read the key ' +
        'can impersonate every workload.',
    )
    .argument('<namespace/serviceAccount>', 'Service account of the workload')
    .option('--dir <dir>', 'Directory of the key (default $SELF_SIGNED_CA_DIR)')
    .option('--ttl <duration>', 'Lifetime of the token, 1s to 8760h', '1h')
    .option('--audience <audience>', 'Audience of the token', defaultAudience);
  return addHelpSections(command, {
    examples: ['pilot-discovery token shop/cart --dir ./ca > ./token'],
    environment: [['SELF_SIGNED_CA_DIR', 'Directory of the key, without --dir']],
    exitCodes: [
      ['0', 'token printed'],
      ['1', 'invalid flag, or the key cannot be read or created'],
    ],
  }).action(async (account: string, { dir = process.env.SELF_SIGNED_CA_DIR, ttl, audience }: TokenFlags) => {
    if (dir === undefined || dir === '') {
      throw optionError('--dir', missingValue('without SELF_SIGNED_CA_DIR'), {
        hint: 'Set it to the directory of the key.',
      });
    }
    const [namespace = '', serviceAccount = '', ...otherParts] = account.split('/');
    const ttlMs = durationMsOf(ttl) ?? 0;
    if (ttlMs < 1_000 || ttlMs > maxTtlMs) {
      throw optionError('--ttl', outOfRange('a duration from 1s to 8760h', ttl));
    }
    const key = localTokenKey(join(dir, localTokenFile));
    try {
      if (otherParts.length > 0) throw new RangeError('more than one slash');
      const tokenOrder = { namespace, serviceAccount, audience, ttlSeconds: Math.floor(ttlMs / 1000) };
      print(`${await issueToken(key, tokenOrder, new Date())}\n`);
    } catch (error) {
      const violation = mustBe('NAMESPACE/SERVICEACCOUNT', account, { hint: messageOf(error) });
      throw optionError('<namespace/serviceAccount>', violation, { cause: error });
    }
  });
}
