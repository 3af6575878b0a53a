/** The linter enforces that machines do not use effects and that layers import in one direction. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { packageRoot } from '../src/runtime/package-root.ts';

/** Output of the linter, with this package's rules, for a file with this text. */
function lint(file: string, text: string): { hasErrors: boolean; output: string } {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-lint-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const rules of [
    ...['biome.json', 'machines/no-randomness.grit'],
    ...['src/runtime/output/output-through-sinks.grit', 'src/runtime/fences/maps-for-foreign-keys.grit'],
  ]) {
    cpSync(join(packageRoot(), rules), join(folder, rules), { recursive: true });
  }
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), text);
  const biome = join(packageRoot(), 'node_modules/.bin/biome');
  const { status, stdout, stderr } = spawnSync(biome, ['lint', '--vcs-enabled=false', file], {
    cwd: folder,
    encoding: 'utf8',
  });
  return { hasErrors: status !== 0, output: stdout + stderr };
}

describe('lint of machines', () => {
  test.each([
    ['a Node module', "import { readFileSync } from 'node:fs';\nexport const read = readFileSync;\n"],
    [
      'an effect',
      "import { startRoot } from '../../src/runtime/actors/actor-system.ts';\nexport const start = startRoot;\n",
    ],
    ['a package other than xstate', "import * as E from 'fp-ts/lib/Either.js';\nexport const right = E.right;\n"],
    ['the clock', 'export const now = Date.now();\n'],
    ['randomness', 'export const chance = Math.random();\n'],
    ['a timer', 'export const timer = setTimeout(() => {}, 1);\n'],
    ['the process', 'export const pid = process.pid;\n'],
    ['the internal reference to a parent', 'export const parentOf = ({ self }) => self._parent;\n'],
    ['an actor by a name without a type', "export const status = ({ system }) => system.get('status');\n"],
    ['an untyped actor of its own system', "export const status = ({ self }) => self.system.get('status');\n"],
  ])('a machine cannot use %s', (_, text) => {
    const { hasErrors: refused, output } = lint('machines/agent/new.machine.ts', text);
    expect(refused, output).toBe(true);
    expect(output).toMatch(/machines\/agent\/new\.machine\.ts:1:\d+ (lint\/style\/noRestricted|plugin)/);
    expect(lint('machines/agent/envoy/new.machine.ts', text.replace("'../../", "'../../../")).hasErrors).toBe(true);
  });

  test.each([
    ['machines/agent/new.machine.ts', '../discovery/settings.ts'],
    ['machines/agent/envoy/new.machine.ts', '../../discovery/settings.ts'],
    ['machines/agent/envoy/new.machine.ts', '../../discovery/push/push-queue-record.ts'],
    ['machines/new.ts', './agent/settings.ts'],
  ])('%s cannot import %s of the other program', (file, other) => {
    expect(lint(file, `export { something } from '${other}';\n`).hasErrors).toBe(true);
  });

  test('a machine can use xstate, its own side and shared files', () => {
    const text = [
      "import { setup } from 'xstate';",
      "import { reasonOf } from '../effect.ts';",
      "import { isBlocked } from './envoy/epoch-record.ts';",
      "import { defaultSettings } from './settings.ts';",
      'export const used = [setup, reasonOf, defaultSettings, isBlocked, Math.min(1, 2)];',
      '',
    ].join('\n');
    const { hasErrors: refused, output } = lint('machines/agent/new.machine.ts', text);
    expect(refused, output).toBe(false);
  });

  test('a machine in a folder can use files of its folder and its side', () => {
    const text = [
      "import { setup } from 'xstate';",
      "import { reasonOf } from '../../effect.ts';",
      "import { defaultSettings } from '../settings.ts';",
      "import { pauseAfter } from '../xds/xds-pause.ts';",
      "import { isBlocked } from './epoch-record.ts';",
      'export const used = [setup, reasonOf, defaultSettings, isBlocked, pauseAfter];',
      '',
    ].join('\n');
    const { hasErrors: refused, output } = lint('machines/agent/envoy/new.machine.ts', text);
    expect(refused, output).toBe(false);
  });
});

