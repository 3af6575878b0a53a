/** Every output of a program escapes control characters and invisible characters of hostile text. */
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Gauge, Registry } from 'prom-client';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EnvoyOutput } from '../src/agent/envoy/output/envoy-log.ts';
import { writeOutput } from '../src/debugger/write-output.ts';
import { withConditions } from '../src/discovery/controllers/status/status-conditions.ts';
import { proxyText } from '../src/discovery/distribution/proxy-text.ts';
import { HttpServers } from '../src/discovery/monitor/http/http-server.ts';
import { problemText } from '../src/model/config/problem.ts';
import { explainError } from '../src/runtime/errors.ts';
import { createFencedServer } from '../src/runtime/fences/http-fence.ts';
import { trailersOf } from '../src/runtime/grpc/call-status.ts';
import { LineSink } from '../src/runtime/output/line-sink.ts';
import { createLogger, type Logger } from '../src/runtime/output/log.ts';
import { packageRoot } from '../src/runtime/package-root.ts';
import { formatTraceLine } from '../src/runtime/trace/trace.ts';
import { visibleMetrics } from '../src/runtime/visible-text.ts';
import { FaultyOutlets } from './fixtures/faulty-outlets.ts';
import { hostileCharacters, hostileText } from './fixtures/hostile-text.ts';

function toSink(write: (sink: LineSink) => void): string {
  const outlets = new FaultyOutlets();
  write(new LineSink({ open: outlets.open, begin: () => `${hostileText}\n` }));
  return outlets.files.join('');
}

function logText(asJson: boolean, write: (log: Logger) => void): string {
  let text = '';
  write(
    createLogger({
      asJson,
      write: (line) => {
        text += line;
      },
    }),
  );
  return text;
}

async function fetchPage(server: Server, path = '/'): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);
  return await response.text();
}

async function responseBody(body: string | object): Promise<string> {
  const servers = new HttpServers(() => ({ status: 200, body }));
  const [openedAddress] = await servers.open([{ host: '127.0.0.1', port: 0 }]);
  onTestFinished(() => servers.closeConnections());
  return await (await fetch(`http://127.0.0.1:${openedAddress!.port}/debug/x?pretty`)).text();
}

function writtenOutput(): string {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-hostile-output-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeOutput('--output', join(folder, 'x'), hostileText);
  return readFileSync(join(folder, 'x'), 'utf8');
}

async function metrics(): Promise<string> {
  const registry = new Registry();
  new Gauge({ name: 'identity', help: 'x', labelNames: ['reason'], registers: [registry] }).set(
    { reason: hostileText },
    1,
  );
  return visibleMetrics(await registry.metrics());
}

const inJson = { [hostileText]: [hostileText, { deep: hostileText }] };
const fixedTime = { time: '2026-01-01T00:00:00Z' };

