import { isIP } from 'node:net';
import { mustBe } from '../../model/fields/violation.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { explainGrpc } from '../../networking/explain/grpc/explain-grpc.ts';
import type { GrpcExplanation, GrpcQuestion } from '../../networking/explain/grpc/grpc-question.ts';
import { grpcResources } from '../../networking/grpc/index.ts';
import type { Limitation } from '../../networking/grpc/limitation.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { optionError } from '../../runtime/option-errors.ts';
import { headersOf, type QuestionFlags } from './question-of.ts';
import type { ConfigOrigin, ConfigOrigins } from './sources.ts';
import { describeExplanation, type ExplanationText, explanationText, sourceText } from './text.ts';

export interface LimitationText {
  readonly text: string;
  readonly from: readonly ConfigOrigin[];
}

export interface CallText extends ExplanationText {
  readonly settings: readonly string[];
  readonly limitations: readonly LimitationText[];
}

export function explainCall(flags: QuestionFlags, shape: ProxyShape, push: PushContext): GrpcExplanation {
  return explainGrpc(grpcResources(shape, push), grpcQuestionOf(flags));
}

const urlForm = 'xds:///HOST:PORT/SERVICE/METHOD';

/** @throws ChartpilotError FLAG_INVALID */
export function grpcQuestionOf(flags: QuestionFlags): GrpcQuestion {
  for (const flag of ['method', 'sni', 'http2', 'address'] as const) {
    if (flags[flag] === undefined) continue;
    throw new ChartpilotError(
      'FLAG_INVALID',
      `--${flag}: has no meaning for a gRPC program (GENERATOR=grpc); remove it`,
    );
  }
  const [, target = '', path = '/'] = /^xds:\/\/\/([^/?#\s]+)(\/[\x21-\x7e]*)?$/.exec(flags.url) ?? [];
  if (target === '') throw optionError('--url', mustBe(`${urlForm} for a gRPC program (GENERATOR=grpc)`, flags.url));
  const { host: authority, ...headers } = headersOf(flags);
  if (flags.source !== undefined && isIP(flags.source) === 0)
    throw optionError('--source', mustBe('an IP address', flags.source));
  return {
    ...{ side: flags.inbound ? 'server' : 'client', target, path, headers },
    ...(authority !== undefined && { authority }),
    ...(flags.source !== undefined && { source: flags.source }),
    ...(flags.principal !== undefined && { principal: flags.principal }),
  };
}

export function describeCall(explanation: GrpcExplanation, sources: ConfigOrigins): CallText {
  const { settings, limitations } = explanation;
  return {
    ...describeExplanation(explanation, sources),
    settings,
    limitations: describeLimitations(limitations, sources),
  };
}

function describeLimitations(limitations: readonly Limitation[], sources: ConfigOrigins): readonly LimitationText[] {
  return limitations.map(({ text, origins }) => ({ text, from: origins.map((origin) => sources.originOf(origin)) }));
}

export function callText(heading: string, { settings, limitations, ...description }: CallText): string {
  const outputLines = [
    ...settings.map((text) => `${'setting'.padEnd(13)} ${text}`),
    ...limitations.flatMap(({ text, from }) => [
      `${'no support'.padEnd(13)} ${text}`,
      ...from.map((source) => `${' '.repeat(14)}← ${sourceText(source)}`),
    ]),
  ];
  return explanationText(heading, description, outputLines);
}

/** A client requests each target by name, so its targets are unknown. */
export interface GrpcOverview {
  readonly servers: readonly {
    readonly port: number;
    readonly service: string;
    readonly settings: readonly string[];
    readonly limitations: readonly LimitationText[];
  }[];
}

export function grpcOverviewOf(shape: ProxyShape, push: PushContext, sources: ConfigOrigins): GrpcOverview {
  const ports = new Map(shape.serviceTargets.map((target) => [target.targetPort, target.service.hostname]));
  return {
    servers: [...ports].map(([port, service]) => {
      const question = { side: 'server', target: `0.0.0.0:${port}`, path: '/', headers: {} } as const;
      const { settings, limitations } = explainGrpc(grpcResources(shape, push), question);
      return { port, service, settings, limitations: describeLimitations(limitations, sources) };
    }),
  };
}

export function grpcOverviewText(client: string, { servers }: GrpcOverview): string {
  const outputLines = [
    `${client}: ${servers.length} server ports (set --url ${urlForm} to explain a call, with --inbound one to this node)`,
  ];
  for (const { port, service, settings, limitations } of servers) {
    outputLines.push(`server        port ${port} of ${service}: ${settings.join('; ')}`);
    for (const { text, from } of limitations) {
      outputLines.push(`  no support  ${text}`, ...from.map((source) => `                ← ${sourceText(source)}`));
    }
  }
  return `${outputLines.join('\n')}\n`;
}
