/**
 * Every flag of every command with a wrong value, misspelled, repeated and empty: an error or a warning names it,
 * without a stack trace.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command, Option } from 'commander';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { standardError, standardOutput } from '../runtime/output/standard-streams.ts';
import { packageRoot } from '../runtime/package-root.ts';
import { chartpilot } from './chartpilot-commands.ts';
import { discoveryCommand, normalizedArguments, prepareDiscovery } from './commands/discovery.ts';
import { prepareProxy, proxyCommand } from './commands/proxy.ts';
import { isEmptyAllowed } from './flags/flag-values.ts';
import { openRecording } from './flags/trace-flags.ts';
import { commandFirst, pilotAgent } from './pilot-agent-commands.ts';
import { pilotDiscovery } from './pilot-discovery-commands.ts';
import { runCommandLine } from './run-program.ts';

const folder = mkdtempSync(join(tmpdir(), 'cp-flags-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const [mesh, ownTrace] = [
  join(folder, 'mesh.yaml'),
  join(packageRoot(), 'test/fixtures/traces-of-versions/version-2.trace'),
];
writeFileSync(mesh, '');
const injectionValues = join(folder, 'values.yaml');
writeFileSync(injectionValues, 'global: {hub: example.com, tag: "1"}');

interface Program {
  readonly make: () => Command;
  readonly rewrite: (args: readonly string[], program: Command) => readonly string[];
}

/** Long-running commands exit where they would start a process. */
const programs: Readonly<Record<string, Program>> = {
  'pilot-agent': {
    make: () =>
      pilotAgent(
        proxyCommand(undefined, async (args, flags) => {
          const { options, log } = await prepareProxy(args, flags);
          for (const warning of options.warnings) log.write(warning);
          await openRecording({ program: 'pilot-agent', machines: [], flags, runDir: folder, log }).close();
          return 0;
        }),
      ),
    rewrite: (args, program) => commandFirst(program, args),
  },
  'pilot-discovery': {
    make: () =>
      pilotDiscovery(
        discoveryCommand(async (args, flags) => {
          const { options, log } = prepareDiscovery(args, flags);
          for (const entry of [...options.warnings, ...options.notes]) log.write(entry);
          await openRecording({ program: 'pilot-discovery', machines: [], flags, runDir: folder, log }).close();
          return 0;
        }),
      ),
    rewrite: (args) => normalizedArguments(args),
  },
  chartpilot: { make: chartpilot, rewrite: (args) => args },
};

/** Required arguments besides the flag. */
const needed: Readonly<Record<string, readonly string[]>> = {
  request: ['GET', '/x'],
  completion: ['bash'],
  token: ['shop/cart', '--dir', folder],
  validate: [mesh],
  inject: ['--filename', mesh, '--valuesFile', injectionValues],
  explain: ['--configDir', folder, '--node', 'sidecar~10.1.2.3~a.b~b.svc.cluster.local', '--url', 'http://a:80/'],
  wait: ['--timeoutSeconds', '0'],
  'istio-iptables': ['--dry-run'],
  'istio-clean-iptables': ['--dry-run'],
  visualize: [ownTrace, '--output', join(folder, 'page.html')],
  'chartpilot check': [ownTrace],
  replay: [ownTrace],
  trace: [ownTrace],
  generate: ['cert-watcher', '--cover', 'states'],
  diagram: ['supervisor'],
  explore: ['--limit', '5'],
};

/** An invalid path, below a file. */
const invalidPath = join(mesh, 'such+value');
/** Placeholders of flags that accept any text. */
const anyText = /<(id|name|suffix|domain|token|audience|module|method)>/;
/** Values that are checked on use, after the tested code of a command. */
const checkedLater: Readonly<Record<string, string>> = {
  '--binaryPath': 'Envoy is found when it is started',
  '--configPath': 'requireFolders (requirements.test.ts)',
  '--runDir': 'requireFolders (requirements.test.ts)',
  '--outlierLogPath': 'Envoy opens it',
  '--watchCerts': 'a directory may appear later',
  '--lightstepCacertPath': 'Envoy reads it',
  '--pilotSAN': 'any name',
  '--configDir': 'the start reads it (discovery-start.test.ts)',
  '--kubeconfig': 'the start reads it (discovery-start.test.ts)',
  '--registries': 'the start makes registries (registry-names.test.ts)',
  '--clusterID': 'any name',
  '--network-namespace': 'nsenter opens it',
  '--resolv-conf': 'only --redirect-dns reads it',
  '--output-paths': 'written with the rules',
  '--dir': 'the directory is created',
};

