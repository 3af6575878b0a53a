import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { event, traceText } from '../../../test/fixtures/traces.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { formatTraceLine, type TraceLine } from '../../runtime/trace/trace.ts';
import { type VisualizeCommandOptions, visualize } from './visualize-command.ts';

let folder: string;
let trace: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-visualize-'));
  trace = join(folder, 'agent.trace');
  writeFileSync(trace, traceText(3));
});
afterEach(() => rmSync(folder, { recursive: true }));

class CapturedOutput {
  out = '';
  error = '';
  readonly output = {
    out: (text: string): void => {
      this.out += text;
    },
    error: (text: string): void => {
      this.error += text;
    },
  };
}

async function run(
  files: string[],
  options: VisualizeCommandOptions = {},
  captured = new CapturedOutput(),
): Promise<CapturedOutput> {
  await visualize(files, { runDir: folder, ...options }, captured.output);
  return captured;
}

async function refusal(files: string[], options: VisualizeCommandOptions): Promise<ChartpilotError> {
  const error = await run(files, options).catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(ChartpilotError);
  return error as ChartpilotError;
}

test('chartpilot visualize prints only the address to standard output, and serves the page until the user ends it', async () => {
  const { promise: stopRequested, resolve } = Promise.withResolvers<void>();
  const captured = new CapturedOutput();
  const activeRun = run([trace], { enough: stopRequested }, captured);
  await expect.poll(() => captured.out).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]+\/\n$/);
  const address = captured.out.trim();
  expect(await (await fetch(`${address}trace/0`)).text()).toBe(traceText(3));
  resolve();
  await activeRun;
  await expect(fetch(address)).rejects.toThrow();
});

test('chartpilot visualize --open starts the browser without a secret in its arguments', async () => {
  const opener = process.platform === 'darwin' ? 'open' : 'xdg-open';
  writeFileSync(
    join(folder, opener),
    `#!/bin/sh\necho "$1" >${folder}/opened.part\nmv ${folder}/opened.part ${folder}/opened\n`,
  );
  chmodSync(join(folder, opener), 0o755);
  vi.stubEnv('PATH', `${folder}:${process.env.PATH}`);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  const { promise: stopRequested, resolve } = Promise.withResolvers<void>();
  const captured = new CapturedOutput();
  const activeRun = run([trace], { enough: stopRequested, open: true }, captured);
  await expect.poll(() => existsSync(join(folder, 'opened'))).toBe(true);
  const openedAddress = readFileSync(join(folder, 'opened'), 'utf8').trim();
  const address = captured.out.trim();
  expect(openedAddress).not.toContain(new URL(address).pathname.slice(1, -1));
  expect((await fetch(openedAddress)).url).toBe(address);
  resolve();
  await activeRun;
});

describe('the token of a program in chartpilot visualize', () => {
  /** A program that sends a trace only for its own token. */
  async function program(token: string): Promise<string> {
    const server = createServer(({ headers }, response) => {
      const hasToken = headers.authorization === `Bearer ${token}`;
      response.writeHead(hasToken ? 200 : 401).end(hasToken ? traceText(3) : 'unknown token');
    });
    onTestFinished(() => void server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  test('is the --token at the same position as its address, or the only --token', async () => {
    const attach = [await program('first'), await program('second')];
    const output = join(folder, 'page.html');
    await run([], { attach, token: ['first', 'second'], output });
    expect((await refusal([], { attach, token: ['second', 'first'], output })).code).toBe('REQUEST_FAILED');
    const sameProgram = [await program('one'), await program('one')];
    await run([], { attach: sameProgram, token: ['one'], output });
  });

  test('is rejected if the number of tokens does not match', async () => {
    const { code, message } = await refusal([], { attach: ['1', '2', '3'], token: ['a', 'b'] });
    expect(code).toBe('FLAG_INVALID');
    expect(message).toContain('expected one, or one for each of 3 --attach, got 2');
  });
});

test('chartpilot visualize --output writes one file and exits', async () => {
  const output = join(folder, 'page.html');
  const captured = await run([trace], { output });
  expect(captured.out).toBe('');
  expect(captured.error).toContain('page.html, which opens in a browser');
  expect(readFileSync(output, 'utf8')).toContain('"light.changed"');
});

test('chartpilot visualize reports user errors with instructions before it serves the page', async () => {
  const cases: [string[], VisualizeCommandOptions, Partial<ChartpilotError>][] = [
    [[], {}, { code: 'FLAG_INVALID' }],
    [[join(folder, 'absent')], {}, { code: 'FILE_UNREADABLE', fields: { path: join(folder, 'absent') } }],
    [['package.json'], {}, { code: 'TRACE_INVALID', fields: { path: 'package.json', line: 1 } }],
    [
      [trace],
      { attach: ['10.0.0.7:15020'] },
      { code: 'FLAG_INVALID', fields: { path: '--attach', expected: 'a loopback address', got: '10.0.0.7:15020' } },
    ],
    [
      [],
      { attach: ['127.0.0.1:1'] },
      { code: 'REQUEST_FAILED', message: expect.stringMatching(/127\.0\.0\.1:1: .*ECONNREFUSED/) },
    ],
    [[trace], { output: join(folder, 'absent/page.html') }, { code: 'FLAG_INVALID', fields: { path: '--output' } }],
    [[trace], { diagrams: folder }, { code: 'DIAGRAM_INVALID', fields: { path: folder, expected: '*.mmd' } }],
  ];
  for (const [files, options, error] of cases) expect(await refusal(files, options)).toMatchObject(error);
});

describe('the traces of several programs in chartpilot visualize', () => {
  const links = [{ event: 'passed', side: 'sends', key: '{nonce}', text: 'letter' }] as const;
  const writeTrace = (name: string, linkSide: 'sends' | 'receives', extraLines = ''): string => {
    const path = join(folder, name);
    const timeline = { links: [{ ...links[0], side: linkSide }] };
    const lines = [
      headerWith({ program: name, machines: [{ id: name, states: [], transitions: [], timeline }] }),
      { ...event(1, 'passed'), event: { type: 'passed', nonce: 'n' } },
    ];
    writeFileSync(path, lines.map((line) => formatTraceLine(line as TraceLine)).join('') + extraLines);
    return path;
  };
  const page = async (...files: string[]): Promise<string> => {
    const output = join(folder, 'page.html');
    await run(files, { output });
    return readFileSync(output, 'utf8');
  };

  test('are not overwritten by --output', async () => {
    const path = writeTrace('a.trace', 'sends');
    const originalText = readFileSync(path, 'utf8');
    for (const output of [path, join(folder, '.', 'a.trace')]) {
      await expect(run([path], { output })).rejects.toMatchObject({ code: 'FLAG_INVALID' });
    }
    expect(readFileSync(path, 'utf8')).toBe(originalText);
  });

  test('are shown separately, and merged with the arrows between them', async () => {
    const html = await page(writeTrace('a.trace', 'sends'), writeTrace('b.trace', 'receives'));
    expect(html).toContain('"name":"on one axis"');
    expect(html).toContain('b:light');
    expect(html).toContain('"letter"');
  });

  test('are shown only separately if no arrow connects them or a trace cannot be read completely', async () => {
    expect(await page(writeTrace('a.trace', 'sends'), writeTrace('b.trace', 'sends'))).not.toContain(
      '"name":"on one axis"',
    );
    const brokenTrace = writeTrace('c.trace', 'receives', '{"kind":"what"}\n');
    expect(await page(writeTrace('a.trace', 'sends'), brokenTrace)).not.toContain('"name":"on one axis"');
  });
});
