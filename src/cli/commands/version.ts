import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { standardOutput } from '../../runtime/output/standard-streams.ts';
import { packageRoot, packageVersion } from '../../runtime/package-root.ts';

export interface BuildInfo {
  readonly version: string;
  /** `unknown` outside a checkout. */
  readonly revision: string;
  readonly runtime: string;
}

/** The file is read on demand, because the start does not need it. */
export function buildInfo(): BuildInfo {
  const root = packageRoot();
  return { version: packageVersion(), revision: revisionOf(root) ?? 'unknown', runtime: `node ${process.version}` };
}

/** Reads `.git` itself, because git may not be installed. */
function revisionOf(root: string): string | undefined {
  try {
    const head = readFileSync(join(root, '.git', 'HEAD'), 'utf8').trim();
    const [, ref] = /^ref: (.+)$/.exec(head) ?? [];
    return ref === undefined ? head : readFileSync(join(root, '.git', ref), 'utf8').trim();
  } catch {
    return undefined;
  }
}

export function versionLine(info: BuildInfo = buildInfo()): string {
  return `${info.version}-${info.revision.slice(0, 12)} (${info.runtime})`;
}

/**
 * `VERSION-REVISION-STATUS` as in Istio, for istioctl. The status is always unknown, because modified files are not
 * detected.
 */
export function istioVersion({ version, revision }: BuildInfo = buildInfo()): string {
  return `${version}-${revision}-unknown`;
}

export function versionCommand(
  program: string,
  print: (text: string) => void = (text) => standardOutput.print(`${text}\n`),
): Command {
  return new Command('version')
    .summary('Print the version')
    .description(`Print the version of ${program}, its commit and its runtime.`)
    .option('-s, --short', 'Print version and commit in one line')
    .addOption(new Option('-o, --output <format>', 'Output format').choices(['json', 'yaml']))
    .action(async ({ short, output }: { short?: boolean; output?: 'json' | 'yaml' }) => {
      print(await formatBuildInfo(buildInfo(), short === true, output));
    });
}

export async function formatBuildInfo(info: BuildInfo, isShort: boolean, output?: 'json' | 'yaml'): Promise<string> {
  const versionOutput = { clientVersion: { ...info } };
  if (output === 'json') return JSON.stringify(versionOutput, undefined, 2);
  if (output === 'yaml') return (await import('../../model/yaml/yaml-writing.ts')).stringify(versionOutput).trimEnd();
  if (isShort) return `${info.version}-${info.revision}`;
  return `version   ${info.version}\nrevision  ${info.revision}\nruntime   ${info.runtime}`;
}
