/**
 * `npm run test:tasks -- [--only TASK,…] [--samples FOLDER]`: Istio's documented tasks on a real node. Exit code 1 if a result differs from the
 * documentation; the tables at the end have all results.
 */
import { readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { explainError, messageOf } from '../../../src/runtime/errors.ts';
import { type CheckFinding, formatFindings } from '../../demo/findings.ts';
import { InstalledMesh } from '../mesh/installed-mesh.ts';
import { resourceOfObject } from '../resources.ts';
import { objectsIn } from '../workloads.ts';
import { prepareSamples, runTasks, type TaskResult } from './run-tasks.ts';
import { SampleFiles } from './sample-files.ts';
import { tasks } from './tasks.ts';

const names = tasks.map(({ name }) => name);
const usage = `usage: npm run test:tasks -- [--only TASK,…] [--samples FOLDER]

  --only TASK,…      some tasks: ${names.join(', ')}
  --samples FOLDER   manifests that Istio publishes (bookinfo-kube/, httpbin/, …), instead of our own objects with the same names`;

const print = (line: string): void => console.log(line);
const neverAborted = new AbortController().signal;

/** Reports whether the API server accepts each file unchanged, as a dry run. */
async function acceptSamples({ node }: InstalledMesh, folder: string): Promise<CheckFinding[]> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.yaml'));
  const samples = new SampleFiles(folder);
  const rejections: string[] = [];
  for (const file of files.sort()) {
    for (const object of objectsIn(samples.read(file))) {
      const { name, namespace = node.cluster.namespace } = object.metadata;
      const query = { fieldManager: 'test', force: 'true', dryRun: 'All' };
      const request = { method: 'PATCH', patch: 'apply', name, namespace, body: object, query } as const;
      await node.cluster.admin
        .request({ ...request, resource: resourceOfObject(object) }, neverAborted)
        .catch((error: unknown) => rejections.push(`${file}: ${object.kind} ${name}: ${messageOf(error)}`));
    }
  }
  const detail = rejections.length === 0 ? {} : { detail: rejections.join('\n') };
  const expected = `${files.length} files, 0 rejected objects`;
  const summary = `${files.length} files, ${rejections.length} rejected objects`;
  return [{ check: 'samples are accepted', seen: summary, expected, ok: rejections.length === 0, ...detail }];
}

function formatTasks(results: readonly TaskResult[]): string {
  const rows = results.map(({ task, findings, seconds }) => {
    const failedCount = findings.filter(({ ok }) => !ok).length;
    const state = failedCount === 0 ? 'passed' : 'FAILED';
    return `${state}  ${task.name.padEnd(24)}  ${seconds.toFixed(1).padStart(6)} s  ${findings.length - failedCount} of ${findings.length} results as documented`;
  });
  return rows.join('\n');
}

async function run(selectedNames: readonly string[], folder: string | undefined): Promise<boolean> {
  const startedAt = performance.now();
  const seconds = (): string => `${((performance.now() - startedAt) / 1000).toFixed(0)} s`;
  const mesh = await InstalledMesh.start();
  try {
    await prepareSamples(mesh);
    print(`node, control plane and images: ${seconds()}`);
    const findings = folder === undefined ? [] : await acceptSamples(mesh, folder);
    const results: TaskResult[] = [];
    const selectedTasks = tasks.filter(({ name }) => selectedNames.length === 0 || selectedNames.includes(name));
    for await (const result of runTasks(mesh, selectedTasks, new SampleFiles(folder), print)) results.push(result);
    for (const { task, findings: taskFindings } of results) {
      findings.push(...taskFindings.map((finding) => ({ ...finding, check: `${task.name}: ${finding.check}` })));
    }
    const passed = results.filter(({ findings: taskFindings }) => taskFindings.every(({ ok }) => ok)).length;
    print(`\n${formatFindings(findings)}\n\n${formatTasks(results)}`);
    print(`tasks: ${passed} of ${results.length} passed, ${findings.length} results, ${seconds()}`);
    return findings.every(({ ok }) => ok);
  } finally {
    await mesh.node.stop();
  }
}

const { values } = parseArgs({
  options: { only: { type: 'string' }, samples: { type: 'string' }, help: { type: 'boolean', default: false } },
});
const selectedNames = values.only?.split(',') ?? [];
const unknownNames = selectedNames.filter((name) => !names.includes(name));
if (values.help || unknownNames.length > 0) {
  console.error(unknownNames.length > 0 ? `no such task: ${unknownNames.join(', ')}\n${usage}` : usage);
  process.exit(values.help ? 0 : 2);
}
try {
  process.exitCode = (await run(selectedNames, values.samples)) ? 0 : 1;
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}
