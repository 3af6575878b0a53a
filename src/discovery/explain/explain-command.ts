/** `pilot-discovery explain`: what is asked, answered as text. */
import * as E from 'fp-ts/lib/Either.js';
import { parseNode } from '../../model/node/parse-node.ts';
import type { Proxy } from '../../model/node/proxy.ts';
import { shapeOf } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { explain } from '../../networking/explain/explain.ts';
import type { ProxyConfiguration } from '../../networking/explain/proxy-configuration.ts';
import type { Question } from '../../networking/explain/question.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { requestJson } from '../../runtime/trace/program-request.ts';
import { dumpedConfiguration } from './dumped.ts';
import { generatedConfiguration } from './generated.ts';
import { callText, explainCall, grpcOverviewOf, grpcOverviewText, tellCall } from './grpc-call.ts';
import { type MeshFiles, type OfflineMesh, readOfflineMesh } from './offline-mesh.ts';
import { overviewOf, overviewText } from './overview.ts';
import { type PendingResources, pendingResources, pendingText } from './pending.ts';
import { type AskedFor, addressOfService, questionOf } from './question-of.ts';
import { Sources } from './sources.ts';
import { tell, toldText } from './text.ts';

export interface NodeAsked {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface ExplainAsked extends Partial<AskedFor> {
  /** Absent: no files are at hand; then `from` says what the proxy has. */
  readonly files?: MeshFiles;
  /** Absent: the Envoy at `from` is asked itself. */
  readonly node?: NodeAsked;
  /** Address of a control plane, or of an Envoy's admin interface. */
  readonly from?: string;
  readonly format: 'text' | 'json';
}

export interface ExplainAnswer {
  readonly text: string;
  /** What was odd on the way. */
  readonly warnings: readonly string[];
}

interface Known {
  readonly configuration: ProxyConfiguration;
  readonly warnings: readonly string[];
  readonly addressOf: (host: string) => string | undefined;
  readonly mesh?: OfflineMesh;
  /** Of a control plane: what it has not sent to the proxy yet, or keeps at it. */
  readonly pending?: PendingResources;
}

const fromHint = 'Check --from: a running control plane, or the admin interface of an Envoy.';

/** @throws ChartpilotError */
export async function answerExplain(asked: ExplainAsked): Promise<ExplainAnswer> {
  if (asked.node?.metadata.GENERATOR === 'grpc') return await answerForGrpc(asked, asked.node);
  const known = asked.from === undefined ? await fromFiles(asked) : await fromRunning(asked, asked.from);
  const sources = new Sources(known.mesh?.configOf ?? (() => undefined));
  const who = asked.node?.id ?? asked.from ?? '';
  const written = (answer: object, text: () => string): ExplainAnswer => ({
    text:
      asked.format === 'json'
        ? jsonText({ ...answer, ...known.pending })
        : `${text()}${known.pending ? pendingText(known.pending) : ''}`,
    warnings: known.warnings,
  });
  if (asked.url === undefined) {
    const overview = overviewOf(known.configuration, sources);
    return written(overview, () => overviewText(who, overview));
  }
  const question: Question = questionOf({ ...asked, url: asked.url }, known.addressOf);
  const told = tell(explain(known.configuration, question), sources);
  return written(told, () => toldText(`${asked.url} at ${who}`, told));
}

/** A gRPC program has no admin interface, and requests by name: files alone say what it would get. */
async function answerForGrpc(asked: ExplainAsked, node: NodeAsked): Promise<ExplainAnswer> {
  const { files, from, format, url } = asked;
  if (from !== undefined || files === undefined) {
    throw new ChartpilotError(
      'FLAG_INVALID',
      'a gRPC program (GENERATOR=grpc) is explained from files: set --configDir DIR without --from',
    );
  }
  const { context, configOf, warnings } = await readOfflineMesh(files);
  const shape = shapeOf(proxyOf(node), context);
  const sources = new Sources(configOf);
  if (url === undefined) {
    const overview = grpcOverviewOf(shape, context, sources);
    return { text: format === 'json' ? jsonText(overview) : grpcOverviewText(node.id, overview), warnings };
  }
  const told = tellCall(explainCall({ ...asked, url }, shape, context), sources);
  return { text: format === 'json' ? jsonText(told) : callText(`${url} at ${node.id}`, told), warnings };
}

function jsonText(answer: object): string {
  return `${JSON.stringify(answer, null, 2)}\n`;
}

async function fromFiles({ files, node }: ExplainAsked): Promise<Known> {
  if (files === undefined)
    throw new ChartpilotError(
      'FLAG_INVALID',
      'set --configDir DIR to read files, or --from URL to query a running Envoy or control plane',
    );
  if (node === undefined)
    throw new ChartpilotError(
      'FLAG_INVALID',
      '--node is required, for example --node sidecar~10.1.2.3~web-0.shop~shop.svc.cluster.local',
    );
  const mesh = await readOfflineMesh(files);
  return { ...given(node, mesh.context), warnings: mesh.warnings, mesh };
}

function proxyOf({ id, metadata, labels }: NodeAsked): Proxy {
  const parsed = parseNode({ id, cluster: '', metadata: { ...metadata, LABELS: labels } });
  if (E.isLeft(parsed)) throw new ChartpilotError('FLAG_INVALID', `--node: ${parsed.left}`);
  return parsed.right;
}

/** What the control plane would give a node. */
export function given(node: NodeAsked, push: PushContext): Pick<Known, 'configuration' | 'addressOf'> {
  const shape = shapeOf(proxyOf(node), push);
  return {
    configuration: generatedConfiguration(shape, push),
    addressOf: (host) => addressOfService(host, shape, push),
  };
}

/** The files, when there are any, are for the lines of what the proxy has. */
async function fromRunning({ files, node }: ExplainAsked, from: string): Promise<Known> {
  const path =
    node === undefined
      ? '/config_dump?include_eds'
      : `/debug/config_dump?include_eds&proxyID=${encodeURIComponent(node.id)}`;
  const { omitted, ...configuration } = dumpedConfiguration(await requestJson(from, path, fromHint));
  const pending = node && (await pendingOf(from, node));
  const mesh = files && (await readOfflineMesh(files));
  const fromMesh = mesh && node && given(node, mesh.context);
  return {
    configuration: {
      ...configuration,
      ...(fromMesh && { explainEndpoints: fromMesh.configuration.explainEndpoints! }),
    },
    addressOf: (host) => fromMesh?.addressOf(host),
    warnings: [...omitted.map((what) => `left out: ${what}`), ...(mesh?.warnings ?? [])],
    ...(mesh && { mesh }),
    ...(pending && { pending }),
  };
}

/** @returns undefined if the control plane does not say: it is another one, or an older one */
async function pendingOf(from: string, { id }: NodeAsked): Promise<PendingResources | undefined> {
  try {
    return pendingResources(await requestJson(from, `/debug/proxyz?proxyID=${encodeURIComponent(id)}`, fromHint));
  } catch {
    return undefined;
  }
}
