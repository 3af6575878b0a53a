/** A suite as a vitest file that a person reads. */
import { ChartpilotError } from '../../runtime/errors.ts';
import type { Expectation, Share, Step, Suite } from './suite.ts';

export interface VitestFile {
  /** How the file names the machine's module. */
  readonly machineImport: string;
  /** How the file names `chartpilot/machine-test`. */
  readonly runtimeImport: string;
  /** Who runs it. */
  readonly runner: 'vitest' | 'node';
  /** The command that makes the file again. */
  readonly command: string;
}

/** @throws ChartpilotError MACHINE_INVALID when a sample is not plain data, and so cannot be written down */
export function formatVitest(suite: Suite, { machineImport, runtimeImport, runner, command }: VitestFile): string {
  const { machine, tests, coverage } = suite;
  const name = machine.export === 'default' ? 'theMachine' : machine.export;
  const named = machine.export === 'default' ? name : `{ ${name} }`;
  const imports = [
    { from: runtimeImport, what: '{ startMachine }' },
    { from: runner === 'node' ? 'node:test' : 'vitest', what: '{ test }' },
    { from: machineImport, what: named },
  ].sort((a, b) => importOrder(a.from, b.from));
  return [
    comment(`Made by: ${command}`),
    '// When the machine is meant to behave otherwise, make this file anew.',
    `// It needs: npm install --save-dev chartpilot xstate${runner === 'node' ? '' : ' vitest'}`,
    ...shareLines('states', coverage.states),
    ...shareLines('transitions', coverage.transitions),
    ...[...coverage.bounds, ...coverage.failures].map((line) => comment(`Note: ${line}`)),
    ...imports.map(({ what, from }) => `import ${what} from ${quoted(from)};`),
    '',
    ...suite.starts.map(({ input, expect }, index) => {
      const options = input === undefined ? '' : `, { input: ${literal(input)} }`;
      return `const ${startName(suite, index)} = () => startMachine(${name}${options}).is(${isArguments(expect)});`;
    }),
    ...tests.flatMap((test) => [
      '',
      `test(${quoted(test.name)}, () => {`,
      `  const machine = ${startName(suite, test.start)}();`,
      ...test.steps.map(({ do: step, expect }) => `  machine.${call(step)}.is(${isArguments(expect)});`),
      '});',
    ]),
    '',
  ].join('\n');
}

/** Numbered where there are several. */
const startName = ({ starts }: Suite, index: number): string => (starts.length === 1 ? 'start' : `start${index + 1}`);

function shareLines(what: string, { covered, total, missing }: Share): string[] {
  return [
    `// It covers ${covered} of ${total} ${what}.`,
    ...missing.map((target) => comment(`  not ${target.what}: ${target.why}`)),
  ];
}

/** What somebody's machine throws may have any text: what is behind the end of a line would be code of the test. */
function comment(text: string): string {
  return `// ${text.replaceAll(/\s*[\r\n\u2028\u2029]+\s*/g, ' ')}`;
}

/** Packages before files, as import sorters have it. */
function importOrder(a: string, b: string): number {
  const rank = (specifier: string): number => (specifier.startsWith('.') || specifier.startsWith('/') ? 1 : 0);
  return rank(a) - rank(b) || (a < b ? -1 : 1);
}

function isArguments({ state, sent }: Expectation): string {
  return sent.length === 0 ? quoted(state) : `${quoted(state)}, ${literal(sent)}`;
}

function call(step: Step): string {
  switch (step.kind) {
    case 'event':
      return `event(${literal(step.event)})`;
    case 'delay':
      return `after(${quoted(step.timers.join(' and '))}, ${milliseconds(step.ms)})`;
    case 'done':
      return step.output === undefined
        ? `done(${quoted(step.effect)})`
        : `done(${quoted(step.effect)}, ${literal(step.output)})`;
    case 'error':
      return `fails(${quoted(step.effect)}, ${quoted(step.message)})`;
  }
}

/** `60_000`. */
function milliseconds(ms: number): string {
  return Number.isInteger(ms) ? String(ms).replaceAll(/\B(?=(\d{3})+$)/g, '_') : String(ms);
}

/** Plain data as a person would write it. */
function literal(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (value === undefined || value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return milliseconds(value);
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  if (isRecord(value)) {
    const fields = Object.entries(value).map(([key, field]) => `${propertyName(key)}: ${literal(field)}`);
    return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
  }
  throw notPlain(value);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function notPlain(value: unknown): ChartpilotError {
  const kind = typeof value === 'object' ? (value?.constructor?.name ?? 'object') : typeof value;
  return new ChartpilotError('MACHINE_INVALID', `a sample holds a ${kind}, which cannot be written into a test`, {
    hint: 'give samples as plain data: strings, numbers, booleans, null, lists and objects of these',
  });
}

const propertyName = (key: string): string => (/^[A-Za-z_$][\w$]*$/.test(key) ? key : quoted(key));

function quoted(text: string): string {
  const escaped = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"');
  if (!escaped.includes("'")) return `'${escaped}'`;
  return escaped.includes('"') ? `'${escaped.replaceAll("'", "\\'")}'` : `"${escaped}"`;
}
