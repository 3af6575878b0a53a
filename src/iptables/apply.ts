/** Applies the rules, and takes them away: runs iptables and ip, one program after the other (spec/agent.md §10.4, §10.6). */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { ChartpilotError, messageOf } from '../runtime/errors.ts';
import { cleanupCommands } from './cleanup.ts';
import type { Interception, IpFamily } from './interception.ts';
import type { InterceptionOrder } from './interception-settings.ts';
import { routeCommands, routeRemovals } from './ip-routes.ts';
import { type CommandLine, commandText, isBuiltIn, programOf, restoreText, ruleCommands } from './rule-list.ts';
import { interceptionRules } from './rules.ts';

export interface Finished {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Terminal {
  /** What a dry run shows. */
  readonly print: (text: string) => void;
  /** What was done, for the log. */
  readonly tell: (line: string, details?: object) => void;
}

/** None of them waits for anything but the lock, which has limits of its own. */
const commandLimitMs = 30_000;
const lockLimitMs = 10_000;
const firstPauseMs = 100;
const longestPauseMs = 2_000;
/** Of iptables: somebody else held the lock. */
const lockedExitCode = 4;
/** What `ip` says of an address, a rule or a route; of addresses newer kernels have words of their own. */
const isThereAlready = /File exists|address already assigned/i;
/** As a shell has it: there is no such program. */
const absentExitCode = 127;

/** What `--dry-run` prints: what iptables-restore reads, or the commands. */
export function dryRunText(order: InterceptionOrder): string {
  const { interception, restoreFormat, networkNamespace } = order;
  const shown = (command: CommandLine): string => commandText(within(networkNamespace, command));
  if (order.cleanupOnly) return [...removals(interception).map(shown), ''].join('\n');
  return familiesOf(interception)
    .flatMap((family) => {
      const rules = interceptionRules(interception, family);
      if (!restoreFormat) return ruleCommands(family, rules).map((command) => `${shown(command)}\n`);
      return [`# ${shown(restoreCommand(family))}\n`, restoreText(rules)];
    })
    .join('');
}

/** @throws ChartpilotError IPTABLES_FAILED with the command, its exit code and its words */
export async function applyInterception(order: InterceptionOrder, { print, tell }: Terminal): Promise<void> {
  const { interception, networkNamespace, outputPath } = order;
  if (outputPath !== undefined) writeRules(outputPath, allRestoreText(interception));
  if (order.dryRun) {
    print(dryRunText(order));
    return;
  }
  requireNetAdmin();
  const looksFirst = interception.generation === 'g4' && !order.forceApply;
  const present = looksFirst ? await presentInterception(order) : 'none';
  if (present === 'all') {
    tell('traffic is redirected already, just so');
    return;
  }
  if (present === 'some' && !order.reconcile) {
    throw new ChartpilotError('IPTABLES_FAILED', 'rules that were made with other flags are there', {
      hint: 'Say --reconcile to replace them, or take them away with pilot-agent istio-clean-iptables.',
    });
  }
  for (const command of routeCommands(interception)) {
    await runOrThrow(within(networkNamespace, command), isThereAlready);
  }
  if (present === 'some') await replaceRules(order, tell);
  else await makeRules(order);
  tell('traffic is redirected', { rules: await savedRules(order) });
}

async function makeRules({ interception, restoreFormat, networkNamespace }: InterceptionOrder): Promise<void> {
  const run = (command: CommandLine): Promise<Finished> => runOrThrow(within(networkNamespace, command));
  for (const family of familiesOf(interception)) {
    const rules = interceptionRules(interception, family);
    if (restoreFormat) await inRulesFile(restoreText(rules), (file) => run(restoreCommand(family, file)));
    else for (const command of ruleCommands(family, rules)) await run(command);
  }
}

/**
 * Without the old rules and without the new ones all traffic would go around the proxy: where the new ones cannot be made,
 * everything is put back as it was.
 */
async function replaceRules(order: InterceptionOrder, tell: Terminal['tell']): Promise<void> {
  const before = await Promise.all((['v4', 'v6'] as const).map((family) => tablesOf(order, family)));
  await passOver(order, cleanupCommands(order.interception));
  try {
    await makeRules(order);
  } catch (error) {
    // In tables that nobody had looked into before, too.
    await passOver(order, cleanupCommands(order.interception));
    for (const [program, text] of before) {
      if (text === '') continue;
      await inRulesFile(text, (file) => runOrThrow(within(order.networkNamespace, { program, args: [file] })));
    }
    tell('the rules that were there are in force as before');
    throw error;
  }
}

/** Everybody's rules of a family, and what puts them back; none where there is no program for IPv6. */
async function tablesOf(
  { interception, networkNamespace }: InterceptionOrder,
  family: IpFamily,
): Promise<[program: string, text: string]> {
  const program = programOf(family);
  const save = within(networkNamespace, { program: `${program}-save`, args: [] });
  const finished = await withoutLock(save);
  if (finished.exitCode !== 0 && familiesOf(interception).includes(family)) throw failed(save, finished);
  return [`${program}-restore`, finished.exitCode === 0 ? `${finished.stdout}\n` : ''];
}

/** An init container that is run again finds what it made. */
async function presentInterception(order: InterceptionOrder): Promise<'all' | 'some' | 'none'> {
  const found = await Promise.all(familiesOf(order.interception).map((family) => presentRules(order, family)));
  return found.find((present) => found.every((other) => other === present)) ?? 'some';
}

/** Whether each of these rules is there, and in our chains no other. */
async function presentRules(order: InterceptionOrder, family: IpFamily): Promise<'all' | 'some' | 'none'> {
  const { interception, networkNamespace } = order;
  const program = programOf(family);
  const { stdout } = await finish(within(networkNamespace, { program: `${program}-save`, args: [] }));
  if (!/^:ISTIO_/m.test(stdout)) return 'none';
  const rules = interceptionRules(interception, family);
  const inChains = rules.filter(({ chain }) => !isBuiltIn(chain)).length;
  if ([...stdout.matchAll(/^-A ISTIO_/gm)].length !== inChains) return 'some';
  for (const { table, chain, words } of rules) {
    const check = { program, args: ['-t', table, '-C', chain, ...words] };
    if ((await withoutLock(within(networkNamespace, check))).exitCode !== 0) return 'some';
  }
  return 'all';
}

/** Takes away what is there, and passes over what is not. @throws ChartpilotError IPTABLES_FAILED without iptables */
export async function removeInterception(order: InterceptionOrder, { print, tell }: Terminal): Promise<void> {
  if (order.dryRun) {
    print(dryRunText({ ...order, cleanupOnly: true }));
    return;
  }
  requireNetAdmin();
  await passOver(order, removals(order.interception));
  tell('traffic is no longer redirected', { rules: await savedRules(order) });
}

/** Runs them all, whatever becomes of each. @throws ChartpilotError IPTABLES_FAILED without iptables */
async function passOver(order: InterceptionOrder, commands: readonly CommandLine[]): Promise<void> {
  for (const command of commands) {
    const placed = within(order.networkNamespace, command);
    const { exitCode, stderr } = await withoutLock(placed);
    if (exitCode === absentExitCode && command.program === 'iptables') throw failed(placed, { exitCode, stderr });
  }
}

function removals(interception: Interception): CommandLine[] {
  return [...cleanupCommands(interception), ...routeRemovals(interception)];
}

function familiesOf({ ipv6 }: Interception): readonly IpFamily[] {
  return ipv6 ? ['v4', 'v6'] : ['v4'];
}

function allRestoreText(interception: Interception): string {
  return familiesOf(interception)
    .map(
      (family) => `# ${commandText(restoreCommand(family))}\n${restoreText(interceptionRules(interception, family))}`,
    )
    .join('');
}

function writeRules(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new ChartpilotError('FILE_UNWRITABLE', `--output-paths ${path}: ${messageOf(error)}`, { cause: error });
  }
}

