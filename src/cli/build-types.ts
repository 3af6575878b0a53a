/** Generates type declarations for `npm run prepack`, because Node rejects TypeScript inside node_modules. */
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
  // Ignores errors of tsc: it also reports the machines that a replay imports, which are not exported.
  const compilerResult = spawnSync('tsc', ['-p', project, '--checkers', '1'], { cwd: root, encoding: 'utf8' });
  const target = join(root, 'types');
  rmSync(target, { recursive: true, force: true });
  for (const file of collectReachableFiles(entries.map((entry) => join(draft, `${entry}.d.ts`)))) {
    if (!existsSync(file))
      throw new Error(
        `tsc did not generate ${relative(draft, file)}: ${compilerResult.error?.message ?? compilerResult.stdout}`,
      );
    cpSync(file, join(target, relative(draft, file)));
  }
} finally {
  rmSync(draft, { recursive: true, force: true });
}

function collectReachableFiles(files: readonly string[]): Set<string> {
  const typeFiles = new Set(files);
  for (const file of typeFiles) {
    if (!existsSync(file)) continue;
    for (const [, specifier] of readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*['"](\.[^'"]+)\.ts['"]/g)) {
      typeFiles.add(join(dirname(file), `${specifier}.d.ts`));
    }
  }
  return typeFiles;
}
