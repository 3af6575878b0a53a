import { dirname, relative, resolve, sep } from 'node:path';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { packageRoot } from '../../runtime/package-root.ts';
import type { CommandOutput } from '../command-output.ts';
import { writeOutput } from '../write-output.ts';
import { formatVitest } from './format-vitest.ts';
import { defaultDepth, defaultLimit, defaultPathDepth, generate } from './generate.ts';
import { type LoadedMachine, loadMachine } from './load-machine.ts';
import type { Cover, Share, Suite } from './suite.ts';

export interface GenerateCommandOptions {
  readonly cover: Cover;
  readonly format: 'vitest' | 'node' | 'json';
  readonly export?: string;
  readonly samples?: string;
  readonly limit?: number;
  readonly depth?: number;
  /** Default: standard output. */
  readonly output?: string;
  readonly runtime: string;
}

/**
 * @returns the exit code: 0 if tests were generated, 1 if there was nothing to test
 * @throws ChartpilotError if there is no such machine, or no tests can be generated for it
 */
export async function generateTests(
  request: string,
  options: GenerateCommandOptions,
  output: CommandOutput,
): Promise<number> {
  const loadedMachine = await loadMachine({ ...options, machine: request });
  const suite = buildSuite(loadedMachine, options);
  const text = options.format === 'json' ? jsonOf(suite) : vitestOf(suite, loadedMachine, request, options);
  if (options.output === undefined) output.out(text);
  else writeOutput('--output', options.output, text);
  output.error(`${formatCoverage(suite, options.output)}\n`);
  return suite.tests.length === 0 ? 1 : 0;
}

function buildSuite({ machine, samples, file, exportName }: LoadedMachine, options: GenerateCommandOptions): Suite {
  const { cover, limit = defaultLimit } = options;
  const depth = options.depth ?? (cover === 'paths' ? defaultPathDepth : defaultDepth);
  const source = { source: specifier(process.cwd(), file), export: exportName };
  try {
    return generate(machine, samples, { cover, limit, depth }, source);
  } catch (error) {
    throw new ChartpilotError('MACHINE_INVALID', `${file}: machine ${machine.id} does not start: ${messageOf(error)}`, {
      cause: error,
      hint: 'if it requires input, export `input` from a samples module (docs/generating-tests.md)',
    });
  }
}

function jsonOf(suite: Suite): string {
  return `${JSON.stringify(suite, undefined, 2)}\n`;
}

function vitestOf(
  suite: Suite,
  loadedMachine: LoadedMachine,
  request: string,
  options: GenerateCommandOptions,
): string {
  const folder = options.output === undefined ? process.cwd() : dirname(resolve(options.output));
  return formatVitest(suite, {
    // Node runs no TypeScript below node_modules, therefore machines of an installed chartpilot are imported from its entry point.
    machineImport: loadedMachine.isOwn && isInstalled() ? 'chartpilot/machines' : specifier(folder, loadedMachine.file),
    runner: options.format === 'node' ? 'node' : 'vitest',
    runtimeImport: options.runtime,
    command: commandLine(request, options),
  });
}

function isInstalled(): boolean {
  return packageRoot().split(sep).includes('node_modules');
}

function commandLine(
  request: string,
  { cover, export: name, samples, limit, depth, format }: GenerateCommandOptions,
): string {
  const flags: (readonly [string, string | number | undefined])[] = [
    ['--export', name],
    ['--samples', samples],
    ['--cover', cover],
    ['--limit', limit],
    ['--depth', depth],
    ['--format', format === 'node' ? format : undefined],
  ];
  return [
    'chartpilot generate',
    request,
    ...flags.flatMap(([flag, value]) => (value === undefined ? [] : [flag, value])),
  ].join(' ');
}

function specifier(folder: string, file: string): string {
  const path = relative(folder, file).split(sep).join('/');
  return path.startsWith('.') ? path : `./${path}`;
}

function formatCoverage({ machine, tests, coverage }: Suite, file?: string): string {
  const { states, transitions, explored, bounds, failures } = coverage;
  const steps = tests.reduce((sum, test) => sum + test.steps.length, 0);
  const extentText = explored.complete ? 'all configurations' : 'as many as required or allowed';
  return [
    `generate: ${machine.id}: ${tests.length} tests, ${steps} steps${file === undefined ? '' : ` → ${file}`}`,
    `  states       ${shareText(states)}`,
    ...missingLines(states),
    `  transitions  ${shareText(transitions)}`,
    ...missingLines(transitions),
    `  refusals     ${coverage.refusals} guarded transitions are also tested with a false guard`,
    `  explored     ${explored.configurations} configurations, ${explored.steps} steps, depth ${explored.depth}: ${extentText}`,
    ...bounds.map((bound) => `  bound        ${bound}`),
    ...failures.map((failure) => `  failed       ${failure}`),
  ].join('\n');
}

const shareText = ({ covered, total }: Share): string => `${covered} of ${total} covered`;

const missingLines = ({ missing }: Share): string[] =>
  missing.map(({ what, why }) => `    missing: ${what}\n        ${why}`);
