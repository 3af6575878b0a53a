/** Checks the wording of user-facing texts: the last part of `npm run lint`. See README.md for the flags. */
import { writeFileSync } from 'node:fs';

const { findingsOf, listedFiles, listFile, textFiles, wordingOf } = await import('./wording.ts').catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.log(`${error.message}\nRun 'npm install --ignore-scripts': package.json has a new dependency.`);
  process.exit(1);
});

const listed = listedFiles();
const findings = await findingsOf(await wordingOf(), textFiles());
const reported = process.argv.includes('--all') ? findings : findings.filter(({ file }) => !listed.includes(file));
for (const { file, line, column, message } of reported) console.log(`${file}:${line}:${column} ${message}`);
if (process.argv.includes('--update')) {
  const dirty = listed.filter((listedFile) => findings.some(({ file }) => file === listedFile));
  writeFileSync(listFile, dirty.map((file) => `${file}\n`).join(''));
}
console.log(`wording: ${reported.length} findings; ${listed.length} files not yet clean`);
process.exitCode = reported.length > 0 ? 1 : 0;
