import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { packageRoot } from '../runtime/package-root.ts';

/** The installed program, from the bundle of `npm test`. */
const chartpilot = (...args: string[]) => execa(join(packageRoot(), 'bin/chartpilot'), args, { reject: false });

const reservation = join(packageRoot(), 'examples/generate/reservation.machine.ts');

test('chartpilot explore explores the agent with a second thread', async () => {
  const { exitCode, stdout, stderr } = await chartpilot('explore', '--triggers', '1', '--faults', '0');
  // On a busy machine, progress lines are printed.
  expect(stderr).toMatch(/^(explore: .* choices left, \d+ s\n?)*$/);
  expect(stdout).toMatch(
    /^explore: complete, no violation and no livelock \(1 triggers, 0 faults, 0 stops\): [\d,]{3,} states/,
  );
  expect(exitCode).toBe(0);
});

test('chartpilot explore reports an incomplete exploration', async () => {
  const { stdout } = await chartpilot('explore', '--triggers', '1', '--limit', '100');
  expect(stdout).toContain('INCOMPLETE');
});

test.each([
  { flags: ['--changes', '1'], says: '--changes cannot be used with --world agent' },
  { flags: ['--world', 'discovery', '--triggers', '1'], says: '--triggers cannot be used with --world discovery' },
  { flags: ['--world', 'discovery', '--stop'], says: '--stop cannot be used with --world discovery' },
  { flags: ['--machine', reservation, '--faults', '0'], says: '--faults cannot be used with --machine' },
  { flags: ['--samples', 'x.ts'], says: '--samples cannot be used with --world agent' },
])('chartpilot explore rejects a flag without effect: $flags', async ({ flags, says }) => {
  const { exitCode, stderr, stdout } = await chartpilot('explore', ...flags);
  expect(stderr).toContain(says);
  expect(stderr).toContain('--limit, --minutes');
  expect(stdout).toBe('');
  expect(exitCode).toBe(2);
});

test("chartpilot explore explores a user's machine with its sample events", async () => {
  const { exitCode, stdout } = await chartpilot('explore', '--machine', reservation);
  expect(stdout).toMatch(/^explore: complete, no violation and no livelock \(1 input\): \d+ states/);
  expect(exitCode).toBe(0);
});

test.each([
  { command: 'explore', before: ['--machine'], format: ['--format', 'json'] },
  { command: 'generate', before: [], format: [] },
  { command: 'diagram', before: [], format: ['--format', 'json'] },
])('chartpilot $command writes output of the user’s module to standard error', async ({ command, before, format }) => {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const machine = join(folder, 'printing.machine.mjs');
  const xstate = pathToFileURL(join(packageRoot(), 'node_modules/xstate/dist/xstate.esm.js')).href;
  writeFileSync(
    machine,
    `import { createMachine, log } from '${xstate}';
console.log('printed by the module');
process.stdout.write('written by the module\\n');
const states = { a: { on: { go: { target: 'b', actions: log('printed by the machine') } } }, b: {} };
export default createMachine({ id: 'printing', initial: 'a', states });
`,
  );
  const { exitCode, stdout, stderr } = await chartpilot(command, ...before, machine, ...format);
  expect(exitCode, stderr).toBe(0);
  expect(stdout).not.toMatch(/printed|written/);
  expect(stderr).toContain('printed by the module');
  expect(stderr).toContain('written by the module');
  if (format.includes('json')) JSON.parse(stdout);
});

test('chartpilot explore --machine explores infinitely many states up to a limit, and names the limit in the result', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const machine = join(folder, 'endless.machine.mjs');
  const xstate = pathToFileURL(join(packageRoot(), 'node_modules/xstate/dist/xstate.esm.js')).href;
  writeFileSync(
    machine,
    `import { assign, createMachine } from '${xstate}';
const add = { actions: assign({ n: ({ context }) => context.n + 1 }) };
export default createMachine({ id: 'endless', context: { n: 0 }, on: { add } });
`,
  );
  const { exitCode, stdout } = await chartpilot('explore', '--machine', machine, '--limit', '50');
  expect(stdout).toContain('INCOMPLETE: limit reached, no violation so far (raise --limit or --minutes)');
  expect(exitCode).toBe(0);
});
