/**
 * Checks the wording of user-facing texts and of the sources: the last part of `npm run lint`.
 *
 * `--all FOLDER…` reports all comments, names and test titles of these folders.
 */
import type { WordingFinding } from './wording.ts';

const modules = await Promise.all([import('./wording.ts'), import('./code-wording.ts')]).catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.log(`${error.message}\nRun 'npm install --ignore-scripts': package.json has a new dependency.`);
  process.exit(1);
});
const [{ findingsOf, textFiles, wordingOf }, sources] = modules;

const [mode, ...folders] = process.argv.slice(2);
const isBelow = (file: string): boolean => folders.some((folder) => file.startsWith(`${folder.replace(/\/$/, '')}/`));
const inCode = sources.codeFindingsOf(
  sources.codeWordingOf(),
  sources.sourceFiles().filter((file) => mode !== '--all' || isBelow(file)),
);

const findings: readonly WordingFinding[] =
  mode === '--all' ? inCode : [...(await findingsOf(await wordingOf(), textFiles())), ...inCode];
for (const { file, line, column, message } of findings) console.log(`${file}:${line}:${column} ${message}`);
console.log(`wording: ${findings.length} findings`);
process.exitCode = findings.length > 0 ? 1 : 0;
