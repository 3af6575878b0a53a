/**
 * `npm run prepack`: the types of what tests import from the package, into `types/`. Node refuses TypeScript inside
 * node_modules, and whoever compiles against sources there compiles them by their own rules.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

const root = join(import.meta.dirname, '../..');
const entries = [
  'src/debugger/generate/machine-test',
  'src/debugger/generate/published-machines',
  'src/debugger/replay/replay-test',
  'src/record/node',
  'src/record/record',
];
const draft = mkdtempSync(join(tmpdir(), 'chartpilot-types-'));
try {
  const project = join(draft, 'tsconfig.json');
  writeFileSync(
    project,
    JSON.stringify({
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { noEmit: false, declaration: true, emitDeclarationOnly: true, rootDir: root, outDir: draft },
      files: entries.map((entry) => join(root, `${entry}.ts`)),
      include: [],
    }),
  );
  // tsc also looks at the machines behind a replay, whose types cannot all be named, and says so: none of them is reached
  // below. What is missing for those who import is found by the test that compiles such a file.
  const said = spawnSync('tsc', ['-p', project, '--checkers', '1'], { cwd: root, encoding: 'utf8' });
  const target = join(root, 'types');
  rmSync(target, { recursive: true, force: true });
  for (const file of reachable(entries.map((entry) => join(draft, `${entry}.d.ts`)))) {
    if (!existsSync(file))
      throw new Error(`tsc did not generate ${relative(draft, file)}: ${said.error?.message ?? said.stdout}`);
    cpSync(file, join(target, relative(draft, file)));
  }
} finally {
  rmSync(draft, { recursive: true, force: true });
}

/** The files and whatever they import, relatively, and so on. */
function reachable(files: readonly string[]): Set<string> {
  const found = new Set(files);
  for (const file of found) {
    if (!existsSync(file)) continue;
    for (const [, specifier] of readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*['"](\.[^'"]+)\.ts['"]/g)) {
      found.add(join(dirname(file), `${specifier}.d.ts`));
    }
  }
  return found;
}