describe('keys of external input', () => {
  test.each([
    [
      'a literal',
      'export function f(key: string) {\n  const seen: Record<string, number> = {};\n  seen[key] = 1;\n  return seen;\n}\n',
    ],
    [
      'a nested literal',
      'export function f() {\n  let seen: Record<string, Record<string, object>> = {};\n  seen = {};\n  return seen;\n}\n',
    ],
  ])('external keys are not stored in an object: %s', (_, text) => {
    for (const file of ['src/discovery/new.ts', 'src/agent/new.ts', 'src/runtime/new.ts']) {
      const { hasErrors: refused, output } = lint(file, text);
      expect(refused, output).toBe(true);
      expect(output).toContain('keys of external input go into a Map');
    }
  });

  test('external keys can be stored in a Map, and known keys in an object', () => {
    const text = [
      'export const byName = new Map<string, number>();',
      'export const table: Record<string, number> = { one: 1 };',
      "export const known: Partial<Record<'a' | 'b', number>> = {};",
      '',
    ].join('\n');
    expect(lint('src/discovery/new.ts', text).output).not.toContain('external input');
    // Keys in tests are not external input.
    expect(lint('src/discovery/new.test.ts', 'export const seen: Record<string, number> = {};\n').output).not.toContain(
      'external input',
    );
  });
});

describe('imports point in one direction', () => {
  test.each([
    ['src/model/new.ts', '../networking/index.ts'],
    ['src/model/kinds/gateway-api/new.ts', '../../../networking/index.ts'],
    ['src/networking/clusters/new.ts', '../../discovery/encoding.ts'],
    ['src/networking/listeners/http-filters/new.ts', '../../../discovery/xds/responses/encoding.ts'],
    ['src/agent/new.ts', '../discovery/encoding.ts'],
    ['src/agent/admin/new.ts', '../../discovery/encoding.ts'],
    ['src/discovery/new.ts', '../agent/bootstrap/bootstrap.ts'],
    ['src/discovery/monitor/debug/new.ts', '../../../agent/bootstrap/bootstrap.ts'],
    ['src/identity/new.ts', '../model/config/config.ts'],
    ['src/runtime/new.ts', '../model/config/config.ts'],
    ['src/runtime/new.ts', '../identity/pem.ts'],
    ['src/runtime/trace/new.ts', '../../model/config/config.ts'],
    ['src/debugger/new.ts', '../cli/build.ts'],
    ['src/debugger/explore/new.ts', '../../simulation/agent/explore-agent.ts'],
    ['src/simulation/agent/new.ts', '../../agent/agent-system.ts'],
    ['src/cli/commands/new.ts', '../../../test/fixtures/given-mesh.ts'],
  ])('%s cannot import %s', (file, imported) => {
    const { hasErrors: refused, output } = lint(
      file,
      `import * as all from '${imported}';\nexport const used = all;\n`,
    );
    expect(refused, output).toBe(true);
    expect(output).toContain('imports point one way');
  });
});

describe('lint of output', () => {
  test.each([
    'process.exit(1)',
    'process.exit()',
    "process.stdout.write('x')",
    "process.stderr.write('x')",
    "console.log('x')",
    "console.error('x', 1)",
  ])('the linter rejects %s', (use) => {
    const { hasErrors: refused, output } = lint('src/agent/new.ts', `export const used = (): unknown => ${use};\n`);
    expect(refused, output).toBe(true);
    expect(output).toContain('output goes through standardOutput');
  });

  test('files that open the outputs can use process.stdout', () => {
    const { hasErrors: refused, output } = lint(
      'src/runtime/output/outlet.ts',
      'export const used = process.stdout;\n',
    );
    expect(refused, output).toBe(false);
  });
});

describe("lint of the debugger's page", () => {
  test.each([
    'node:fs',
    'xstate',
    'elkjs',
    '../src/agent/bootstrap/bootstrap.ts',
    '../../src/discovery/xds/responses/encoding.ts',
    '../src/cli/build.ts',
    '../src/runtime/trace/trace-file.ts',
    '../src/debugger/visualize/page-server.ts',
    '../machines/agent/protocol.ts',
  ])('the page cannot import %s', (imported) => {
    const { hasErrors: refused, output } = lint(
      'visualize/new.tsx',
      `import * as all from '${imported}';\nexport const used = all;\n`,
    );
    expect(refused, output).toBe(true);
    expect(output).toContain('the page imports preact');
  });

  test('the page can import preact, its own files, the trace format, and debugger files that need no Node', () => {
    const imported = [
      'preact',
      'preact/hooks',
      '@preact/signals',
      './model/place.ts',
      '../page-data.ts',
      '../../src/runtime/trace/trace.ts',
      '../../src/runtime/trace/trace-state.ts',
      '../../src/runtime/trace/statechart.ts',
      '../../src/debugger/check.ts',
      '../../src/debugger/diagram/parse.ts',
    ];
    const text = imported.map((from, number) => `export * as from${number} from '${from}';\n`).join('');
    const { hasErrors: refused, output } = lint('visualize/chart/new.ts', text);
    expect(refused, output).toBe(false);
  });
});
