/** Checks the wording of user-facing texts: the last part of `npm run lint`. */
const { findingsOf, textFiles, wordingOf } = await import('./wording.ts').catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.log(`${error.message}\nRun 'npm install --ignore-scripts': package.json has a new dependency.`);
  process.exit(1);
});

const findings = await findingsOf(await wordingOf(), textFiles());
for (const { file, line, column, message } of findings) console.log(`${file}:${line}:${column} ${message}`);
console.log(`wording: ${findings.length} findings`);
process.exitCode = findings.length > 0 ? 1 : 0;
