/** The walk of an EndpointSlice event in docs/architecture.md matches the program with a real API server. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { typeUrls } from '../ads-client.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Inspector } from '../harness/inspector.ts';
import { documentedWalks } from '../harness/walks.ts';
import { givenCluster } from './given-cluster.ts';
import { writeService, writeSlice } from './mesh-objects.ts';
import { Replicas } from './replica.ts';

const cluster = givenCluster();
let inspectorPort: number;
const folder = mkdtempSync(join(tmpdir(), 'cp-walks-'));
const traceFile = join(folder, 'discovery.trace');
/** Runs from sources, because coverage is per file. */
const replicas = new Replicas(cluster, {}, () => ({
  executable: process.execPath,
  args: [`--inspect=127.0.0.1:${inspectorPort}`, join(packageRoot(), 'src/cli/pilot-discovery.ts')],
}));

beforeAll(async () => {
  [inspectorPort] = (await freePorts(1)) as [number];
  await writeService(cluster, 'web', ['10.1.0.1']);
  return () => rmSync(folder, { recursive: true, force: true });
});

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly { readonly ranges: readonly { readonly count: number }[] }[];
  }[];
}

/** Files in which a function has run since the last call. */
async function filesThatRan(inspector: Inspector): Promise<ReadonlySet<string>> {
  const { result } = (await inspector.call('Profiler.takePreciseCoverage')) as Coverage;
  const root = `file://${packageRoot()}/`;
  return new Set(
    result
      .filter(({ functions }) => functions.some(({ ranges }) => ranges[0]!.count > 0))
      .filter(({ url }) => url.startsWith(root))
      .map(({ url }) => url.slice(root.length)),
  );
}

const recordsAfter = (seq: number): readonly TraceRecord[] =>
  readFileSync(traceFile, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as TraceRecord)
    .filter((record) => record.seq > seq);

/** Events of the walk; other informers and leaders send events at the same time. */
const eventsOfWalk =
  /^(objects\.changed|registry\.changed|push\.request|context\.built|clients\.(push|served)|proxies\.served)$/;

/** Machines that received an event from an actor of the walk, or took a step for an event of the walk. */
function charts(records: readonly TraceRecord[], field: 'to' | 'step'): readonly string[] {
  const chartOf = (actor: string): string => actor.replace(/\/.*$/, '').replace(/-\d+$/, '-N');
  const isInWalk = (actor: string): boolean => ['service-registry', 'push', 'push-queue'].includes(chartOf(actor));
  const chartNames = records.flatMap((record) => {
    if (field === 'to') return record.kind === 'event' && isInWalk(record.from) ? [chartOf(record.to)] : [];
    return 'on' in record && 'taken' in record && eventsOfWalk.test(record.on) ? [chartOf(record.actor)] : [];
  });
  return [...new Set(chartNames)].sort();
}

it('an EndpointSlice event runs each file of the documented walk, and causes transitions of four charts', async () => {
  const walk = documentedWalks().find(({ title }) => title === 'EndpointSlice event to EDS')!;
  const replica = await replicas.start('walked', undefined, undefined, ['--trace', traceFile]);
  const name = `outbound|80||web.${cluster.namespace}.svc.cluster.local`;
  const stream = replicas.connect(replica.plainPort, {});
  await stream.next();
  stream.onResponse = ({ typeUrl, nonce, versionInfo }) =>
    stream.send({ typeUrl, responseNonce: nonce, versionInfo, resourceNames: [name] });
  stream.send({ typeUrl: typeUrls.EDS, resourceNames: [name] });
  await stream.next();
  const inspector = await Inspector.attach(inspectorPort);
  await inspector.call('Profiler.enable');
  await inspector.call('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await inspector.call('Profiler.takePreciseCoverage');
  const lastSeq = recordsAfter(0).at(-1)!.seq;

  await writeSlice(cluster, 'web', ['10.1.0.1', '10.1.0.2']);
  expect((await stream.next()).typeUrl).toBe(typeUrls.EDS);
  const ran = await filesThatRan(inspector);
  inspector.close();
  expect(walk.files.map(({ file }) => file).filter((file) => !ran.has(file))).toEqual([]);

  // The trace is written with a delay.
  const servedToAll = (record: TraceRecord): boolean =>
    record.kind === 'event' && record.event.type === 'clients.served';
  await eventually('the push is in the trace', () => recordsAfter(lastSeq).some(servedToAll));
  const records = recordsAfter(lastSeq);
  // `context.built` only informs the program's machine, which ignores it.
  expect(charts(records, 'to')).toEqual(['discovery', 'push', 'push-queue', 'service-registry']);
  expect(charts(records, 'step')).toEqual(['informer-N', 'push', 'push-queue', 'service-registry']);
}, 120_000);
