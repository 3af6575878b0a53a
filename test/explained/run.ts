/**
 * `node test/explained/run.ts --cases a,b --requests 50 --seed 1`, as root: prints one line of JSON for each golden
 * case.
 */
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { caseNames } from '../networking/case.ts';
import { CaseCertificates } from '../networking/envoy-acceptance.ts';
import { startBackend, startNameServer } from './backend.ts';
import { compareCase } from './drive.ts';
import { inNamespace, requireOwnNamespace } from './namespace.ts';

const { values } = parseArgs({
  options: {
    cases: { type: 'string' },
    requests: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    inside: { type: 'boolean', default: false },
  },
});

if (!values.inside) {
  const { command, args } = inNamespace(process.execPath, [import.meta.filename, '--inside', ...process.argv.slice(2)]);
  const child = spawn(command, args, { stdio: 'inherit' });
  child.on('exit', (code) => process.exit(code ?? 1));
} else {
  requireOwnNamespace();
  const certificates = new CaseCertificates();
  const backendPort = await startBackend(certificates.issued);
  const dnsPort = await startNameServer();
  const names = values.cases?.split(',') ?? caseNames();
  const options = { requests: Number(values.requests), seed: Number(values.seed) };
  for (const name of names) {
    const result = await compareCase(name, options, { backendPort, dnsPort, certificates });
    process.stdout.write(`${JSON.stringify(result)}\n`);
  }
  certificates.remove();
  process.exit(0);
}