function commandsOf(name: string): Command[] {
  return programs[name]!.make().commands.filter((command) => command.name() !== 'help');
}

afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = undefined;
});

/** @param acts whether commands run */
async function textOf(name: string, args: readonly string[], acts = true): Promise<string> {
  const outputParts: string[] = [];
  const takeOutput = (outputPart: unknown): void => void outputParts.push(String(outputPart));
  for (const spy of [
    vi.spyOn(standardError, 'write'),
    vi.spyOn(standardOutput, 'write'),
    vi.spyOn(standardOutput, 'print'),
  ])
    spy.mockImplementation(takeOutput as never);
  const warnings = process.listeners('warning');
  const { make, rewrite } = programs[name]!;
  const program = make();
  if (!acts) for (const command of program.commands) command.action(() => {});
  await runCommandLine(program, { misused: 255, failed: () => 254 }, rewrite(args, program));
  process.removeAllListeners('warning');
  for (const listener of warnings) process.on('warning', listener);
  return outputParts.join('');
}

/** Lines that report the flag, without those that list the command line. */
function reportsOf(text: string, flag: string): string[] {
  return text.split('\n').filter((line) => line.includes(flag) && !line.includes('command line flags'));
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional;
}

const rows = Object.keys(programs).flatMap((name) =>
  commandsOf(name).flatMap((command) =>
    command.options.map((option) => ({ name, command: command.name(), option, flag: option.long! })),
  ),
);
const key = ({ name, command, flag }: (typeof rows)[number]): string => `${name} ${command} ${flag}`;
const argsOf = (name: string, command: string, ...otherArgs: readonly string[]): string[] => [
  command,
  ...(needed[command] ?? needed[`${name} ${command}`] ?? []),
  ...otherArgs,
];

describe('invalid flags of commands', () => {
  const commands = [...new Set(rows.map(({ name, command }) => `${name} ${command}`))];

  test.each(commands)('are reported with name or value: %s', async (commandName) => {
    const silentFlags: string[] = [];
    for (const row of rows.filter(({ name, command }) => `${name} ${command}` === commandName)) {
      const { name, command, option, flag } = row;
      if (anyText.test(option.flags) || flag in checkedLater) continue;
      const text = await textOf(name, argsOf(name, command, `${flag}=${takesValue(option) ? invalidPath : 'perhaps'}`));
      // The path of a file identifies the flag.
      const isReported =
        reportsOf(text, flag).length > 0 ||
        (/<(file|dir|trace)>/.test(option.flags) && reportsOf(text, invalidPath).length > 0);
      if (!isReported) silentFlags.push(`${key(row)}: ${text.slice(0, 200)}`);
      if (/^ {4}at /m.test(text)) silentFlags.push(`${key(row)}: a stack`);
    }
    expect(silentFlags).toEqual([]);
  });

  test('are reported if they are empty, unless an empty value has a meaning', async () => {
    const silentFlags: string[] = [];
    for (const row of rows) {
      const { name, command, option, flag } = row;
      if (!takesValue(option) || isEmptyAllowed(option)) continue;
      const text = await textOf(name, argsOf(name, command, `${flag}=`), false);
      if (reportsOf(text, flag).length === 0) silentFlags.push(`${key(row)}: ${text.slice(0, 200)}`);
    }
    expect(silentFlags).toEqual([]);
  });

  test('are reported with both values if they are repeated, unless they accept several values', async () => {
    const silentFlags: string[] = [];
    for (const row of rows) {
      const { name, command, option, flag } = row;
      if (
        !takesValue(option) ||
        ['--label', '--metadata', '--header', '--actor', '--machine', '--attach', '--filename'].includes(flag) ||
        (command === 'visualize' && flag === '--token')
      )
        continue;
      const text = await textOf(name, argsOf(name, command, `${flag}=${invalidPath}`, `${flag}=other`), false);
      if (reportsOf(text, flag).length === 0) silentFlags.push(`${key(row)}: ${text.slice(0, 200)}`);
    }
    expect(silentFlags).toEqual([]);
  });

  test('are reported with the most similar flag if they are misspelled', async () => {
    const silentFlags: string[] = [];
    for (const row of rows) {
      const { name, command, option, flag } = row;
      if (option.hidden || flag.length < 6) continue;
      const text = await textOf(name, argsOf(name, command, `${flag.slice(0, -1)}=x`));
      if (!text.includes(`did you mean ${flag}?`)) silentFlags.push(`${key(row)}: ${text.slice(0, 200)}`);
    }
    expect(silentFlags).toEqual([]);
  });
});
