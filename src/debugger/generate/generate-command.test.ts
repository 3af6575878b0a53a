/** Runs `chartpilot generate`, and its vitest files with vitest. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { programFile } from '../../../test/harness/program-files.ts';
import { isFull } from '../../../test/harness/size-of-run.ts';
import { packageRoot } from '../../runtime/package-root.ts';
import { type GenerateCommandOptions, generateTests } from './generate-command.ts';
import { ownMachines } from './own-machines.ts';
import type { Suite } from './suite.ts';

// Each run needs seconds of CPU time, so no assertion in this file depends on elapsed time.
const root = packageRoot();
let folder: string;

/** A project of a user with chartpilot installed. */
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-generate-'));
  mkdirSync(join(folder, 'node_modules'));
  for (const name of ['xstate', 'vitest'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  symlinkSync(root, join(folder, 'node_modules/chartpilot'));
  writeFileSync(join(folder, 'package.json'), '{ "name": "cinema", "type": "module" }');
  for (const role of ['machine', 'samples']) {
    cpSync(join(root, `examples/generate/reservation.${role}.ts`), join(folder, `reservation.${role}.ts`));
  }
});
afterEach(() => rmSync(folder, { recursive: true }));

interface Run {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

function run(file: string, ...args: string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [file, ...args], { cwd: folder }, (failure, stdout, error) => {
      resolve({ code: failure === null ? 0 : Number(failure.code), out: stdout, error });
    });
  });
}

const chartpilot = (...args: string[]): Promise<Run> => run(programFile('chartpilot'), ...args);
const vitest = (): Promise<Run> =>
  run(join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder, '--reporter', 'verbose');

function breakMachine(from: string, to: string): void {
  const file = join(folder, 'reservation.machine.ts');
  const text = readFileSync(file, 'utf8');
  expect(text).toContain(from);
  writeFileSync(file, text.replace(from, to));
}

async function runGenerate(machine: string, options: Partial<GenerateCommandOptions> = {}): Promise<Run> {
  let [out, error] = ['', ''];
  const code = await generateTests(
    machine,
    { cover: 'transitions', format: 'json', runtime: 'chartpilot/machine-test', ...options },
    { out: (text) => (out += text), error: (text) => (error += text) },
  );
  return { code, out, error };
}

describe('a generated vitest file', () => {
  test('passes on the machine, and fails on a changed machine', async () => {
    const result = await chartpilot('generate', 'reservation.machine.ts', '-o', 'reservation.machine.test.ts');
    expect(result).toMatchObject({ code: 0, out: '', error: expect.stringContaining('8 of 8 covered') });
    expect(await vitest()).toMatchObject({ code: 0, out: expect.stringMatching(/Tests .*6 passed/) });

    breakMachine("{ guard: 'mayTryAgain', target: 'waiting', actions: 'countFailure' },", '');
    breakMachine('holdTime: 600_000', 'holdTime: 60_000');
    breakMachine('params.seats <= context.maxSeats', 'params.seats <= 99');
    const { code, out } = await vitest();
    expect(code).toBe(1);
    expect(out).toMatch(/Tests .*3 failed.*3 passed/);
    expect(out).toContain("reservation after pay fails: state: expected 'held.waiting', got 'cancelled'");
    expect(out).toContain('reservation: a timer elapsed before 600000 ms (held.waiting → choosing)');
    expect(out).toContain("reservation after seats.chosen: state: expected 'choosing', got 'held.waiting'");
  });

  test('equals the file in examples/', async () => {
    const { out } = await runGenerate(join(root, 'examples/generate/reservation.machine.ts'), { format: 'vitest' });
    const committed = readFileSync(join(root, 'examples/generate/reservation.machine.test.ts'), 'utf8');
    const tests = (text: string): string => text.slice(text.indexOf('const start'));
    expect(tests(out)).toBe(tests(committed));
  });
});

/** Half a minute of processor time finds one more transition: the one after ten failures in a row. */
const isDeep = (name: string): boolean => name === 'secrets';
const afterRetryLimit = 'active.socket.opening: sds.failed [isRetryLimitReached] → failed';

/** @param limit Charts with independent regions have more states than the default limit. */
async function missingTransitions(name: string, limit: number): Promise<readonly string[]> {
  const { out } = await runGenerate(name, { limit });
  return (JSON.parse(out) as Suite).coverage.transitions.missing.map((target) => target.what);
}

describe("the generated tests of chartpilot's machines", () => {
  test.each(ownMachines.filter(({ name }) => name !== 'supervisor').map(({ name }) => name))(
    'cover every transition of %s',
    async (name) => {
      const missing = await missingTransitions(name, isDeep(name) && !isFull ? 400 : 4_000);
      expect(missing).toEqual(isDeep(name) && !isFull ? [afterRetryLimit] : []);
    },
  );
});

describe('chartpilot generate', () => {
  test('rejects an unknown machine name', async () => {
    await expect(runGenerate('cert-watchr')).rejects.toMatchObject({
      code: 'FLAG_INVALID',
      hint: expect.stringContaining('cert-watcher'),
    });
  });

  test('rejects a missing file', async () => {
    await expect(runGenerate('./nowhere.ts')).rejects.toMatchObject({
      code: 'FLAG_INVALID',
      fields: { path: expect.stringContaining('nowhere.ts') },
    });
  });

  test('rejects a missing export, and lists the existing exports', async () => {
    const file = join(folder, 'reservation.machine.ts');
    await expect(runGenerate(file, { export: 'cinema' })).rejects.toMatchObject({
      code: 'FLAG_INVALID',
      fields: { path: '--export', expected: 'reservationMachine', got: 'cinema' },
    });
  });

  test.each([
    ['no machine', 'export const machine = 5;', /expected an exported XState machine, got machine/],
    [
      'two machines',
      "import { createMachine } from 'xstate'; export const a = createMachine({}), b = createMachine({});",
      /several machines: a, b/,
    ],
    ['a syntax error', 'export const machine = ;', /cannot load .*machine\.ts: /],
  ])('rejects a module with %s', async (_, text, message) => {
    const file = join(folder, 'machine.ts');
    writeFileSync(file, text);
    await expect(runGenerate(file)).rejects.toThrow(message);
  });

  test('rejects invalid samples, and lists all their errors', async () => {
    const samples = join(folder, 'wrong.samples.ts');
    writeFileSync(samples, 'export const event = {}; export const outcomes = { pay: 5 };');
    await expect(runGenerate(join(folder, 'reservation.machine.ts'), { samples })).rejects.toThrow(
      /unknown export event; .*; outcomes\['pay'\] must be a list/,
    );
  });

  test('rejects a machine that cannot start without its input', async () => {
    const file = join(folder, 'needy.ts');
    writeFileSync(
      file,
      "import { createMachine } from 'xstate'; export default createMachine({ id: 'needy', context: ({ input }) => ({ n: input.n }) });",
    );
    await expect(runGenerate(file)).rejects.toMatchObject({
      message: expect.stringContaining('machine needy does not start'),
      hint: expect.stringContaining('export `input`'),
    });
  });

  test('rejects a sample that cannot be written into a test', async () => {
    const samples = join(folder, 'dated.samples.ts');
    writeFileSync(samples, 'export const input = { maxSeats: 4, since: new Date(0) };');
    await expect(runGenerate(join(folder, 'reservation.machine.ts'), { samples, format: 'vitest' })).rejects.toThrow(
      'a sample contains a value of type Date',
    );
  });
});