function restoreCommand(family: IpFamily, ...file: string[]): CommandLine {
  return { program: `${programOf(family)}-restore`, args: ['--noflush', ...file] };
}

/** In the network of another process, with the programs of this one. */
function within(networkNamespace: string | undefined, command: CommandLine): CommandLine {
  if (networkNamespace === undefined) return command;
  return { program: 'nsenter', args: [`--net=${networkNamespace}`, '--', command.program, ...command.args] };
}

/** In a folder that nobody else could have made, or put a link into. */
async function inRulesFile(text: string, use: (file: string) => Promise<unknown>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'iptables-'));
  try {
    const file = join(folder, `iptables-rules-${process.hrtime.bigint()}.txt`);
    writeFileSync(file, text, { mode: 0o600 });
    await use(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** For the log, as far as it can be had. */
async function savedRules({ interception, networkNamespace }: InterceptionOrder): Promise<string> {
  const saved = await Promise.all(
    familiesOf(interception).map((family) =>
      finish(within(networkNamespace, { program: `${programOf(family)}-save`, args: [] })),
    ),
  );
  return saved.map(({ stdout }) => stdout).join('\n');
}

async function runOrThrow(command: CommandLine, known?: RegExp): Promise<Finished> {
  const finished = await withoutLock(command);
  if (finished.exitCode === 0 || known?.test(finished.stderr)) return finished;
  throw failed(command, finished);
}

/** Others change rules too: they hold the lock for moments. */
async function withoutLock(command: CommandLine): Promise<Finished> {
  const begin = performance.now();
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    const finished = await finish(command);
    const isLocked = finished.exitCode === lockedExitCode && finished.stderr.includes('xtables lock');
    if (!isLocked || performance.now() - begin + pauseMs > lockLimitMs) return finished;
    await sleep(pauseMs);
  }
}

async function finish({ program, args }: CommandLine): Promise<Finished> {
  const { exitCode, stdout, stderr, shortMessage, code } = await execa(program, args, {
    reject: false,
    timeout: commandLimitMs,
    stdin: 'ignore',
  });
  if (code === 'ENOENT') return { exitCode: absentExitCode, stdout: '', stderr: `there is no ${program} in PATH` };
  return exitCode === undefined ? { exitCode: 1, stdout, stderr: shortMessage ?? '' } : { exitCode, stdout, stderr };
}

function failed(command: CommandLine, { exitCode, stderr }: Pick<Finished, 'exitCode' | 'stderr'>): ChartpilotError {
  const said = stderr.trim() || 'it said nothing';
  return new ChartpilotError('IPTABLES_FAILED', `${commandText(command)}: exit code ${exitCode}: ${said}`, {
    hint:
      exitCode === absentExitCode
        ? 'Install it: on Debian apt-get install iptables iproute2.'
        : 'Rules that are there already are taken away with pilot-agent istio-clean-iptables.',
  });
}

const netAdmin = 1n << 12n;

/** Being root is not asked for: a container may have the capability alone, and root may lack it. */
function requireNetAdmin(): void {
  const capabilities = /^CapEff:\s*([\da-f]+)$/im.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  if ((BigInt(`0x${capabilities}`) & netAdmin) !== 0n) return;
  throw new ChartpilotError(
    'IPTABLES_FAILED',
    `the capability NET_ADMIN is needed, and this process (uid ${process.getuid?.()}) does not have it`,
    { hint: 'Run it as root; in a container with the capabilities NET_ADMIN and NET_RAW. --dry-run needs none.' },
  );
}
