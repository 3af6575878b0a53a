/**
 * `npm run test:gateway-conformance`: the Gateway API's conformance suite against the built programs, in a separate
 * network namespace (README.md). Exit code 1 if a test fails.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findEnvoy } from '../../src/agent/envoy/envoy-binary.ts';
import { supportedFeatures } from '../../src/model/translation/gateway-api/supported-features.ts';
import { ChartpilotError, explainError } from '../../src/runtime/errors.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { endWithRunner } from '../harness/runner-watch.ts';
import { conformancePrograms } from './programs.ts';
import { outcomesOf, summaryOf, unprovenFeatures } from './report.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    features: { type: 'string', default: supportedFeatures.join(',') },
    profiles: { type: 'string', default: 'GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TLS' },
    folder: { type: 'string', default: join(packageRoot(), 'coverage/gateway-conformance') },
  },
});

const report = (line: string): void => console.error(line);

try {
  if (process.getuid?.() !== 0) {
    throw new ChartpilotError('REQUEST_FAILED', 'the conformance suite runs in network namespaces, which needs root');
  }
  if (findEnvoy({ env: process.env }) === undefined) {
    throw new ChartpilotError('ENVOY_NOT_FOUND', 'Envoy binary not found', { hint: 'Run: npm run envoy' });
  }
  const { suite, echo } = await conformancePrograms(report);
  rmSync(values.folder, { recursive: true, force: true });
  mkdirSync(values.folder, { recursive: true });
  const insideScript = join(import.meta.dirname, 'inside.ts');
  const child = spawn('unshare', ['--net', '--mount', process.execPath, insideScript], {
    ...{ stdio: ['ignore', 'inherit', 'inherit'], detached: true },
    env: {
      ...process.env,
      ...{ SUITE: suite, ECHO: echo, FOLDER: values.folder },
      ...{ PROFILES: values.profiles, FEATURES: values.features, RUN_TEST: values.only },
    },
  });
  endWithRunner(child);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  const [code] = await once(child, 'close');
  const output = readFileSync(join(values.folder, 'suite.log'), 'utf8');
  const outcomes = outcomesOf(output);
  const unproven = values.only === '' ? unprovenFeatures(output, values.features.split(',')) : [];
  console.log(summaryOf(outcomes, unproven));
  console.log(`Output of the suite and logs of the pods: ${values.folder}`);
  process.exitCode = code === 0 && outcomes.size > 0 && unproven.length === 0 ? 0 : 1;
} catch (error) {
  report(explainError(error));
  process.exitCode = 1;
}