/** `isLine`: a line feed of the hostile text is escaped, too. */
const sinks: readonly {
  readonly sink: string;
  readonly isLine: boolean;
  readonly text: () => string | Promise<string>;
}[] = [
  { sink: 'standard output', isLine: false, text: () => toSink((sink) => sink.print(hostileText)) },
  { sink: 'a log or trace file', isLine: false, text: () => toSink((sink) => sink.write(`${hostileText}\n`)) },
  {
    sink: "Envoy's access log",
    isLine: false,
    text: () => toSink((sink) => sink.write(Buffer.from(`${hostileText}\n`))),
  },
  {
    sink: "Envoy's access log with bytes that are not UTF-8",
    isLine: false,
    text: () =>
      toSink((sink) => sink.write(Buffer.concat([Buffer.from([0xff, 0x9b]), Buffer.from(`${hostileText}\n`)]))),
  },
  ...[false, true].flatMap((asJson) => [
    {
      sink: `a message of the log (JSON: ${asJson})`,
      isLine: true,
      text: () => logText(asJson, (log) => log.relay('envoy.output', 'warn', hostileText)),
    },
    {
      sink: `a field in a message of the log (JSON: ${asJson})`,
      isLine: true,
      text: () =>
        logText(asJson, (log) => log.info('state.changed', { actor: 'a', from: 'b', to: 'c', cause: hostileText })),
    },
    {
      sink: `a field of the log (JSON: ${asJson})`,
      isLine: true,
      text: () => logText(asJson, (log) => log.warn('upstream.failed', { reason: hostileText, ...inJson })),
    },
    {
      sink: `Envoy's log (JSON: ${asJson})`,
      isLine: true,
      text: () =>
        logText(asJson, (log) => {
          const output = new EnvoyOutput(log);
          for (const line of hostileText.split('\n')) output.line(`${line} and`);
        }),
    },
  ]),
  {
    sink: 'a response written by a server',
    isLine: false,
    text: () =>
      fetchPage(
        createFencedServer((_, response) => {
          response.write(hostileText);
          response.end(hostileText);
        }),
      ),
  },
  {
    sink: 'the error of a handler',
    isLine: false,
    text: () =>
      fetchPage(
        createFencedServer(() => {
          throw new Error(hostileText);
        }),
      ),
  },
  { sink: 'a debug page', isLine: false, text: () => responseBody(hostileText) },
  { sink: 'a debug page of JSON', isLine: true, text: () => responseBody(inJson) },
  { sink: 'a label of a metric', isLine: true, text: metrics },
  {
    sink: 'a line of a trace',
    isLine: true,
    text: () => formatTraceLine({ seq: 1, t: 1, kind: 'log', actor: hostileText, level: 'info', text: hostileText }),
  },
  {
    sink: 'a gRPC status',
    isLine: true,
    text: () => decodeURIComponent(trailersOf('INTERNAL', hostileText)['grpc-message']!),
  },
  {
    sink: 'a condition of an object',
    isLine: true,
    text: () => {
      const condition = { type: 'Accepted', status: 'False', reason: 'Invalid', message: hostileText } as const;
      return (withConditions([], [condition], fixedTime)[0] as { message: string }).message;
    },
  },
  { sink: "a proxy's text in an object", isLine: true, text: () => proxyText(hostileText) },
  {
    sink: 'a line of validate',
    isLine: true,
    text: () =>
      problemText({
        severity: 'error',
        file: hostileText,
        line: 1,
        object: hostileText,
        field: hostileText,
        message: hostileText,
      }),
  },
  { sink: 'an error of a command', isLine: false, text: () => explainError(new Error(hostileText)) },
  { sink: 'a file of --output', isLine: false, text: writtenOutput },
];

describe('hostile text', () => {
  test.each(sinks)('hostile text is escaped by $sink', async ({ isLine, text }) => {
    const visible = await text();
    expect(visible).toMatch(/\\(x1b|u001b)/);
    expect(visible).toContain('\\u202e');
    expect(visible).not.toMatch(hostileCharacters);
    if (isLine) expect(visible).not.toMatch(/^\s*forged/m);
  });

  test('escaping keeps JSON valid and its value unchanged', async () => {
    const wellFormed = JSON.parse(JSON.stringify(inJson)) as object;
    expect(JSON.parse(await responseBody(inJson))).toEqual(wellFormed);
    expect(JSON.parse(logText(true, (log) => log.warn('upstream.failed', { reason: hostileText })))).toMatchObject({
      reason: hostileText,
    });
  });
});

describe('output through bounded sinks', () => {
  const files = globSync('src/**/*.ts', { cwd: packageRoot() }).filter(
    (file) => !file.startsWith('src/gen/') && !file.endsWith('.test.ts'),
  );

  /** Ways to bypass the sinks, and the files that implement the sinks. Lint rejects `process.stdout` and `console`. */
  test.each<[string, RegExp, readonly string[]]>([
    [
      'only the outlet opens the standard streams',
      /\bopenStandardStream\(/,
      ['src/runtime/output/outlet.ts', 'src/runtime/output/standard-streams.ts'],
    ],
    ['only LineSink writes lines to an outlet', /\boutlet\.write\(/, ['src/runtime/output/line-sink.ts']],
    [
      'only the HTTP fence, which escapes responses, creates HTTP servers',
      /import \{[^}]*\b(createServer|ServerResponse)\b[^}]*\} from 'node:https?'/,
      ['src/runtime/fences/http-fence.ts', 'src/runtime/fences/https-fence.ts'],
    ],
    [
      'no file writes to a standard stream by its number',
      /\b(writeSync|writeFileSync|appendFileSync|createWriteStream)\(\s*[12],/,
      [],
    ],
    ['only log.ts creates a logger of pino', /\bpino\(/, ['src/runtime/output/log.ts']],
    ['every gRPC status message is escaped', /'grpc-message'(?!: encodeURIComponent\(visibleLine\(|\])/, []],
  ])('%s', (_, pattern, allowed) => {
    const matchingFiles = files.filter((file) =>
      pattern.test(stripTypeImports(readFileSync(join(packageRoot(), file), 'utf8'))),
    );
    expect(matchingFiles.sort()).toEqual([...allowed].sort());
  });
});

function stripTypeImports(text: string): string {
  return text.replaceAll(/^import type .*$/gm, '').replaceAll(/\btype \w+,?/g, '');
}
