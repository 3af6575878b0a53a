/** A gRPC client or server without a proxy: from what a person asks to the explanation of a call. */
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
import { type AskedFor, headersOf } from './question-of.ts';
import type { Source, Sources } from './sources.ts';
import { sourceText, type Told, tell, toldText } from './text.ts';

/** What gRPC ignores, for people and for programs. */
export interface ToldLimitation {
  readonly text: string;
  readonly from: readonly Source[];
}

export interface ToldCall extends Told {
  readonly settings: readonly string[];
  readonly limitations: readonly ToldLimitation[];
}

export function explainCall(asked: AskedFor, shape: ProxyShape, push: PushContext): GrpcExplanation {
  return explainGrpc(grpcResources(shape, push), grpcQuestionOf(asked));
}

const urlForm = 'xds:///HOST:PORT/SERVICE/METHOD';

/** @throws ChartpilotError FLAG_INVALID */
export function grpcQuestionOf(asked: AskedFor): GrpcQuestion {
  for (const flag of ['method', 'sni', 'http2', 'address'] as const) {
    if (asked[flag] === undefined) continue;
    throw new ChartpilotError(
      'FLAG_INVALID',
      `--${flag}: has no meaning for a gRPC program (GENERATOR=grpc); remove it`,
    );
  }
  const [, target = '', path = '/'] = /^xds:\/\/\/([^/?#\s]+)(\/[\x21-\x7e]*)?$/.exec(asked.url) ?? [];
  if (target === '') throw optionError('--url', mustBe(`${urlForm} for a gRPC program (GENERATOR=grpc)`, asked.url));
  const { host: authority, ...headers } = headersOf(asked);
  if (asked.source !== undefined && isIP(asked.source) === 0)
    throw optionError('--source', mustBe('an IP address', asked.source));
  return {
    ...{ side: asked.inbound ? 'server' : 'client', target, path, headers },
    ...(authority !== undefined && { authority }),
    ...(asked.source !== undefined && { source: asked.source }),
    ...(asked.principal !== undefined && { principal: asked.principal }),
  };
}

export function tellCall(explanation: GrpcExplanation, sources: Sources): ToldCall {
  const { settings, limitations } = explanation;
  return { ...tell(explanation, sources), settings, limitations: toldLimitations(limitations, sources) };
}

function toldLimitations(limitations: readonly Limitation[], sources: Sources): readonly ToldLimitation[] {
  return limitations.map(({ text, origins }) => ({ text, from: origins.map((origin) => sources.of(origin)) }));
}

export function callText(heading: string, { settings, limitations, ...told }: ToldCall): string {
  const lines = [
    ...settings.map((text) => `${'setting'.padEnd(13)} ${text}`),
    ...limitations.flatMap(({ text, from }) => [
      `${'no support'.padEnd(13)} ${text}`,
      ...from.map((source) => `${' '.repeat(14)}← ${sourceText(source)}`),
    ]),
  ];
  return toldText(heading, told, lines);
}

/** The ports at which a program of the node may serve. A client has no list of targets: it requests each by name. */
export interface GrpcOverview {
  readonly servers: readonly {
    readonly port: number;
    readonly service: string;
    readonly settings: readonly string[];
    readonly limitations: readonly ToldLimitation[];
  }[];
}

export function grpcOverviewOf(shape: ProxyShape, push: PushContext, sources: Sources): GrpcOverview {
  const ports = new Map(shape.serviceTargets.map((target) => [target.targetPort, target.service.hostname]));
  return {
    servers: [...ports].map(([port, service]) => {
      const question = { side: 'server', target: `0.0.0.0:${port}`, path: '/', headers: {} } as const;
      const { settings, limitations } = explainGrpc(grpcResources(shape, push), question);
      return { port, service, settings, limitations: toldLimitations(limitations, sources) };
    }),
  };
}

export function grpcOverviewText(who: string, { servers }: GrpcOverview): string {
  const lines = [
    `${who}: ${servers.length} server ports (set --url ${urlForm} to explain a call, with --inbound one to this node)`,
  ];
  for (const { port, service, settings, limitations } of servers) {
    lines.push(`server        port ${port} of ${service}: ${settings.join('; ')}`);
    for (const { text, from } of limitations) {
      lines.push(`  no support  ${text}`, ...from.map((source) => `                ← ${sourceText(source)}`));
    }
  }
  return `${lines.join('\n')}\n`;
}
