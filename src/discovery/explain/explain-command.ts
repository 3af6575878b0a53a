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
import { parseConfigDump } from './dumped.ts';
import { generatedConfiguration } from './generated.ts';
import { callText, describeCall, explainCall, grpcOverviewOf, grpcOverviewText } from './grpc-call.ts';
import { type MeshFiles, type OfflineMesh, readOfflineMesh } from './offline-mesh.ts';
import { overviewOf, overviewText } from './overview.ts';
import { type PendingResources, pendingResources, pendingText } from './pending.ts';
import { addressOfService, type QuestionFlags, questionOf } from './question-of.ts';
import { ConfigOrigins } from './sources.ts';
import { describeExplanation, explanationText } from './text.ts';

export interface NodeQuery {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface ExplainQuery extends Partial<QuestionFlags> {
  /** `undefined` if the configuration is read from `from` only. */
  readonly files?: MeshFiles;
  /** `undefined` if `from` is an Envoy. */
  readonly node?: NodeQuery;
  readonly from?: string;
  readonly format: 'text' | 'json';
}

export interface ExplainResult {
  readonly text: string;
  readonly warnings: readonly string[];
}

interface KnownConfiguration {
  readonly configuration: ProxyConfiguration;
  readonly warnings: readonly string[];
  readonly addressOf: (host: string) => string | undefined;
  readonly mesh?: OfflineMesh;
  /** The control plane has not sent these resources yet, or the proxy keeps them although they are no longer configured. */
  readonly pending?: PendingResources;
}

const fromHint = 'Check --from: a running control plane, or the admin interface of an Envoy.';

export async function runExplain(explainQuery: ExplainQuery): Promise<ExplainResult> {
  if (explainQuery.node?.metadata.GENERATOR === 'grpc') return await explainGrpc(explainQuery, explainQuery.node);
  const configuration =
    explainQuery.from === undefined
      ? await configurationFromFiles(explainQuery)
      : await configurationFromAddress(explainQuery, explainQuery.from);
  const sources = new ConfigOrigins(configuration.mesh?.configOf ?? (() => undefined));
  const target = explainQuery.node?.id ?? explainQuery.from ?? '';
  const buildOutput = (result: object, text: () => string): ExplainResult => ({
    text:
      explainQuery.format === 'json'
        ? jsonText({ ...result, ...configuration.pending })
        : `${text()}${configuration.pending ? pendingText(configuration.pending) : ''}`,
    warnings: configuration.warnings,
  });
  if (explainQuery.url === undefined) {
    const overview = overviewOf(configuration.configuration, sources);
    return buildOutput(overview, () => overviewText(target, overview));
  }
  const question: Question = questionOf({ ...explainQuery, url: explainQuery.url }, configuration.addressOf);
  const textExplanation = describeExplanation(explain(configuration.configuration, question), sources);
  return buildOutput(textExplanation, () => explanationText(`${explainQuery.url} at ${target}`, textExplanation));
}

/** A proxyless client has no admin interface and requests resources by name, so files are required. */
async function explainGrpc(explainQuery: ExplainQuery, node: NodeQuery): Promise<ExplainResult> {
  const { files, from, format, url } = explainQuery;
  if (from !== undefined || files === undefined) {
    throw new ChartpilotError(
      'FLAG_INVALID',
      'a gRPC program (GENERATOR=grpc) is explained from files: set --configDir DIR without --from',
    );
  }
  const { context, configOf, warnings } = await readOfflineMesh(files);
  const shape = shapeOf(proxyOf(node), context);
  const sources = new ConfigOrigins(configOf);
  if (url === undefined) {
    const overview = grpcOverviewOf(shape, context, sources);
    return { text: format === 'json' ? jsonText(overview) : grpcOverviewText(node.id, overview), warnings };
  }
  const textExplanation = describeCall(explainCall({ ...explainQuery, url }, shape, context), sources);
  return {
    text: format === 'json' ? jsonText(textExplanation) : callText(`${url} at ${node.id}`, textExplanation),
    warnings,
  };
}

function jsonText(result: object): string {
  return `${JSON.stringify(result, null, 2)}\n`;
}

async function configurationFromFiles({ files, node }: ExplainQuery): Promise<KnownConfiguration> {
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
  return { ...configurationFor(node, mesh.context), warnings: mesh.warnings, mesh };
}

function proxyOf({ id, metadata, labels }: NodeQuery): Proxy {
  const parsedNode = parseNode({ id, cluster: '', metadata: { ...metadata, LABELS: labels } });
  if (E.isLeft(parsedNode)) throw new ChartpilotError('FLAG_INVALID', `--node: ${parsedNode.left}`);
  return parsedNode.right;
}

export function configurationFor(
  node: NodeQuery,
  push: PushContext,
): Pick<KnownConfiguration, 'configuration' | 'addressOf'> {
  const shape = shapeOf(proxyOf(node), push);
  return {
    configuration: generatedConfiguration(shape, push),
    addressOf: (host) => addressOfService(host, shape, push),
  };
}

/** Files, if given, provide the line numbers of objects. */
async function configurationFromAddress({ files, node }: ExplainQuery, address: string): Promise<KnownConfiguration> {
  const path =
    node === undefined
      ? '/config_dump?include_eds'
      : `/debug/config_dump?include_eds&proxyID=${encodeURIComponent(node.id)}`;
  const { omittedParts, ...configuration } = await requestJson({
    ...{ from: address, path, hint: fromHint },
    ...{ expected: 'a config_dump of Envoy', read: parseConfigDump },
  });
  const pending = node && (await pendingOf(address, node));
  const mesh = files && (await readOfflineMesh(files));
  const meshConfiguration = mesh && node && configurationFor(node, mesh.context);
  return {
    configuration: {
      ...configuration,
      ...(meshConfiguration && { explainEndpoints: meshConfiguration.configuration.explainEndpoints! }),
    },
    addressOf: (host) => meshConfiguration?.addressOf(host),
    warnings: [...omittedParts.map((omittedPart) => `left out: ${omittedPart}`), ...(mesh?.warnings ?? [])],
    ...(mesh && { mesh }),
    ...(pending && { pending }),
  };
}

/** @returns `undefined` if the control plane does not report pending resources, for example an older one */
async function pendingOf(address: string, { id }: NodeQuery): Promise<PendingResources | undefined> {
  try {
    return await requestJson({
      ...{ from: address, path: `/debug/proxyz?proxyID=${encodeURIComponent(id)}`, hint: fromHint },
      ...{ expected: 'the proxies of a control plane', read: pendingResources },
    });
  } catch {
    return undefined;
  }
}
