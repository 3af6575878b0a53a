/** Runs documented tasks in an installed mesh, one after the other. */
import { messageOf } from '../../../src/runtime/errors.ts';
import type { CheckFinding } from '../../demo/findings.ts';
import type { InstalledMesh } from '../mesh/installed-mesh.ts';
import { PodStreams } from '../mesh/pod-streams.ts';
import { nodeName } from '../node-configuration.ts';
import { resources } from '../resources.ts';
import { type Task, TaskContext } from './context.ts';
import type { SampleFiles } from './sample-files.ts';
import { stageSampleImages } from './sample-images.ts';

export interface TaskResult {
  readonly task: Task;
  readonly findings: readonly CheckFinding[];
  readonly seconds: number;
}

/** Imports the sample images, and sets the locality of the node. Call it before {@link runTasks}. */
export async function prepareSamples({ node }: InstalledMesh): Promise<void> {
  await node.importImage(await stageSampleImages(node.folder));
  const labels = { 'topology.kubernetes.io/region': 'region1', 'topology.kubernetes.io/zone': 'zone1' };
  await node.cluster.apply(resources.Node, { metadata: { name: nodeName, labels } });
}

export async function* runTasks(
  mesh: InstalledMesh,
  tasks: readonly Task[],
  samples: SampleFiles,
  report: (line: string) => void,
): AsyncGenerator<TaskResult> {
  const streams = await PodStreams.open(mesh.node);
  try {
    const context = new TaskContext(mesh, streams, samples, report);
    for (const task of tasks) yield await runTask(context, task, report);
  } finally {
    streams.close();
  }
}

async function runTask(context: TaskContext, task: Task, report: (line: string) => void): Promise<TaskResult> {
  report(`${task.name} (https://istio.io/latest/docs/${task.page}/)`);
  const startedAt = performance.now();
  try {
    await context.start(task.needs);
    await task.run(context);
    await context.removeApplied();
  } catch (error) {
    const [line = '', ...furtherLines] = messageOf(error).split('\n');
    context.record('run', line, 'no error', false, furtherLines.join('\n'));
    await context.removeApplied().catch(() => {});
  }
  return { task, findings: context.findings.splice(0), seconds: (performance.now() - startedAt) / 1000 };
}
